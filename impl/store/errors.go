package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/bettercompute/bettercompute/impl/fault"
)

// failure puts the error of a statement in the form in which it leaves the
// store: the context's own error where that has ended, UNAVAILABLE where the
// database cannot be reached, and otherwise a plain error that says what was
// being done. A refusal by the store itself passes unchanged.
func failure(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*fault.Error](err); ok {
		return known
	}
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("store: %s: %w (%v)", doing, ended, err)
	}
	err = fmt.Errorf("store: %s: %w", doing, err)
	if unreachable(err) {
		return fault.Unavailable(err)
	}
	return err
}

// unreachable reports whether err says that the database is not there at the
// moment: a retry may help.
func unreachable(err error) bool {
	var network net.Error
	return errors.Is(err, driver.ErrBadConn) ||
		errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &network) ||
		strings.HasSuffix(err.Error(), "sql: database is closed") || // database/sql has no value for it
		postgresUnavailable(err) || sqliteUnavailable(err)
}

// refersToNothing reports whether a row was refused because what it belongs to
// does not exist.
func refersToNothing(err error) bool { return postgresForeignKey(err) || sqliteForeignKey(err) }
