package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/keyring"
	"github.com/bettercompute/bettercompute/impl/seal"
	"github.com/bettercompute/bettercompute/impl/store"
)

// sealKeyFile is where an embedded database has its seal key, unless it is told another one.
const sealKeyFile = "seal.key"

func (c *Config) embedded() bool { return strings.HasPrefix(c.URL, "sqlite:") }

// ownSealKey is the file of an embedded database, or "" where the key is from elsewhere.
func (c *Config) ownSealKey() string {
	if c.SealKeyFile != "" || c.SealKeys != (seal.Keys{}) || !c.embedded() {
		return ""
	}
	return filepath.Join(c.Data, sealKeyFile)
}

// sealKeys reads the operator's keys.
func (c *Config) sealKeys() (keys seal.Keys, err error) {
	from, text := c.sealKeyFrom(), ""
	switch {
	case c.SealKeyFile != "" && c.SealKeys != (seal.Keys{}):
		return keys, fmt.Errorf("%w: --seal-key-file and BC_SEAL_KEY are both given; give one of them", ErrConfig)
	case c.SealKeys != (seal.Keys{}):
		return c.SealKeys, nil
	case c.SealKeyFile != "":
		text, err = readSecret(c.SealKeyFile)
	case c.embedded():
		text, err = readOwn(c.ownSealKey())
	default:
		return keys, fmt.Errorf("%w: on Postgres the secrets need a seal key: make one with `bcserver seal new-key`, keep it in a file that only the server can read, and give every replica the same one, with --seal-key-file or as BC_SEAL_KEY", ErrConfig)
	}
	if err != nil {
		return keys, fmt.Errorf("%w: %s: %w", ErrConfig, from, err)
	}
	if keys, err = seal.ParseKeys(text); err != nil {
		return keys, fmt.Errorf("%w: %s: %w", ErrConfig, from, err)
	}
	return keys, nil
}

// sealKeyFrom names the place of the keys, for messages.
func (c *Config) sealKeyFrom() string {
	if own := c.ownSealKey(); own != "" {
		return "the seal key " + own
	}
	if c.SealKeyFile != "" {
		return "--seal-key-file " + c.SealKeyFile
	}
	return "BC_SEAL_KEY"
}

// checkKeys refuses keys that cannot be right, before anything is made. An
// embedded database may still be about to get its own.
func (c *Config) checkKeys() error {
	if c.CADir != "" {
		if _, err := ca.FromFiles(c.CADir, c.now()); err != nil {
			return fmt.Errorf("%w: --ca-dir: %w", ErrConfig, err)
		}
	}
	if c.ownSealKey() != "" {
		return nil
	}
	_, err := c.sealKeys()
	return err
}

// makeSealKey writes the key of an embedded database which has no secrets yet.
// It reports whether it did.
func (c *Config) makeSealKey(ctx context.Context, tx *store.Tx) (bool, error) {
	file := c.ownSealKey()
	if file == "" {
		return false, nil
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return false, err // where it is there, nil: it is read with care
	}
	_, err := tx.SealKeyset(ctx)
	if err == nil {
		return false, fmt.Errorf("%w: %s is missing, and the secrets of the database are sealed with it: put it back, or give the key with --seal-key-file or as BC_SEAL_KEY", ErrConfig, file)
	}
	if !fault.Is(err, problem.NotFound) {
		return false, err
	}
	err = writeNew(file, seal.NewKeyText())
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%w: --data: the seal key: %w", ErrConfig, err)
	}
	return true, nil
}

// keyring says where the keys are.
func (c *Config) keyring() keyring.Config {
	return keyring.Config{SealKeys: c.sealKeys, CADir: c.CADir, Now: c.Now}
}

// keyringError says by its flag what is wrong with the keys.
func (c *Config) keyringError(err error) error {
	if errors.Is(err, keyring.ErrSealKey) {
		return fmt.Errorf("%w: %s: %w", ErrConfig, c.sealKeyFrom(), err)
	}
	return err
}
