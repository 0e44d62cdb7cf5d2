package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/lib/pq"
)

// postgresGrace is how long the server has to obey when a call is cancelled.
const postgresGrace = time.Second

// guardedConnector makes connections on which no call outlives its context by
// more than postgresGrace. The driver asks the server once to cancel the
// statement, then waits for the answer however long that takes: without end
// where the request came before the statement, or the server is cut off.
type guardedConnector struct{ *pq.Connector }

func newGuardedConnector(config pq.Config) (driver.Connector, error) {
	connector, err := pq.NewConnectorConfig(config)
	if err != nil {
		return nil, err
	}
	connector.Dialer(dialer{})
	return guardedConnector{connector}, nil
}

// Connect implements [driver.Connector].
func (c guardedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	var network net.Conn
	conn, err := c.Connector.Connect(context.WithValue(ctx, networkKey{}, &network))
	if err != nil {
		return nil, err
	}
	full, ok := conn.(postgresConn)
	if !ok || network == nil {
		_ = conn.Close()
		return nil, fmt.Errorf("a %T is not the connection that was expected", conn)
	}
	return &guardedConn{full, network}, nil
}

// networkKey finds where in a context of Connect the network connection goes.
type networkKey struct{}

// dialer tells Connect which network connection it made.
type dialer struct{}

// Dial implements [pq.Dialer].
func (dialer) Dial(network, address string) (net.Conn, error) { return net.Dial(network, address) }

// DialTimeout implements [pq.Dialer].
func (dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	return net.DialTimeout(network, address, timeout)
}

// DialContext implements [pq.DialerContext].
func (dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if place, ok := ctx.Value(networkKey{}).(*net.Conn); ok && err == nil {
		*place = conn
	}
	return conn, err
}

// postgresConn is what database/sql uses of the driver's connection.
type postgresConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type guardedConn struct {
	postgresConn
	network net.Conn
}

// guard cuts the connection off when ctx has ended and release is not called in
// time. The driver then finds it broken, and database/sql drops it.
func (c *guardedConn) guard(ctx context.Context) (release func()) {
	released := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(postgresGrace)
		defer timer.Stop()
		select {
		case <-released:
		case <-timer.C:
			_ = c.network.Close()
		}
	})
	return sync.OnceFunc(func() {
		stop()
		close(released)
	})
}

// ExecContext implements [driver.ExecerContext].
func (c *guardedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	defer c.guard(ctx)()
	return c.postgresConn.ExecContext(ctx, query, args)
}

// QueryContext implements [driver.QueryerContext].
func (c *guardedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	release := c.guard(ctx)
	rows, err := c.postgresConn.QueryContext(ctx, query, args)
	if err != nil {
		release()
		return nil, err
	}
	return guardedRows{rows, release}, nil
}

// BeginTx implements [driver.ConnBeginTx].
func (c *guardedConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	defer c.guard(ctx)()
	tx, err := c.postgresConn.BeginTx(ctx, options)
	if err != nil {
		return nil, err
	}
	return guardedTx{tx, func() func() { return c.guard(ctx) }}, nil
}

// guardedRows are guarded until they are closed.
type guardedRows struct {
	driver.Rows
	release func()
}

// Close implements [driver.Rows].
func (r guardedRows) Close() error {
	defer r.release()
	return r.Rows.Close()
}

// guardedTx ends under the context with which it began.
type guardedTx struct {
	driver.Tx
	guard func() (release func())
}

// Commit implements [driver.Tx].
func (tx guardedTx) Commit() error {
	defer tx.guard()()
	return tx.Tx.Commit()
}

// Rollback implements [driver.Tx].
func (tx guardedTx) Rollback() error {
	defer tx.guard()()
	return tx.Tx.Rollback()
}
