package main_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// stopTime is how long a stop may take at most.
const stopTime = 10 * time.Second

// stops sends a signal and checks that the process ends in time, with 0.
func (s *server) stops(t testing.TB, signal syscall.Signal) {
	t.Helper()
	asked := time.Now()
	s.signal(t, signal)
	if code := s.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(asked); took > stopTime {
		t.Errorf("the stop took %v", took)
	}
}

// TestStop_WhileThePostgresDoesNotAnswer holds that a server stops in time also
// where its database keeps connections open and says nothing.
func TestStop_WhileThePostgresDoesNotAnswer(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := serve(t, c.url())
	ops := withLab(t, s, s.admin(t))
	auditor := newKey(t, s, s.admin(t), "eve", "pool-auditor")
	w := watch(t, s, ops)
	s.call(t, auditor, "joinTokens.create", mint("denied")).refused(t, "PERMISSION_DENIED") // to be recorded at the end
	execute(t, connect(t, c.url()), "BEGIN; LOCK TABLE join_tokens IN SHARE MODE")
	cut := make(chan struct{})
	go func() {
		defer close(cut)
		_, _ = s.try(t.Context(), ops, "joinTokens.create", mint("hangs")) // whatever comes of it
	}()
	waiting := connect(t, c.url())
	eventually(t, "the call waits for the lock", func() bool {
		return number(t, waiting, "SELECT count(*) FROM pg_locks WHERE NOT granted") > 0
	})
	c.freeze(t)
	s.stops(t, syscall.SIGTERM)
	within(t, "the end of the call", cut)
	within(t, "the end of the stream", w.ended)
}

// TestStop_WhileThePostgresIsAway is the same with a database that is gone.
func TestStop_WhileThePostgresIsAway(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := serve(t, c.url())
	withLab(t, s, s.admin(t))
	auditor := newKey(t, s, s.admin(t), "eve", "pool-auditor")
	s.call(t, auditor, "joinTokens.create", mint("denied")).refused(t, "PERMISSION_DENIED") // to be recorded at the end
	c.stop(t)
	s.stops(t, syscall.SIGTERM)
}

// callTime is how long a call may take at most to be answered.
const callTime = 15 * time.Second

// TestPostgres_CallsDoNotWaitForEver holds that where the database keeps
// connections open and says nothing, calls are UNAVAILABLE, and that they work
// by themselves once it answers again.
func TestPostgres_CallsDoNotWaitForEver(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := serve(t, c.url())
	ops := withLab(t, s, s.admin(t))
	thaw := c.freeze(t)
	began := time.Now()
	together(8, func(i int) {
		a, err := s.try(t.Context(), ops, "joinTokens.create", mint(fmt.Sprint("frozen-", i)))
		if err != nil {
			t.Errorf("no answer: %v", err)
			return
		}
		if a.refused(t, "UNAVAILABLE"); a.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	})
	s.get(t, "/readyz").refused(t, "UNAVAILABLE")
	if took := time.Since(began); took > 2*callTime {
		t.Errorf("the answers took %v", took)
	}
	thaw()
	l := &load{servers: []*server{s}, key: ops}
	l.start(t, 2)
	l.more(t, "tokens", &l.created, 10)
	l.stop()
	db := connect(t, c.url())
	positioned(t, db)
	wantNumber(t, db, 0, tokensWithoutOneEvent)
}

// TestPostgres_DeadConnectionsAreReplaced holds that a server whose connections
// have all gone silent for ever, as after a failover, makes new ones, for calls
// and for events.
func TestPostgres_DeadConnectionsAreReplaced(t *testing.T) {
	t.Parallel()
	w := newWire(t, storetest.EmptyURL(t, storetest.Postgres))
	s := serve(t, w.url)
	ops := withLab(t, s, s.admin(t))
	race(t, []*server{s}, ops, "joinTokens.create", mint("opens-many"))
	w.swallow()
	l := &load{servers: []*server{s}, key: ops}
	l.start(t, 24) // as many as there are connections: each finds one of the dead
	l.more(t, "tokens", &l.created, 100)
	l.stop()
	positioned(t, connect(t, w.url))
}

// TestPostgres_TooFewConnectionsAreUnavailable holds that where the database
// refuses more connections, calls are refused for the moment, and none is lost.
func TestPostgres_TooFewConnectionsAreUnavailable(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	db := connect(t, c.url())
	execute(t, db, "CREATE ROLE few LOGIN CONNECTION LIMIT 4")
	execute(t, db, "GRANT ALL ON SCHEMA public TO few")
	s := serve(t, c.urlOf("few", ""))
	l := &load{servers: []*server{s}, key: withLab(t, s, s.admin(t))}
	l.start(t, 24)
	l.more(t, "calls that are UNAVAILABLE", &l.unavailable, 1)
	l.more(t, "tokens", &l.created, 100)
	l.stop()
	l.holds(t, c.url())
}

// TestDB_WrongPasswordIsRefused needs a Postgres that asks for one.
func TestDB_WrongPasswordIsRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	db := connect(t, c.url())
	execute(t, db, "CREATE ROLE "+sealed+" LOGIN PASSWORD 'right'")
	execute(t, db, "GRANT ALL ON SCHEMA public TO "+sealed)
	e := runWith(t, setting{}, "serve", "--listen", "127.0.0.1:0", "--db", c.urlOf(sealed, password))
	e.refused(t, 1, "--db", `as user "sealed"`, "password authentication failed")
	wantNoPassword(t, e.stderr)
	e = runWith(t, setting{}, "serve", "--listen", "127.0.0.1:0", "--db", c.urlOf(sealed, ""))
	e.refused(t, 1, "--db", `as user "sealed"`, "password")
	if e := runWith(t, setting{}, "migrate", "--db", c.urlOf(sealed, "right")); e.code != 0 {
		t.Errorf("the right password: ended with %d: %s", e.code, e.stderr)
	}
}
