package server_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/server"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// TestChores_OfTwoReplicas lets two servers do the chores of one database: what
// is due is done by whichever it is, once, and whoever waits hears of it.
func TestChores_OfTwoReplicas(t *testing.T) {
	t.Parallel()
	eachTLS(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		token, _ := s.bearerOf(t, ops, nil)
		m := nobody(t)
		pending := s.deferred(t, token, m)
		if err := s.stop(t); err != nil {
			t.Fatal(err)
		}
		s.clock.Advance(24 * time.Hour)
		one, two := s.replica(t, withAuto), s.replica(t, withAuto)
		one.client, two.client = clientOf(t, one.trusting(t)), clientOf(t, two.trusting(t))
		const expired = "security.join-request.expired"
		message := one.watch(t, ops, object{"tenantId": "acme", "after": "ev_0", "types": []string{expired}}).next(t)
		if e := message.event(t); e.Subject != pending.RequestID || e.Poolid == nil || *e.Poolid != "lab" {
			t.Errorf("the event is %s", message.data)
		}
		if n := one.count(t, "join_requests WHERE status = 'expired' AND ended_at IS NOT NULL"); n != 1 {
			t.Errorf("%d requests are expired", n)
		}
		for _, replica := range []*running{one, two} {
			if err := replica.stop(t); err != nil {
				t.Error(err)
			}
		}
		if n := len(s.published(t, "acme", expired)); n != 1 {
			t.Errorf("%d events", n)
		}
	})
}

// lock keeps everybody else from writing join requests, until release.
func (s *running) lock(t testing.TB) (release func()) {
	t.Helper()
	conn, err := s.sql(t).Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	run := func(statements ...string) {
		for _, statement := range statements {
			if _, err := conn.ExecContext(context.Background(), statement); err != nil {
				t.Error(err)
			}
		}
	}
	if s.kind == storetest.SQLite {
		run("BEGIN IMMEDIATE")
	} else {
		run("BEGIN", "LOCK TABLE join_requests IN ACCESS EXCLUSIVE MODE")
	}
	return sync.OnceFunc(func() {
		run("ROLLBACK")
		conn.Close()
	})
}

// TestChores_DoNotKeepAServer stops a server whose chores wait for a database
// that somebody else has locked.
func TestChores_DoNotKeepAServer(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		s := start(t, kind)
		if err := s.stop(t); err != nil {
			t.Fatal(err)
		}
		var release func()
		held := s.replica(t, func(c *setup) {
			c.adjust = func(*server.Server) {
				release = s.lock(t)
				t.Cleanup(release) // before the server is closed
			}
		})
		for waits := kind == storetest.SQLite; !waits; { // there one cannot see that somebody waits
			waits = s.count(t, "pg_locks WHERE NOT granted AND relation = 'join_requests'::regclass") > 0
		}
		held.cancel()
		within(t, "the end", held.ended)
		release()
		if held.ran != nil {
			t.Errorf("the server ended with %v", held.ran)
		}
	})
}
