package nodes_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// TestJR_4_Retry holds that a machine that calls again refreshes its request.
func TestJR_4_Retry(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		tok, m := p.mint(t, p.pool(t, nil), nil), whiteBox(t)
		d := p.defers(t, tok, m, bogus)
		for i := range 3 {
			p.advance(15 * time.Second)
			if got := p.another(t).defers(t, tok, m, bogus); got.RequestID != d.RequestID {
				t.Errorf("%+v, and was %+v", got, d)
			}
			q := p.request(t, tok, d.RequestID)
			if q.Seen != int64(i+2) || !q.LastSeenAt.Equal(p.db.Now()) || !q.CreatedAt.Equal(noon) || !q.ExpiresAt.Equal(noon.Add(24*time.Hour)) {
				t.Errorf("%+v", q)
			}
		}
		p.wantEvents(t, "created")
	})
}

// TestJR_4_ChangedClaims holds that a machine that says something else of itself
// makes another request, and that this voids an approval.
func TestJR_4_ChangedClaims(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		tok, m := p.mint(t, p.pool(t, nil), nil), whiteBox(t)
		first := p.defers(t, tok, m, bogus)
		m.claims.Hostname = strictjson.Some("rack7")
		second := p.defers(t, tok, m, bogus)
		p.approve(t, tok, second)
		m.claims.Environment = strictjson.Some(wire.ClaimedEnvironmentKubernetes)
		third := p.defers(t, tok, m, bogus)
		for _, d := range []*api.Deferral{first, second} {
			if q := p.request(t, tok, d.RequestID); q.Status != wire.JoinRequestStatusCanceled || d.RequestID == third.RequestID {
				t.Errorf("%+v", q)
			}
		}
		p.wantEvents(t, "created", "canceled claims_changed", "created", "approved", "canceled claims_changed", "created")
		p.approve(t, tok, third)
		p.admit(t, tok, m)
	})
}

// TestJR_4_Reinstalled holds that a reinstalled machine does not wait for its
// former request: the new one takes its place, and that of its approval.
func TestJR_4_Reinstalled(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.poolCalled(t, "lab", "discovery")
		tok, other := p.mint(t, pool, nil), p.mint(t, pool, nil)
		elsewhere := p.mint(t, p.poolCalled(t, "other", "discovery"), nil)
		m := newMachine(t, nil)
		untouched := []*api.Deferral{p.defers(t, elsewhere, m.reinstalled(t), unknown), p.defers(t, elsewhere, newMachine(t, nil), unknown)}
		first := p.defers(t, tok, m, unknown)
		p.approve(t, tok, first)
		second := p.defers(t, tok, m.reinstalled(t), unknown)
		third := p.defers(t, other, m.reinstalled(t), unknown) // by another token of the pool, too
		for _, d := range []*api.Deferral{first, second} {
			if q := p.request(t, tok, d.RequestID); q.Status != wire.JoinRequestStatusCanceled {
				t.Errorf("%+v", q)
			}
		}
		if q := p.request(t, other, third.RequestID); q.Status != wire.JoinRequestStatusPending {
			t.Errorf("%+v", q)
		}
		for _, d := range untouched {
			if q := p.request(t, elsewhere, d.RequestID); q.Status != wire.JoinRequestStatusPending {
				t.Errorf("of another pool: %+v", q)
			}
		}
		p.wantEvents(t, "created", "created", "created", "approved", "canceled replaced", "created", "canceled replaced", "created")
		// The former request is no way in any more: it makes a new one.
		if got := p.defers(t, tok, m, unknown); got.RequestID == first.RequestID {
			t.Errorf("%+v", got)
		}
	})
}

// wantFull holds that the queue has no room for a machine, that it is told when to come back, and the audit why.
func (p *process) wantFull(t testing.TB, tok token, m machine) {
	t.Helper()
	p.causes()
	err := p.refused(t, tok, m)
	if wantCode(t, err, problem.RateLimited); fault.From(err).RetryAfter != time.Minute {
		t.Errorf("it is to come back after %s", fault.From(err).RetryAfter)
	}
	p.wantCauses(t, "queue_full")
}

// TestJR_4_LeakedTokenIsCapped holds that no more machines wait by a token than
// it has uses left, and that whoever makes requests all the time comes to an end.
func TestJR_4_LeakedTokenIsCapped(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		tok := p.mint(t, pool, func(tok *store.JoinToken) { tok.MaxUses, tok.ExpiresAt = 3, noon.Add(48*time.Hour) })
		first := whiteBox(t)
		d := p.defers(t, tok, first, bogus)
		p.defers(t, tok, whiteBox(t), bogus)
		p.defers(t, tok, whiteBox(t), bogus)
		p.wantFull(t, tok, whiteBox(t))
		p.defers(t, tok, first, bogus) // who waits may go on
		p.deny(t, tok, d)
		p.defers(t, tok, whiteBox(t), bogus)
		p.admit(t, tok, newMachine(t, nil)) // takes a use, and with it a place
		p.wantFull(t, tok, whiteBox(t))
		p.advance(24 * time.Hour) // those that wait have expired, noted or not
		again := whiteBox(t)
		p.defers(t, tok, again, bogus)

		made := 6
		for ; made <= 1000; made++ {
			again.claims.Hostname = strictjson.Some(fmt.Sprintf("rack%d", made))
			if _, err := p.join(t.Context(), tok.bearer, again); err != nil {
				break
			}
		}
		if made != 100+1 {
			t.Errorf("%d requests were made by one token", made-1)
		}
		again.claims.Hostname = strictjson.Some("rack-again")
		p.wantFull(t, tok, again)
		p.wantFull(t, tok, whiteBox(t))
		if rows := len(p.requestsOf(t, pool, true)); rows != 100 {
			t.Errorf("%d requests are in the table, want 100", rows)
		}
	})
}

// TestJR_4_PoolIsCapped holds that at most 1000 machines wait in a pool, by
// whatever tokens, and that another pool is not concerned.
func TestJR_4_PoolIsCapped(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		tok, other := p.mint(t, pool, usable(10_000)), p.mint(t, pool, usable(10_000))
		p.seedRequests(t, tok, 600, "pending", time.Hour)
		p.seedRequests(t, other, 399, "approved", time.Hour)
		last := whiteBox(t)
		d := p.defers(t, tok, last, bogus)
		p.wantFull(t, tok, whiteBox(t))
		p.wantFull(t, p.mint(t, pool, nil), whiteBox(t))
		p.admit(t, tok, newMachine(t, nil)) // who need not wait gets in
		p.defers(t, p.mint(t, p.poolCalled(t, "other", "token"), nil), whiteBox(t), bogus)
		p.approve(t, tok, d)
		p.wantFull(t, tok, whiteBox(t)) // an approval waits, too
		p.admit(t, tok, last)
		p.defers(t, tok, whiteBox(t), bogus)
	})
}

// TestJR_4_FirstCallsAtOnce holds that a machine that calls several times at
// once, over two processes, waits by one request, also in the last place of the queue.
func TestJR_4_FirstCallsAtOnce(t *testing.T) {
	t.Parallel()
	eachRunning(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		processes := []*process{p, p.another(t)}
		for range 8 {
			tok, m := p.mint(t, pool, usable(1)), whiteBox(t)
			var mu sync.Mutex
			requests := map[string]int{}
			together(8, func(i int) {
				out, err := processes[i%2].join(t.Context(), tok.bearer, m)
				if err != nil || out.Pending == nil {
					t.Errorf("%+v, %v", out, err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				requests[out.Pending.RequestID]++
			})
			if len(requests) != 1 {
				t.Fatalf("one machine waits by %v", requests)
			}
			for id := range requests {
				if q := p.request(t, tok, id); q.Seen != 8 {
					t.Errorf("it was seen %d times", q.Seen)
				}
			}
		}
	})
}
