package main_test

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A load is clients that create tokens, each call under a key of its own, and
// repeat a call that was refused with UNAVAILABLE until it is answered.
type load struct {
	servers []*server
	key     string

	created, unavailable atomic.Int64
	stopping             atomic.Bool
	clients              sync.WaitGroup

	mu   sync.Mutex
	made map[string]string // by idempotency key: the record
}

func (l *load) start(t testing.TB, clients int) {
	l.made = map[string]string{}
	for i := range clients {
		l.clients.Go(func() {
			for n := 0; !l.stopping.Load() && !t.Failed(); n++ {
				l.create(t, l.servers[i%len(l.servers)], fmt.Sprintf("client-%d-%d", i, n))
			}
		})
	}
}

// create repeats one call until it is answered with 200.
func (l *load) create(t testing.TB, s *server, key string) {
	tick, timer := time.NewTicker(50*time.Millisecond), time.NewTimer(2*patience)
	defer tick.Stop()
	defer timer.Stop()
	for {
		a, err := s.try(t.Context(), l.key, "joinTokens.create", mint(key))
		if err != nil {
			t.Errorf("%s: a call was not answered at all: %v", key, err)
			return
		}
		if a.status == 200 {
			l.mu.Lock()
			l.made[key] = string(ok[minted](t, a).JoinToken)
			l.mu.Unlock()
			l.created.Add(1)
			return
		}
		a.refused(t, "UNAVAILABLE")
		if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || seconds < 1 {
			t.Errorf("Retry-After is %q", a.header.Get("Retry-After"))
		}
		l.unavailable.Add(1)
		select {
		case <-tick.C:
		case <-timer.C:
			t.Errorf("%s: still UNAVAILABLE: %s", key, a.body)
			return
		}
	}
}

// more waits until a counter has grown by n.
func (l *load) more(t testing.TB, what string, counter *atomic.Int64, n int64) {
	t.Helper()
	want := counter.Load() + n
	eventually(t, fmt.Sprintf("there are %d more %s", n, what), func() bool { return t.Failed() || counter.Load() >= want })
}

// stop ends the load; each client finishes its call.
func (l *load) stop() {
	l.stopping.Store(true)
	l.clients.Wait()
}

// TestPostgres_RestartUnderLoad holds that while the database is away calls are
// UNAVAILABLE, that afterwards they work again by themselves, and that nothing
// is lost, doubled or half there.
func TestPostgres_RestartUnderLoad(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	servers := []*server{serve(t, c.url())}
	ops := withLab(t, servers[0], servers[0].admin(t))
	servers = append(servers, serve(t, c.url()))
	l := &load{servers: servers, key: ops}
	l.start(t, 8)
	defer l.stop()
	for range 3 {
		l.more(t, "tokens", &l.created, 100)
		c.stop(t)
		l.more(t, "calls that are UNAVAILABLE", &l.unavailable, 16)
		for _, s := range servers {
			s.get(t, "/readyz").refused(t, "UNAVAILABLE")
			if a := s.get(t, "/healthz"); a.status != 200 {
				t.Errorf("/healthz answers %d", a.status)
			}
		}
		c.start(t)
	}
	l.more(t, "tokens", &l.created, 100)
	l.stop()
	for _, s := range servers {
		if a := s.get(t, "/readyz"); a.status != 200 {
			t.Errorf("/readyz answers %d", a.status)
		}
	}
	l.holds(t, c.url())
}

// holds checks that what was answered is in the database once, with its event
// and its decision, and nothing else.
func (l *load) holds(t *testing.T, url string) {
	db := connect(t, url)
	wantNumber(t, db, len(l.made), "SELECT count(*) FROM join_tokens")
	wantNumber(t, db, len(l.made), "SELECT count(*) FROM events WHERE type = 'security.join-token.created'")
	wantNumber(t, db, len(l.made), createDecisions)
	wantNumber(t, db, 0, tokensWithoutOneEvent)
	before := decisions(t, l.servers)
	for key, record := range l.made {
		m := ok[minted](t, l.servers[0].call(t, l.key, "joinTokens.create", mint(key)))
		if m.Token != "" || string(m.JoinToken) != record {
			t.Errorf("%s: the repeated call has token %t and the record\n%s\nwant none and\n%s", key, m.Token != "", m.JoinToken, record)
		}
	}
	if after := decisions(t, l.servers); after != before {
		t.Errorf("repeated calls made %v decisions", after-before)
	}
	positioned(t, db)
	wantNumber(t, db, number(t, db, "SELECT last FROM event_position"), "SELECT count(*) FROM events")
	wantNumber(t, db, number(t, db, "SELECT last FROM event_position"), "SELECT max(position) FROM events")
}

// TestPostgres_StreamsOutliveARestart holds that a stream is delayed by a restart
// of the database, not ended, and misses nothing.
func TestPostgres_StreamsOutliveARestart(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	s := serve(t, c.url())
	ops := withLab(t, s, s.admin(t))
	positioned(t, connect(t, c.url()))
	w := watch(t, s, ops)
	l := &load{servers: []*server{s}, key: ops}
	l.start(t, 2)
	defer l.stop()
	l.more(t, "tokens", &l.created, 5)
	c.stop(t)
	l.more(t, "calls that are UNAVAILABLE", &l.unavailable, 1)
	c.start(t)
	l.more(t, "tokens", &l.created, 5)
	l.stop()
	for range l.made {
		w.next(t, "security.join-token.created")
	}
}
