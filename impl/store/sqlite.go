package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"github.com/uptrace/bun/schema"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

var sqliteDialect = &dialect{
	bun:       func() schema.Dialect { return sqlitedialect.New() },
	changes:   func(writer *bun.DB) transactor { return newGroupCommit(writer) },
	hasTable:  "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?",
	migration: func(text string) string { return text },
	queue:     func(pool *sql.DB) riverdriver.Driver[*sql.Tx] { return riversqlite.New(pool) },
	prepares:  true,
}

// Every connection waits up to 30 s for another process; inside this one
// writers queue for the single writing connection. Commits are synced to disk.
// A transaction takes the write lock when it begins: one that reads first and
// writes later would be refused at once, however long it may wait. The log is
// worked into the database every 16 MiB (4000 pages), as busy pages are then
// written once for many commits.
const (
	sqliteAll    = "?_busy_timeout=30000&_foreign_keys=1&_defensive=1&_dqs=0&_error_rc=1"
	sqliteWriter = sqliteAll + "&_journal_mode=WAL&_synchronous=FULL&_txlock=immediate&_pragma=wal_autocheckpoint(4000)"
	sqliteReader = sqliteAll + "&_query_only=1"
)

func connectSQLite(ctx context.Context, path string, maxConns int) (pools, error) {
	path, err := sqliteFile(path)
	if err != nil {
		return pools{}, err
	}
	uri := "file:" + strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(filepath.ToSlash(path))
	writer, err := sql.Open("sqlite", uri+sqliteWriter)
	if err != nil {
		return pools{}, fmt.Errorf("store: cannot open SQLite file %s: %w", path, err)
	}
	writer.SetMaxOpenConns(1)
	reader, err := sql.Open("sqlite", uri+sqliteReader)
	if err != nil {
		return pools{}, errors.Join(fmt.Errorf("store: cannot open SQLite file %s: %w", path, err), writer.Close())
	}
	if maxConns <= 0 {
		maxConns = max(4, runtime.GOMAXPROCS(0))
	}
	reader.SetMaxOpenConns(maxConns)
	reader.SetMaxIdleConns(maxConns)
	for _, pool := range []*sql.DB{writer, reader} {
		if err := pingSQLite(ctx, pool); err != nil {
			return pools{}, errors.Join(fmt.Errorf("store: cannot open SQLite file %s: %w", path, err), writer.Close(), reader.Close())
		}
	}
	return pools{dialect: sqliteDialect, writer: writer, reader: reader}, nil
}

// pingSQLite opens a connection. While another process makes the file a WAL
// database, SQLite answers BUSY at once, whatever its timeout; that is over soon.
func pingSQLite(ctx context.Context, pool *sql.DB) (err error) {
	const tries, pause = 300, 100 * time.Millisecond
	for range tries {
		if err = pool.PingContext(ctx); err == nil || !sqliteUnavailable(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(pause):
		}
	}
	return err
}

// sqliteFile returns the absolute path of the database, after making sure that
// it can be written; SQLite itself would only say "unable to open". A new file
// is readable for its owner alone, and so are those that SQLite puts beside it.
func sqliteFile(path string) (string, error) {
	if strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///") {
		return "", errors.New("store: write a relative database path as sqlite:data/file.db, without //")
	}
	if path == "" || strings.Contains(path, ":memory:") {
		return "", errors.New("store: the database URL names no file; write sqlite:<path>")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("store: database path: %w", err)
	}
	folder := filepath.Dir(path)
	probe, err := os.CreateTemp(folder, ".write-test-*")
	if err != nil {
		return "", fmt.Errorf("store: the folder %s of the database cannot be written: %w", folder, cause(err))
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return "", fmt.Errorf("store: the folder %s of the database cannot be written: %w", folder, cause(err))
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", fmt.Errorf("store: the database file %s cannot be written: %w", path, cause(err))
	}
	return path, file.Close()
}

// cause leaves out the operation and path of a file error.
func cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// sqliteUnavailable reports whether another process kept the database locked
// for too long, or the disk is full.
func sqliteUnavailable(err error) bool {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL:
			return true
		}
	}
	return false
}

func sqliteForeignKey(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code() == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
}
