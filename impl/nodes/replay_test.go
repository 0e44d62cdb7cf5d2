package nodes_test

import (
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/strictjson"
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
		again := m.request(t, emptyTemplate)
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

// TestNJ_3_ServerDiedUnsigned holds that what a server claimed and never signed
// is signed for the machine's retry, by another process, with the same serial and dates.
func TestNJ_3_ServerDiedUnsigned(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		tok, m := p.mint(t, p.pool(t, nil), usable(1)), newMachine(t, nil)
		claim := p.claimed(t, tok, m.parsed(t), m.tells()...)
		p.advance(4 * time.Minute)
		must(t, p.DropUnsigned(t.Context())) // too young
		a := p.another(t).admit(t, tok, m)
		leaf := chainOf(t, a.Certificate)[0]
		c := claim.Certificate
		if a.NodeID != claim.Node.ID || a.Serial != c.Serial || !a.Replayed || !leaf.NotBefore.Equal(c.NotBefore) || !leaf.NotAfter.Equal(c.NotAfter) {
			t.Errorf("%+v, want what was claimed: %+v", a, c)
		}
		must(t, p.recognizes(t, a, false))
		p.advance(10 * time.Minute)
		must(t, p.DropUnsigned(t.Context())) // is signed
		wantSame(t, p.admit(t, tok, m), a)
		if uses := p.uses(t, tok); uses != 1 {
			t.Errorf("%d uses, want 1", uses)
		}
	})
}

// TestNJ_3_SweptUnsigned holds that a claim that is never signed is undone after
// five minutes, that the token gets its use back, and that the machine joins anew.
func TestNJ_3_SweptUnsigned(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		tok, m := p.mint(t, pool, usable(1)), newMachine(t, nil)
		claim := p.claimed(t, tok, m.parsed(t), m.tells()...)
		p.advance(5*time.Minute + time.Second)
		must(t, p.DropUnsigned(t.Context()))
		if uses, n := p.uses(t, tok), p.count(t, pool); uses != 0 || n != 0 {
			t.Errorf("%d uses and %d nodes are left", uses, n)
		}
		a := p.admit(t, tok, m) // the same request and key
		if a.NodeID == claim.Node.ID || a.Serial == claim.Certificate.Serial || a.Replayed {
			t.Errorf("the swept claim comes back: %+v", a)
		}
		must(t, p.recognizes(t, a, false))
		if uses := p.uses(t, tok); uses != 1 {
			t.Errorf("%d uses, want 1", uses)
		}
		must(t, p.DropUnsigned(t.Context()))
		p.node(t, a)
	})
}

// TestNJ_3_SweptByEverybody holds that any number of processes may sweep at
// once: each claim is undone once, and a token gets back what was used.
func TestNJ_3_SweptByEverybody(t *testing.T) {
	t.Parallel()
	const claims, rounds = 12, 4
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		processes := []*process{p, p.another(t), p.another(t), p.another(t)}
		for range rounds {
			tok := p.mint(t, pool, func(tok *store.JoinToken) { tok.MaxUses, tok.ExpiresAt = 100, p.db.Now().Add(time.Hour) })
			signed := p.admit(t, tok, newMachine(t, nil))
			for range claims {
				m := newMachine(t, nil)
				p.claimed(t, tok, m.parsed(t), m.tells()...)
			}
			p.advance(6 * time.Minute)
			together(len(processes), func(i int) {
				if err := processes[i].DropUnsigned(t.Context()); err != nil {
					t.Error(err)
				}
			})
			if uses := p.uses(t, tok); uses != 1 {
				t.Errorf("%d uses are left, want that of the signed one", uses)
			}
			p.node(t, signed)
		}
		if n := p.count(t, pool); n != rounds {
			t.Errorf("%d nodes are left, want %d", n, rounds)
		}
	})
}

// TestNJ_3_SweptWhileReclaimed holds that sweeping a claim that never was signed
// does not take away the node that the same machine made of it since.
func TestNJ_3_SweptWhileReclaimed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		tok, m := p.mint(t, pool, reclaiming), newMachine(t, nil)
		claim := p.claimed(t, tok, m.parsed(t), m.tells()...)
		p.advance(2 * time.Minute)
		again := m.reinstalled(t) // it has lost its key, and takes over what it left
		a := p.admit(t, tok, again)
		if a.NodeID != claim.Node.ID {
			t.Errorf("it is another node: %s and %s", a.NodeID, claim.Node.ID)
		}
		other := p.claimed(t, tok, newMachine(t, nil).parsed(t))
		p.advance(4 * time.Minute)
		must(t, p.DropUnsigned(t.Context()))
		p.advance(4 * time.Minute)
		must(t, p.DropUnsigned(t.Context()))
		if n := p.node(t, a); n.ID != a.NodeID || n.RemovedAt != nil {
			t.Errorf("%+v", n)
		}
		must(t, p.recognizes(t, a, false))
		if uses, n := p.uses(t, tok), p.count(t, pool); uses != 1 || n != 1 {
			t.Errorf("%d uses and %d nodes, want 1 of each: %s was never signed either", uses, n, other.Node.ID)
		}
	})
}

// TestNJ_3_SweptReclaim holds that a take-over that was never signed gives the
// use back and leaves the node for its machine to join again.
func TestNJ_3_SweptReclaim(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		tok, m := p.mint(t, pool, reclaiming), newMachine(t, nil)
		first := p.admit(t, tok, m)
		p.advance(2 * time.Minute)
		again := m.reinstalled(t)
		claim := p.claim(tok, again.parsed(t), m.tells()...)
		node, err := p.db.Node(t.Context(), "acme", "lab", first.NodeID)
		must(t, err)
		claim.Node.ID, claim.Certificate.NodeID, claim.Reclaims = node.ID, node.ID, &node
		outcome, err := p.db.ClaimJoin(t.Context(), claim)
		must(t, err)
		if outcome != store.Claimed {
			t.Fatalf("the claim ends as %d", outcome)
		}
		p.advance(6 * time.Minute)
		must(t, p.DropUnsigned(t.Context()))
		if uses := p.uses(t, tok); uses != 1 {
			t.Errorf("%d uses, want that of the first join", uses)
		}
		a := p.admit(t, tok, again)
		if a.NodeID != first.NodeID || p.count(t, pool) != 1 {
			t.Errorf("it is another node: %s and %s", a.NodeID, first.NodeID)
		}
	})
}

// TestNJ_5_OneKeyOneNode holds that a key is certified for one node: not under
// another token, not by another request, not after the node was removed.
func TestNJ_5_OneKeyOneNode(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		tok, other := p.mint(t, pool, nil), p.mint(t, pool, nil)
		elsewhere := p.mint(t, p.poolCalled(t, "elsewhere", "token"), nil)
		m := newMachine(t, nil)
		a := p.admit(t, tok, m)
		changed := m.request(t, template("other"))
		changed.claims = newMachine(t, nil).claims
		for _, try := range []struct {
			tok token
			m   machine
		}{{other, m}, {elsewhere, m}, {tok, changed}, {other, changed}, {elsewhere, changed}} {
			wantCode(t, p.refused(t, try.tok, try.m), problem.Conflict)
		}
		p.wantCauses(t, "key_taken", "key_taken", "key_taken", "key_taken", "key_taken")
		p.remove(t, a)
		wantCode(t, p.refused(t, other, m), problem.Conflict)
		wantCode(t, p.refused(t, tok, changed), problem.Conflict)
		wantCode(t, p.refused(t, tok, m), problem.Unauthenticated)
		p.wantCauses(t, "key_taken", "key_taken", "node_removed")
		if uses := p.uses(t, tok) + p.uses(t, other) + p.uses(t, elsewhere); uses != 1 {
			t.Errorf("%d uses, want 1", uses)
		}
	})
}

// TestNJ_5_OneKeyUnderRaces holds that of joins with one key at once, under two
// tokens and by two requests, one makes a node.
func TestNJ_5_OneKeyUnderRaces(t *testing.T) {
	t.Parallel()
	const rounds = 12
	eachRunning(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		processes := []*process{p, p.another(t)}
		for range rounds {
			toks := []token{p.mint(t, pool, nil), p.mint(t, pool, nil)}
			m := newMachine(t, nil)
			var tries []machine // by hardware that nothing connects
			for i := range 4 {
				try := m
				if i%2 == 1 {
					try = m.request(t, template("other"))
				}
				try.claims = claims{Serial: strictjson.Some(unique("CZ2D"))}
				tries = append(tries, try)
			}
			var mu sync.Mutex
			admitted := map[string]bool{}
			together(8, func(i int) {
				out, err := processes[i%2].join(t.Context(), toks[i/4].bearer, tries[i/2])
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && out.Admitted != nil:
					admitted[out.Admitted.NodeID] = true
				case !fault.Is(err, problem.Conflict):
					t.Errorf("%+v, %v", out, err)
				}
			})
			if uses := p.uses(t, toks[0]) + p.uses(t, toks[1]); len(admitted) != 1 || uses != 1 {
				t.Fatalf("one key stands for %d nodes, and %d uses", len(admitted), uses)
			}
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
