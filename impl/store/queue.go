package store

import (
	"context"
	"database/sql"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/uptrace/bun"
)

// Queue works jobs that are kept in the database, for all replicas together.
type Queue = river.Client[*sql.Tx]

// NewQueue returns a queue on this database. It looks for jobs now and then, as
// neither database is listened to.
func (db *DB) NewQueue(config *river.Config) (*Queue, error) {
	return river.NewClient(db.dialect.queue(db.writer.DB), config)
}

// migrateQueue brings the queue's own tables up to date. Each step has its own
// transaction: Postgres cannot use a new value of an enum in the one that adds it.
func (db *DB) migrateQueue(ctx context.Context) error {
	migrator, err := rivermigrate.New(db.dialect.queue(db.writer.DB), nil)
	if err != nil {
		return err
	}
	for more := true; more; {
		err := db.Write(ctx, func(tx *Tx) error {
			if err := tx.lockSchema(ctx); err != nil {
				return err
			}
			done, err := migrator.MigrateTx(ctx, tx.sql.(bun.Tx).Tx, rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{MaxSteps: 1})
			more = err == nil && len(done.Versions) > 0
			return tx.failed(ctx, "migrate the queue", err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// queueDriver makes River's driver for a database.
type queueDriver = func(*sql.DB) riverdriver.Driver[*sql.Tx]
