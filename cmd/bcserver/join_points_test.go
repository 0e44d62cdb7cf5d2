package main_test

import (
	"database/sql"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// crashOnPostgres holds the server by what comes over its connection to the
// database, so that each point is exactly what it says:
//   - claimed: the COMMIT of the claim is carried out, which another connection
//     sees, and the server never hears of it. What it would do next is to sign.
//   - signed: the statement that stores the chain is caught, and has a
//     certificate. The database never hears of it.
//   - stored: that statement is carried out, and the server never hears of it.
//     What it would do next is to answer.
func crashOnPostgres(t *testing.T, point string) (c crash) {
	db := storetest.EmptyURL(t, storetest.Postgres)
	survivor := joinable(t, t.TempDir(), db)
	c.ops = withLab(t, survivor, survivor.admin(t))
	c.another = func() *server { return survivor }
	u, err := url.Parse(db)
	if err != nil {
		t.Fatal(err)
	}
	const storesChain = "UPDATE node_certificates SET chain = '-----BEGIN CERTIFICATE-----"
	r := newRelay(t, u.Host, map[string]stall{
		afterClaim: {after: []string{`INSERT INTO "join_uses"`, "COMMIT\x00"}},
		afterSign:  {after: []string{storesChain}, request: true},
		afterStore: {after: []string{storesChain}},
	}[point])
	u.Host = r.address
	s := joinable(t, t.TempDir(), u.String())
	c.comes(t, survivor, connect(t, db))
	r.armed.Store(true)
	call := s.joins(t, c.token, c.machine)
	held := within(t, "the point", r.stalled)
	c.late = &held
	eventually(t, "the database has come to the point", func() bool {
		return c.ledger.claimed(t) && (point != afterStore || c.ledger.stored(t))
	})
	s.dies(t)
	unanswered(t, call)
	return c
}

// crashOnSQLite has no connection to hold the server by:
//   - claimed: the test has the write lock from between the two transactions of
//     the join until the server is dead. Whether it had begun to sign cannot be
//     told; it could not store.
//   - signed: a trigger makes the statement that stores the chain, which has it,
//     run without an end. The file in which SQLite keeps what is to be
//     committed grows, which says that the server is there.
//   - stored: the chain is there, and all that the server says to the machine is lost.
func crashOnSQLite(t *testing.T, point string) (c crash) {
	db, data := storetest.EmptyURL(t, storetest.SQLite), t.TempDir()
	s := joinable(t, data, db)
	c.ops = withLab(t, s, s.admin(t))
	c.another = func() *server { return joinable(t, data, db) }
	conn := connect(t, db)
	switch point {
	case afterClaim:
		lockedAfterClaim(t, &c, s, conn)
		execute(t, conn, "ROLLBACK")
	case afterSign:
		c.comes(t, s, conn)
		execute(t, conn, endlessStore)
		wal := strings.TrimPrefix(db, "sqlite:") + "-wal"
		before := sizeOf(t, wal)
		call := s.joins(t, c.token, c.machine)
		eventually(t, "the server stores", func() bool { return sizeOf(t, wal) > before+endlessBytes/2 })
		s.dies(t)
		unanswered(t, call)
		execute(t, conn, "DROP TRIGGER endless")
	case afterStore:
		r := newRelay(t, s.address(), stall{})
		s.url = "https://" + r.address
		c.comes(t, s, conn) // and opens the connection
		r.armed.Store(true)
		call := s.joins(t, c.token, c.machine)
		within(t, "the call is with the server", r.stalled)
		soon(t, "the chain is stored", func() bool { return c.ledger.stored(t) })
		s.dies(t)
		r.cut()
		unanswered(t, call)
	}
	return c
}

// lockedAfterClaim lets machines join until the test has taken the write lock
// after a claim and before the chain was stored, and kills the server.
func lockedAfterClaim(t *testing.T, c *crash, s *server, conn *sql.DB) {
	t.Helper()
	for range 100 {
		c.comes(t, s, conn)
		const uses = "SELECT count(*) FROM join_uses" // the quickest look there is
		before := number(t, conn, uses)
		call := s.joins(t, c.token, c.machine)
		soon(t, "the join is claimed", func() bool { return number(t, conn, uses) > before })
		execute(t, conn, "BEGIN IMMEDIATE")
		if !c.ledger.stored(t) {
			s.dies(t)
			unanswered(t, call)
			return
		}
		execute(t, conn, "ROLLBACK")
		if err := within(t, "the answer", call); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the server was always faster")
}

// endlessStore keeps whoever stores a chain: it writes more than SQLite keeps
// in memory, then counts.
const (
	endlessBytes = 16 << 20
	endlessStore = `CREATE TABLE IF NOT EXISTS endless_rows (n INTEGER);
		CREATE TABLE IF NOT EXISTS endless_bytes (b BLOB);
		WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4096) INSERT INTO endless_rows SELECT n FROM r;
		CREATE TRIGGER endless BEFORE UPDATE OF chain ON node_certificates BEGIN
			INSERT INTO endless_bytes SELECT zeroblob(4096) FROM endless_rows;
			SELECT count(*) FROM endless_rows AS a, endless_rows AS b, endless_rows AS c, endless_rows AS d WHERE a.n + b.n + c.n + d.n < 0;
		END`
)

func sizeOf(t testing.TB, file string) int64 {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// dies ends the server without a warning.
func (s *server) dies(t testing.TB) {
	t.Helper()
	s.signal(t, syscall.SIGKILL)
	s.exit(t)
}

// joins lets a machine join in the background. The channel has an error where
// there is no whole answer.
func (s *server) joins(t testing.TB, token string, n newcomer) <-chan error {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := s.tryJoin(t.Context(), token, n)
		ended <- err
	}()
	return ended
}

// unanswered checks that a machine that joins hears nothing.
func unanswered(t testing.TB, call <-chan error) {
	t.Helper()
	if err := within(t, "the end of the call", call); err == nil {
		t.Error("the machine has an answer")
	}
}
