package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/bettercompute/bettercompute/gen/policy"
	"github.com/bettercompute/bettercompute/impl/bearer"
	"github.com/bettercompute/bettercompute/impl/ids"
	"github.com/bettercompute/bettercompute/impl/store"
)

// adminKeyFile is where the first start leaves the platform's admin key.
const adminKeyFile = "admin.key"

// OpenMigrated opens the database of a configuration and brings it up to date.
// On an empty one it creates the platform's admin key: the file first, then
// its hash under the migration lock. Of several replicas one does that.
func OpenMigrated(ctx context.Context, config Config) (*store.DB, error) {
	if config.Data == "" {
		return nil, fmt.Errorf("%w: --data must name a folder", ErrConfig)
	}
	if err := os.MkdirAll(config.Data, 0o700); err != nil {
		return nil, fmt.Errorf("%w: --data must be a folder that can be written: %w", ErrConfig, err)
	}
	db, err := store.Open(ctx, store.Config{URL: config.URL, Log: config.Log, Now: config.Now})
	if err != nil {
		return nil, fmt.Errorf("%w: --db: %w", ErrConfig, err)
	}
	file := filepath.Join(config.Data, adminKeyFile)
	key := "" // what became of it
	err = db.Migrate(ctx, func(ctx context.Context, tx *store.Tx) error {
		admin, made, err := adminKey(file, tx.Now())
		if err != nil {
			return err
		}
		if key = "created"; !made {
			key = "taken from its file"
		}
		if _, err = tx.CreateAPIKey(ctx, admin); err != nil && made {
			err = errors.Join(err, os.Remove(file))
		}
		return err
	})
	if err != nil {
		// Where only the commit broke off, the file stays: the database may have the key.
		return nil, errors.Join(err, db.Close())
	}
	if key != "" {
		config.Log.Info("the platform's admin key was "+key, "file", file)
	}
	return db, nil
}

// adminKey writes a new key to a file, or takes the one that a start left
// there which did not live to store its hash.
func adminKey(file string, now time.Time) (key store.APIKey, written bool, err error) {
	id := ids.New("ak", now)
	secret, hash := bearer.Mint(bearer.APIKey, id)
	err = writeNew(file, secret.Reveal()+"\n")
	if errors.Is(err, fs.ErrExist) {
		id, hash, err = readKey(file)
	} else {
		written = err == nil
	}
	if err != nil {
		return store.APIKey{}, false, fmt.Errorf("%w: --data: the admin key: %w", ErrConfig, err)
	}
	return store.APIKey{
		ID: id, SecretSHA256: hash[:], TenantID: policy.PlatformTenant, Identity: "admin", Role: policy.RolePlatformAdmin,
		CreatedAt: now, CreatedBy: policy.PlatformTenant + "/bcserver",
	}, written, nil
}

// readKey takes a key from a file that nobody else can have put there.
func readKey(file string) (id string, hash bearer.Hash, err error) {
	info, err := os.Lstat(file)
	if err != nil {
		return "", hash, err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 || !ok || int(owner.Uid) != os.Geteuid() {
		return "", hash, fmt.Errorf("%s exists and is not a file that only its owner, who runs this server, can read; the database has no key yet, so move the file away", file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", hash, err
	}
	id, hash, ok = bearer.Parse(bearer.APIKey, strings.TrimSpace(string(text)))
	if !ok {
		return "", hash, fmt.Errorf("%s exists and holds no API key; the database has none either, so move the file away", file)
	}
	return id, hash, nil
}

// writeNew writes a file that nobody else can read and that was not there
// before; when it returns nil, the file outlives a crash.
func writeNew(file, text string) (err error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(file)
		}
	}()
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
