package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	_ "github.com/lib/pq" // the driver "postgres"
)

// A database is one of the lab's, for a single goal.
type database struct {
	url string
	db  *sql.DB
	lab *lab
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
	return &database{url: u.String(), db: db, lab: l}, nil
}

// drop removes the database, also where ctx is over.
func (d *database) drop() {
	d.db.Close()
	u, _ := url.Parse(d.url)
	d.lab.administer(context.Background(), "DROP DATABASE "+strings.TrimPrefix(u.Path, "/")+" WITH (FORCE)")
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
