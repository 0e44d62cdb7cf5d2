package store

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"
)

// A transactor runs changes. Each is written as a whole when fn returns nil, and
// on disk when the call returns, unless its statement says that this may wait;
// otherwise nothing of it is.
type transactor interface {
	// transact runs fn in a transaction.
	transact(ctx context.Context, fn func(bun.IDB) error) error

	// statement runs fn, which is a single statement.
	statement(ctx context.Context, fn func(bun.IDB) error) error
}

// singly gives each change a connection and a commit of its own. Postgres
// itself writes the commits of one moment to disk together.
type singly struct {
	db      *bun.DB
	options *sql.TxOptions
}

func (s singly) transact(ctx context.Context, fn func(bun.IDB) error) error {
	tx, err := s.db.BeginTx(ctx, s.options)
	if err != nil {
		return failure(ctx, "begin", err)
	}
	committed := false
	defer func() {
		if !committed {
			_ = tx.Rollback() // fails only where there is nothing left to roll back
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return failure(ctx, "commit", err)
	}
	committed = true
	return nil
}

func (s singly) statement(_ context.Context, fn func(bun.IDB) error) error { return fn(s.db) }
