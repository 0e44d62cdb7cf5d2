package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bettercompute/bettercompute/gen/policy"
	"github.com/bettercompute/bettercompute/impl/bearer"
	"github.com/bettercompute/bettercompute/impl/ids"
	"github.com/bettercompute/bettercompute/impl/keyring"
	"github.com/bettercompute/bettercompute/impl/store"
)

// adminKeyFile is where the first start leaves the platform's admin key.
const adminKeyFile = "admin.key"

// OpenMigrated opens the database of a configuration and brings it up to date.
// On an empty one it creates what it needs first: the seal key of an embedded
// one, the CA, and the platform's admin key. Each file is there before the row
// that belongs to it, which is written under the migration lock. Of several
// replicas one does that.
func OpenMigrated(ctx context.Context, config Config) (*store.DB, error) {
	if err := config.checkKeys(); err != nil {
		return nil, err
	}
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
	first := firstStart{config: &config}
	if err := db.Migrate(ctx, first.make); err != nil {
		// Where only the commit broke off, the files stay: the database may have what is in them.
		return nil, errors.Join(err, db.Close())
	}
	for _, n := range first.notes {
		config.Log.Info(n.what, "file", n.file)
	}
	return db, nil
}

// A firstStart is what one start made.
type firstStart struct {
	config *Config
	files  []string // that were not there before
	notes  []note   // to be told once it is committed
}

type note struct{ what, file string }

// make makes what is missing. Where that fails nothing of it stays.
func (f *firstStart) make(ctx context.Context, tx *store.Tx) (err error) {
	defer func() {
		if err == nil {
			return
		}
		for _, file := range f.files {
			err = errors.Join(err, os.Remove(file))
		}
	}()
	made, err := f.config.makeSealKey(ctx, tx)
	if err != nil {
		return err
	}
	if made {
		file := f.config.ownSealKey()
		f.files = append(f.files, file)
		f.notes = append(f.notes, note{"the seal key was created; keep a copy of it, apart from those of the database", file})
	}
	if err := keyring.Make(ctx, tx, f.config.keyring()); err != nil {
		return f.config.keyringError(err)
	}
	if any, err := tx.AnyAPIKey(ctx); err != nil || any {
		return err
	}
	file := filepath.Join(f.config.Data, adminKeyFile)
	admin, made, err := adminKey(file, tx.Now())
	if err != nil {
		return err
	}
	if made {
		f.files = append(f.files, file)
		f.notes = append(f.notes, note{"the platform's admin key was created", file})
	} else {
		f.notes = append(f.notes, note{"the platform's admin key was taken from its file", file})
	}
	_, err = tx.CreateAPIKey(ctx, admin)
	return err
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
	text, err := readOwn(file)
	if errors.Is(err, errNotOwn) {
		return "", hash, fmt.Errorf("%s exists, and %w; the database has no key yet, so move the file away", file, err)
	}
	if err != nil {
		return "", hash, fmt.Errorf("%s: %w", file, err)
	}
	id, hash, ok := bearer.Parse(bearer.APIKey, strings.TrimSpace(text))
	if !ok {
		return "", hash, fmt.Errorf("%s exists and holds no API key; the database has none either, so move the file away", file)
	}
	return id, hash, nil
}
