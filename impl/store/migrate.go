package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"time"

	"github.com/uptrace/bun"

	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/migrations"
)

// schemaMigration is a row of schema_migrations: a file that was applied.
type schemaMigration struct {
	Version   int64 `bun:",pk"`
	Name      string
	SHA256    string `bun:"sha256"`
	AppliedAt time.Time
	text      string
}

func (m *schemaMigration) times() []*time.Time { return []*time.Time{&m.AppliedAt} }

const createSchemaMigrations = `CREATE TABLE IF NOT EXISTS schema_migrations (
	version    BIGINT NOT NULL PRIMARY KEY,
	name       TEXT NOT NULL,
	sha256     TEXT NOT NULL,
	applied_at TIMESTAMPTZ NOT NULL
)`

var migrationFile = regexp.MustCompile(`^([0-9]{4})_([a-z0-9_]+)\.sql$`)

// knownMigrations are the files of this binary, in the order of their versions.
func knownMigrations() ([]schemaMigration, error) {
	files, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		return nil, fmt.Errorf("store: migrations: %w", err)
	}
	var known []schemaMigration
	for i, file := range files { // sorted by name
		text, err := fs.ReadFile(migrations.FS, file)
		if err != nil {
			return nil, fmt.Errorf("store: migrations: %w", err)
		}
		name := migrationFile.FindStringSubmatch(file)
		if name == nil {
			return nil, fmt.Errorf("store: migration %s: want a name like 0001_name.sql", file)
		}
		version, err := strconv.ParseInt(name[1], 10, 64)
		if err != nil || version != int64(i+1) {
			return nil, fmt.Errorf("store: migration %s: want number %04d", file, i+1)
		}
		sum := sha256.Sum256(text)
		known = append(known, schemaMigration{Version: version, Name: name[2], SHA256: hex.EncodeToString(sum[:]), text: string(text)})
	}
	return known, nil
}

// missing compares what was applied with what this binary knows and returns
// what is still to be applied.
func missing(known, applied []schemaMigration) ([]schemaMigration, error) {
	if len(applied) > len(known) {
		newest := applied[len(applied)-1]
		return nil, fmt.Errorf("store: the database has schema version %d (%s) and this binary knows only up to %d: run a newer one, or restore a backup made by this one",
			newest.Version, newest.Name, len(known))
	}
	for i, m := range applied {
		if m.Version != known[i].Version || m.Name != known[i].Name {
			return nil, fmt.Errorf("store: the database has migration %04d_%s where this binary has %04d_%s: it belongs to another line of releases",
				m.Version, m.Name, known[i].Version, known[i].Name)
		}
		if m.SHA256 != known[i].SHA256 {
			return nil, fmt.Errorf("store: migration %04d_%s has changed since it was applied to this database (sha256 %.12s… then, %.12s… now): run the release that fits the database",
				m.Version, m.Name, m.SHA256, known[i].SHA256)
		}
	}
	return known[len(applied):], nil
}

// applied reads which migrations were applied; none where there is no table.
func (r Reader) applied(ctx context.Context, d *dialect) (rows []schemaMigration, err error) {
	var tables int
	if err := r.sql.NewRaw(d.hasTable, "schema_migrations").Scan(ctx, &tables); err != nil {
		return nil, r.failed(ctx, "look for the schema", err)
	}
	if tables == 0 {
		return nil, nil
	}
	err = r.sql.NewSelect().Model(&rows).Order("version").Scan(ctx)
	return rows, r.failed(ctx, "read the schema version", err)
}

// Migrate brings the schema up to this binary's version, in one transaction
// under a lock, so that any number of replicas may start at once. It refuses,
// and changes nothing, where the database is newer than the binary or a
// migration has changed since it was applied.
//
// Then it calls then (unless nil) in the same transaction, to make what a
// database needs before it is used; if that fails, nothing is changed. It runs
// under the lock, so that of many replicas the first one makes it.
func (db *DB) Migrate(ctx context.Context, then func(context.Context, *Tx) error) error {
	known, err := knownMigrations()
	if err != nil {
		return err
	}
	err = db.Write(ctx, func(tx *Tx) error {
		if err := tx.lockSchema(ctx); err != nil {
			return err
		}
		tx.at = db.timestamp() // others may have held the lock for long
		applied, err := tx.applied(ctx, db.dialect)
		if err != nil {
			return err
		}
		todo, err := missing(known, applied)
		if err != nil {
			return err
		}
		if _, err := tx.exec(ctx, "create schema_migrations", createSchemaMigrations); err != nil {
			return err
		}
		for _, m := range todo {
			if err := tx.apply(ctx, m); err != nil {
				return err
			}
		}
		if then == nil {
			return nil
		}
		return then(ctx, tx)
	})
	if err != nil {
		return err
	}
	return db.migrateQueue(ctx)
}

// lockSchema waits for every other migration and keeps them out until the
// transaction ends. On SQLite any writer does that.
func (tx *Tx) lockSchema(ctx context.Context) error {
	if tx.dialect.lockSchema == "" {
		return nil
	}
	_, err := tx.exec(ctx, "lock the schema", tx.dialect.lockSchema)
	return err
}

// apply runs one migration and notes that it was applied.
func (tx *Tx) apply(ctx context.Context, m schemaMigration) error {
	doing := fmt.Sprintf("migrate to %04d_%s", m.Version, m.Name)
	if _, err := tx.exec(ctx, doing, "?", bun.Safe(tx.dialect.migration(m.text))); err != nil {
		return err
	}
	m.AppliedAt = tx.Now()
	_, err := tx.insert(ctx, "schema version", &m)
	return err
}

// Ready reports whether the database can be reached and has exactly the schema
// of this binary; otherwise it is UNAVAILABLE.
func (db *DB) Ready(ctx context.Context) error {
	known, err := knownMigrations()
	if err != nil {
		return err
	}
	applied, err := db.applied(ctx, db.dialect)
	if err != nil {
		return err
	}
	todo, err := missing(known, applied)
	if err == nil && len(todo) > 0 {
		err = errors.New("store: the database is not migrated to the schema of this binary")
	}
	if err != nil {
		return fault.Unavailable(err)
	}
	return nil
}
