package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/lib/pq"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/schema"
)

var postgresDialect = &dialect{
	bun: func() schema.Dialect { return pgdialect.New() },
	// Said in BEGIN itself, whatever the server's default is.
	changes: func(writer *bun.DB) transactor {
		return singly{writer, &sql.TxOptions{Isolation: sql.LevelReadCommitted}}
	},
	lockSchema: "SELECT pg_advisory_xact_lock(7020231105)", // the number is ours alone
	hasTable:   "SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = current_schema() AND tablename = ?",
	migration:  func(text string) string { return postgresOnly.ReplaceAllString(text, "$1") },
	forUpdate:  " FOR UPDATE",
	lockRow:    "NO KEY UPDATE",
	skipLocked: " FOR UPDATE SKIP LOCKED",
	unflushed:  " FROM (SELECT set_config('synchronous_commit', 'off', TRUE)) AS unflushed",
	queue:      func(pool *sql.DB) riverdriver.Driver[*sql.Tx] { return riverdatabasesql.New(pool) },
}

var postgresOnly = regexp.MustCompile(`/\*postgres (.*?)\*/`)

const (
	postgresConns   = 24
	postgresTimeout = 10 * time.Second // to connect
	postgresIdle    = 5 * time.Minute
)

func connectPostgres(ctx context.Context, text string, maxConns int) (pools, error) {
	config, err := postgresConfig(text)
	if err != nil {
		return pools{}, err
	}
	connector, err := newGuardedConnector(config)
	if err != nil {
		return pools{}, postgresError(config, err)
	}
	if maxConns <= 0 {
		maxConns = postgresConns
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(maxConns)
	pool.SetMaxIdleConns(maxConns)
	pool.SetConnMaxIdleTime(postgresIdle)
	// Not Ping: it hides the reason. This also proves that the server is one.
	if _, err := pool.ExecContext(ctx, "SELECT 1"); err != nil {
		return pools{}, errors.Join(postgresError(config, err), pool.Close())
	}
	return pools{dialect: postgresDialect, writer: pool, reader: pool}, nil
}

// postgresConfig reads the URL. What the parsers say about a bad one is not
// passed on, as they repeat pieces of it, and with them of the password.
func postgresConfig(text string) (pq.Config, error) {
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.Fragment != "" {
		return pq.Config{}, errors.New("store: the database URL is malformed; write postgres://user:password@host:port/database, with special characters percent-encoded")
	}
	config, err := pq.NewConfig(text)
	if err != nil {
		return pq.Config{}, errors.New("store: the database URL, or a PG… variable of the environment, has an option that is unknown or malformed")
	}
	if config.SSLMode == "" {
		config.SSLMode = pq.SSLModeRequire
		if host := u.Hostname(); host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.") {
			config.SSLMode = pq.SSLModePrefer
		}
	}
	if config.ConnectTimeout <= 0 {
		config.ConnectTimeout = postgresTimeout
	}
	if config.ApplicationName == "" {
		config.ApplicationName = "bettercompute"
	}
	config = config.Clone()
	config.Runtime["timezone"] = "UTC"
	// Values are written into statements as literals, which is only safe so.
	config.Runtime["standard_conforming_strings"] = "on"
	return config, nil
}

// postgresError says which server could not be reached, as whom and why.
func postgresError(config pq.Config, err error) error {
	reason := err.Error()
	if config.Password != "" {
		reason = strings.ReplaceAll(reason, config.Password, "[sealed]")
	}
	if errors.Is(err, pq.ErrSSLNotSupported) {
		reason += "; add ?sslmode=disable to the URL where the network is trusted"
	}
	return fmt.Errorf("store: cannot use Postgres at %s port %d, database %q, as user %q: %s",
		config.Host, config.Port, config.Database, config.User, reason)
}

// postgresUnavailable reports whether the server is gone, going or full, or has
// ended a transaction for the sake of another one.
func postgresUnavailable(err error) bool {
	if e, ok := errors.AsType[*pq.Error](err); ok {
		return strings.HasPrefix(string(e.Code), "08") || // connection exception
			strings.HasPrefix(string(e.Code), "40") || // transaction rollback: a deadlock
			strings.HasPrefix(string(e.Code), "53") || // insufficient resources
			strings.HasPrefix(string(e.Code), "57P") // shutdown, crash, cannot connect now
	}
	return false
}

func postgresForeignKey(err error) bool {
	e, ok := errors.AsType[*pq.Error](err)
	return ok && e.Code == "23503"
}
