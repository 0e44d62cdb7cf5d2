package main_test

import (
	"testing"

	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// over is a way to the server over a relay that may break, for a client of its
// own with one connection, which is open.
func (s *server) over(t testing.TB) (*server, *relay) {
	t.Helper()
	r := newRelay(t, s.address(), stall{})
	way := *s
	way.url, way.client = "https://"+r.address, trusting(t, s.bundle())
	way.get(t, "/healthz")
	return &way, r
}

// TestNJ_3_JoinWhoseAnswerIsLost holds that a machine that is never told of its
// admission is told the same when it asks again, any server, as often as it likes.
func TestNJ_3_JoinWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		servers, ops := joinableReplicas(t, kind)
		db := connect(t, servers[0].db)
		way, r := servers[0].over(t)
		token, id := servers[0].joinToken(t, ops, 1)
		l, m := newLedger(db, id, servers[0].db), newNewcomer(t)
		r.armed.Store(true)
		call := way.joins(t, token, m)
		within(t, "the call is with the server", r.stalled)
		eventually(t, "the join is stored", func() bool { return l.stored(t) })
		r.cut()
		unanswered(t, call)
		l.read(t)
		for i := range 2 * len(servers) {
			s := servers[(i+1)%len(servers)]
			l.repeats(t, nil, m, s.joined(t, token, m))
		}
		last := servers[len(servers)-1]
		l.repeats(t, last, m, last.joined(t, token, m))
		l.usedOnce(t)
	})
}

// TestNJ_3_JoinThatIsHungUp holds that a machine whose connection breaks while it
// joins, wherever the server is then, is admitted once when it asks again.
func TestNJ_3_JoinThatIsHungUp(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		servers, ops := joinableReplicas(t, kind)
		db := connect(t, servers[0].db)
		for round := range 20 {
			way, r := servers[round%len(servers)].over(t)
			token, id := servers[0].joinToken(t, ops, 1)
			l, m := newLedger(db, id, servers[0].db), newNewcomer(t)
			r.armed.Store(true)
			call := way.joins(t, token, m)
			within(t, "the call is with the server", r.stalled)
			if round%4 < 2 {
				soon(t, "the join is claimed", func() bool { return l.claimed(t) })
			}
			r.cut()
			unanswered(t, call)
			s := servers[(round+1)%len(servers)]
			first := s.joined(t, token, m)
			l.read(t)
			again := s.joined(t, token, m)
			if first.NodeID != again.NodeID || first.Certificate != again.Certificate {
				t.Errorf("round %d: the answers are %+v and %+v", round, first, again)
			}
			l.repeats(t, s, m, again)
			l.usedOnce(t)
		}
	})
}
