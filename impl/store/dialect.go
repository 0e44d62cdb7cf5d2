package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/schema"
)

// dialect is all in which the two databases differ once they are open.
type dialect struct {
	bun        func() schema.Dialect
	changes    func(writer *bun.DB) transactor
	lockSchema string // taken first by a migration, held until it commits
	hasTable   string // counts the tables of a name
	migration  func(text string) string
	forUpdate  string // locks the selected rows against every writer
	lockRow    string // locks a selected row against writers; others may still refer to it
	skipLocked string // locks the selected rows and leaves out locked ones
	unflushed  string // makes the commit of an UPDATE not wait for the disk
	queue      queueDriver
	prepares   bool // frequent statements
}

// pools are the connections to one database. Where it takes one writer at a
// time, writer has a single connection; otherwise both are the same pool.
type pools struct {
	dialect        *dialect
	writer, reader *sql.DB
}

// connect is the only place that knows which database it is.
func connect(ctx context.Context, config Config) (pools, error) {
	scheme, rest, _ := strings.Cut(config.URL, ":")
	switch scheme {
	case "sqlite":
		return connectSQLite(ctx, rest, config.MaxConns)
	case "postgres", "postgresql":
		return connectPostgres(ctx, config.URL, config.MaxConns)
	}
	// The URL itself is not repeated: it may hold a password.
	return pools{}, errors.New("store: the database URL must begin with sqlite: or postgres://")
}
