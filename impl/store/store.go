// Package store is the only room that speaks SQL: it keeps every row, on SQLite or Postgres, and writes a change and its event together.
package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"github.com/uptrace/bun"
)

// Config says where the data is. Only URL is needed.
type Config struct {
	URL      string           // sqlite:<path> or postgres://user:password@host:port/database
	Log      *slog.Logger     // gets every statement at LevelTrace; nil: none
	Now      func() time.Time // nil: time.Now
	MaxConns int              // connections to Postgres, or readers of SQLite; 0: a default
}

// DB is the data, shared by all goroutines. Reads are on the embedded Reader.
type DB struct {
	Reader
	dialect *dialect
	writer  *bun.DB // the same as reader on Postgres
	reader  *bun.DB
	changes transactor
	now     func() time.Time
}

// Open connects, and fails with a message for the operator where that is not
// possible; no message ever holds a password. It does not migrate.
func Open(ctx context.Context, config Config) (*DB, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	pools, err := connect(ctx, config)
	if err != nil {
		return nil, err
	}
	db := &DB{
		dialect: pools.dialect,
		writer:  bun.NewDB(pools.writer, pools.dialect.bun()),
		now:     config.Now,
	}
	db.reader = db.writer
	if pools.reader != pools.writer {
		db.reader = bun.NewDB(pools.reader, pools.dialect.bun())
	}
	db.Reader = Reader{now: db.timestamp}
	if db.dialect.prepares {
		db.Reader.prepared = &prepared{db: db.reader, log: trace{config.Log}, byText: map[string]*sql.Stmt{}}
	}
	if config.Log != nil {
		db.writer = db.writer.WithQueryHook(trace{config.Log})
		db.reader = db.reader.WithQueryHook(trace{config.Log})
	}
	db.Reader.sql = db.reader
	db.changes = db.dialect.changes(db.writer)
	return db, nil
}

// Close waits for running calls and closes all connections.
// A call made afterwards is UNAVAILABLE.
func (db *DB) Close() error {
	return errors.Join(db.reader.Close(), db.writer.Close())
}

// timestamp is the time in the form in which it is stored.
func (db *DB) timestamp() time.Time { return db.now().UTC().Truncate(time.Microsecond) }

// Now is the time of the store's clock, in microseconds and UTC.
func (db *DB) Now() time.Time { return db.timestamp() }

// Stats counts connections, those of writer and readers together.
type Stats struct {
	Max, Open, InUse, Idle int
	Waits                  int64         // calls that had to wait for a connection
	Waited                 time.Duration // how long they waited, in all
}

// Stats reports on the connections, for metrics.
func (db *DB) Stats() Stats {
	var all Stats
	for _, pool := range []*bun.DB{db.writer, db.reader} {
		s := pool.Stats()
		all.Max += s.MaxOpenConnections
		all.Open += s.OpenConnections
		all.InUse += s.InUse
		all.Idle += s.Idle
		all.Waits += s.WaitCount
		all.Waited += s.WaitDuration
		if db.writer.DB == db.reader.DB { // with a hook they are two handles on one pool
			break
		}
	}
	return all
}

// Reader reads rows: on a DB what is committed, on a Tx also its own changes.
// A row that is not there is NOT_FOUND.
type Reader struct {
	sql      bun.IDB
	now      func() time.Time
	tx       *Tx       // nil outside a transaction
	prepared *prepared // nil where nothing is prepared
}

// failed puts err in the form in which it leaves the store. Inside a
// transaction it also keeps it from being committed: Postgres would refuse to,
// SQLite would commit the half that worked.
func (r Reader) failed(ctx context.Context, doing string, err error) error {
	if err = failure(ctx, doing, err); err != nil && r.tx != nil && r.tx.broken == nil {
		r.tx.broken = err
	}
	return err
}

// Tx is one transaction, for one goroutine. A change is one of its methods,
// which writes the row and the event together.
type Tx struct {
	Reader
	dialect   *dialect
	at        time.Time
	lastEvent string // the id of the event published last
	broken    error  // of the first statement that failed
}

// Now is the time of the transaction, in microseconds and UTC: everything that
// it writes happened then.
func (tx *Tx) Now() time.Time { return tx.at }

// Write runs fn in one transaction and commits it when fn returns nil; the
// decisions of ctx (WithDecision) are recorded with what it changed. Nothing is written when
// fn fails or panics, or when a statement failed, whatever fn made of that.
// On SQLite writers wait for each other, and share a commit. When the connection
// breaks, the error is UNAVAILABLE and the caller may try again; whether a commit
// that broke off took effect is then not known, as the server may have heard it.
func (db *DB) Write(ctx context.Context, fn func(*Tx) error) error {
	var decided pendingDecisions
	written := false
	defer func() { decided.settle(written) }()
	err := db.changes.transact(ctx, func(conn bun.IDB) error {
		tx := &Tx{dialect: db.dialect, at: db.timestamp()}
		tx.Reader = Reader{sql: conn, now: tx.Now, tx: tx}
		if err := fn(tx); err != nil {
			return err
		}
		if tx.lastEvent != "" { // something changed
			decided = claimDecisions(ctx)
			if err := tx.insertDecisions(ctx, decided); err != nil {
				return err
			}
		}
		return tx.broken
	})
	written = err == nil
	return err
}
