package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/lib/pq"  // the driver "postgres"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// A database is one of the lab's, for a single goal.
type database struct {
	url    string // as bcserver takes it
	db     *sql.DB
	remove func() // once db is closed
}

// newDatabase makes an empty database on the lab's Postgres.
func (l *lab) newDatabase(ctx context.Context) (*database, error) {
	name := "bc_bench_" + strings.ToLower(rand.Text())
	if err := l.administer(ctx, "CREATE DATABASE "+name); err != nil {
		return nil, err
	}
	u, err := url.Parse(l.postgres)
	if err != nil {
		return nil, errors.New("BC_TEST_POSTGRES is no URL")
	}
	u.Path = "/" + name
	db, err := sql.Open("postgres", u.String())
	if err != nil {
		return nil, err
	}
	return &database{u.String(), db, func() {
		l.administer(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)") // also where ctx is over
	}}, nil
}

// newSQLite makes an empty database in a folder of its own, which goes with the lab.
func (l *lab) newSQLite(context.Context) (*database, error) {
	dir, err := l.folder("sqlite")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "bench.db")
	db, err := sql.Open("sqlite", "file:"+file+"?_busy_timeout=30000&_journal_mode=WAL")
	return &database{"sqlite:" + file, db, func() {}}, err
}

// drop removes the database.
func (d *database) drop() {
	d.db.Close()
	d.remove()
}

// fewAndMany makes two databases to compare, gives them to fn and drops them.
func fewAndMany(ctx context.Context, make func(context.Context) (*database, error), fn func(few, many *database) ([]line, error)) ([]line, error) {
	few, err := make(ctx)
	if err != nil {
		return nil, err
	}
	defer few.drop()
	many, err := make(ctx)
	if err != nil {
		return nil, err
	}
	defer many.drop()
	return fn(few, many)
}

// administer runs a statement outside the databases of the goals.
func (l *lab) administer(ctx context.Context, statement string) error {
	db, err := sql.Open("postgres", l.postgres)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, statement)
	return err
}

// settle brings the database to rest before a round: all events have their
// position, and what was written is on the disk.
func (d *database) settle(ctx context.Context) error {
	for waiting := true; waiting; {
		err := d.db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM events WHERE position IS NULL)").Scan(&waiting)
		if err != nil {
			return err
		}
		if waiting {
			time.Sleep(100 * time.Millisecond)
		}
	}
	_, err := d.db.ExecContext(ctx, "CHECKPOINT")
	return err
}

// setting returns a setting of the server, such as fsync.
func (d *database) setting(ctx context.Context, name string) (value string, err error) {
	err = d.db.QueryRowContext(ctx, "SELECT current_setting($1)", name).Scan(&value)
	if err != nil {
		return "", fmt.Errorf("setting %s: %w", name, err)
	}
	return value, nil
}

// rows counts what a joinTokens.create writes, by table.
func (d *database) rows(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	for _, table := range []string{"join_tokens", "events", "decisions"} {
		var n int
		if err := d.db.QueryRowContext(ctx, "SELECT count(*) FROM "+table).Scan(&n); err != nil {
			return nil, fmt.Errorf("count %s: %w", table, err)
		}
		counts[table] = n
	}
	return counts, nil
}
