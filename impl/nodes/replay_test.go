package nodes_test

import (
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/store"
)

// wantSame holds that a repeated join was answered with the same node, certificate and dates.
func wantSame(t testing.TB, got, first *api.Admission) {
	t.Helper()
	if !got.Replayed {
		t.Error("the answer does not say that it is a repeated one")
	}
	same := *got
	same.Replayed, same.ServerTime = first.Replayed, first.ServerTime
	if same != *first {
		t.Errorf("the same request again gives\n%+v, and gave\n%+v", same, *first)
	}
}

// TestNJ_3_SameRequestSameNode holds that the same request and token again give
// the same node, serial and dates, in another process, too, and use the token once.
func TestNJ_3_SameRequestSameNode(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		tok := p.mint(t, p.pool(t, nil), usable(2))
		m := newMachine(t, nil)
		first := p.admit(t, tok, m)
		if first.Replayed {
			t.Error("the first answer says that it is a repeated one")
		}
		for i, process := range []*process{p, p.another(t), p.another(t)} {
			p.advance(9 * time.Minute)
			got := process.admit(t, tok, m)
			wantSame(t, got, first)
			if !got.ServerTime.Equal(noon.Add(time.Duration(i+1) * 9 * time.Minute)) {
				t.Errorf("the server's time is %s", got.ServerTime)
			}
		}
		// The request counts, not what comes with it: another signature, other claims.
		again := m.asking(t, emptyTemplate)
		again.claims = claims{}
		wantSame(t, p.admit(t, tok, again), first)
		if uses := p.uses(t, tok); uses != 1 {
			t.Errorf("%d uses, want 1", uses)
		}
		if n := len(p.eventsOf(t, "acme", "security.node.joined")); n != 1 {
			t.Errorf("%d nodes have joined", n)
		}
		p.wantCauses(t)
	})
}

// TestNJ_3_ReplayOutlivesTheToken holds that a machine whose answer was lost
// gets it although the token was used up or has expired, and not when it was revoked.
func TestNJ_3_ReplayOutlivesTheToken(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		tok := p.mint(t, p.pool(t, nil), func(tok *store.JoinToken) {
			tok.MaxUses, tok.ExpiresAt = 1, noon.Add(time.Minute)
		})
		m := newMachine(t, nil)
		first := p.admit(t, tok, m)
		p.advance(20 * time.Minute)
		wantSame(t, p.admit(t, tok, m), first)
		p.revoke(t, tok)
		wantCode(t, p.refused(t, tok, m), problem.Unauthenticated)
		p.wantCauses(t, "revoked")
	})
}

// TestNJ_3_NotForEver holds that a join cannot be repeated once it was
// confirmed, nor 30 minutes after it.
func TestNJ_3_NotForEver(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		tok := p.mint(t, p.pool(t, nil), nil)
		confirmed, forgotten := newMachine(t, nil), newMachine(t, nil)
		p.confirm(t, p.admit(t, tok, confirmed))
		first := p.admit(t, tok, forgotten)
		wantCode(t, p.refused(t, tok, confirmed), problem.Conflict)
		p.advance(30*time.Minute - time.Microsecond)
		wantSame(t, p.admit(t, tok, forgotten), first)
		p.advance(time.Microsecond)
		wantCode(t, p.refused(t, tok, forgotten), problem.Conflict)
		p.wantCauses(t, "already_joined", "already_joined")
		if uses := p.uses(t, tok); uses != 2 {
			t.Errorf("%d uses, want 2", uses)
		}
	})
}

// TestNJ_3_OneOfManyAtOnce holds that 16 calls with one request at once, over
// two processes, make one node with one certificate, and use the token once.
func TestNJ_3_OneOfManyAtOnce(t *testing.T) {
	t.Parallel()
	const calls, rounds = 16, 12
	eachRunning(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		processes := []*process{p, p.another(t)}
		for range rounds {
			tok, m := p.mint(t, pool, usable(1)), newMachine(t, nil)
			var mu sync.Mutex
			answers := map[api.Admission]int{}
			fresh := 0
			together(calls, func(i int) {
				out, err := processes[i%2].join(t.Context(), tok.bearer, m)
				if err != nil || out.Admitted == nil {
					t.Errorf("%+v, %v", out, err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				a := *out.Admitted
				if !a.Replayed {
					fresh++
				}
				a.Replayed, a.ServerTime = false, time.Time{}
				answers[a]++
			})
			if uses := p.uses(t, tok); len(answers) != 1 || fresh != 1 || uses != 1 {
				t.Fatalf("%d answers, %d of them are fresh, %d uses: %v", len(answers), fresh, uses, answers)
			}
		}
		if n := p.count(t, pool); n != rounds {
			t.Errorf("%d nodes, want %d", n, rounds)
		}
	})
}

// TestNJ_3_ForgottenNode holds that a machine that repeats its join when its
// node was removed and forgotten is turned away, and not asked to come again.
func TestNJ_3_ForgottenNode(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		tok, m := p.mint(t, pool, nil), newMachine(t, nil)
		p.remove(t, p.admit(t, tok, m))
		p.advance(31 * 24 * time.Hour)
		must(t, p.Forget(t.Context()))
		wantCode(t, p.refused(t, tok, m), problem.Unauthenticated)
		p.wantCauses(t, "node_removed")
	})
}
