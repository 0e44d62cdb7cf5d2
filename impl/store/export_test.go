package store

import (
	"context"
	"time"
)

// Query runs a statement of a test.
func (r Reader) Query(ctx context.Context, statement string, args ...any) *Rows {
	return &Rows{r, ctx, statement, args}
}

// Rows is the outcome of Query.
type Rows struct {
	r         Reader
	ctx       context.Context
	statement string
	args      []any
}

// Scan reads the rows.
func (q *Rows) Scan(dest ...any) error {
	err := q.r.sql.NewRaw(q.statement, q.args...).Scan(q.ctx, dest...)
	return q.r.failed(q.ctx, "test", err)
}

// Exec runs a statement of a test as a change.
func (tx *Tx) Exec(ctx context.Context, statement string, args ...any) error {
	_, err := tx.exec(ctx, "test", statement, args...)
	return err
}

// MigrateTo brings an empty database to the schema that an older binary has.
func (db *DB) MigrateTo(ctx context.Context, version int) error {
	known, err := knownMigrations()
	if err != nil {
		return err
	}
	return db.Write(ctx, func(tx *Tx) error {
		if _, err := tx.exec(ctx, "create schema_migrations", createSchemaMigrations); err != nil {
			return err
		}
		for _, m := range known[:version] {
			if err := tx.apply(ctx, m); err != nil {
				return err
			}
		}
		return nil
	})
}

// Failure is failure.
func Failure(ctx context.Context, doing string, err error) error { return failure(ctx, doing, err) }

// MaxDenials is maxDenials.
const MaxDenials = maxDenials

// NextID is nextID.
func NextID(last, prefix string, at time.Time) string { return nextID(last, prefix, at) }

// Waiting is how many changes wait for their turn on SQLite.
func (db *DB) Waiting() int {
	c := db.changes.(*groupCommit)
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue)
}

// GroupLimit is groupLimit.
const GroupLimit = groupLimit
