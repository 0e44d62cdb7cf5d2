package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/keyring"
	"github.com/bettercompute/bettercompute/impl/store"
)

// DescribeCA lists what the CA of a database that is there is made of, and the
// SHA-256 of its roots.
func DescribeCA(ctx context.Context, config Config) ([]ca.Description, []string, error) {
	if config.CADir != "" {
		materials, err := ca.FromFiles(config.CADir, config.now())
		if err != nil {
			return nil, nil, fmt.Errorf("%w: --ca-dir: %w", ErrConfig, err)
		}
		authority, err := ca.New(materials)
		if err != nil {
			return nil, nil, err
		}
		return authority.Describe(), authority.RootSHA256(), nil
	}
	var authority *ca.Authority
	err := withDatabase(ctx, &config, func(db *store.DB) error {
		keys, err := keyring.Open(ctx, db, config.keyring())
		if err == nil {
			authority = keys.Authority()
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return authority.Describe(), authority.RootSHA256(), nil
}

// RotateCA makes new issuers under the same root, for all servers on a database
// that is there, and lists what the CA is made of then.
func RotateCA(ctx context.Context, config Config) (list []ca.Description, err error) {
	if config.CADir != "" {
		return nil, fmt.Errorf("%w: the CA is in files: put the new issuers into %s", ErrConfig, config.CADir)
	}
	err = withDatabase(ctx, &config, func(db *store.DB) error {
		authority, err := keyring.RotateCA(ctx, db, config.keyring())
		if err == nil {
			list = authority.Describe()
		}
		return err
	})
	return list, err
}

// RotateSeal seals every secret of a database that is there anew, under the
// first of the operator's keys.
func RotateSeal(ctx context.Context, config Config) error {
	return withDatabase(ctx, &config, func(db *store.DB) error {
		return keyring.RotateSeal(ctx, db, config.keyring())
	})
}

// withDatabase runs fn on a database that a server has started on. It makes
// none: the keys of one that nobody uses would only mislead.
func withDatabase(ctx context.Context, config *Config, fn func(*store.DB) error) error {
	if path, embedded := strings.CutPrefix(config.URL, "sqlite:"); embedded {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: --db: there is no database %s", ErrConfig, path)
		}
	}
	if _, err := config.sealKeys(); err != nil {
		return err
	}
	db, err := store.Open(ctx, store.Config{URL: config.URL, Log: config.Log, Now: config.Now})
	if err != nil {
		return fmt.Errorf("%w: --db: %w", ErrConfig, err)
	}
	err = db.Ready(ctx)
	if err == nil {
		err = config.keyringError(fn(db))
	}
	return errors.Join(err, db.Close())
}
