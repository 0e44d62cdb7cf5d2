package nodes_test

import (
	"sync"
	"testing"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

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
		changed := m.asking(t, template("other"))
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
					try = m.asking(t, template("other"))
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

// TestNJ_5_RenewalsKeyIsItsOwn holds that no renewal certifies a key that is another node's.
func TestNJ_5_RenewalsKeyIsItsOwn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		tok := p.mint(t, p.pool(t, nil), nil)
		m := newMachine(t, nil)
		other, a := p.admit(t, tok, m), p.admit(t, tok, newMachine(t, nil))
		for _, try := range []machine{m, m.asking(t, template("next"))} {
			_, err := p.Renew(p.as(t, a), renewal(try))
			wantCode(t, err, problem.Conflict)
		}
		p.remove(t, other)
		_, err := p.Renew(p.as(t, a), renewal(m.asking(t, template("later"))))
		wantCode(t, err, problem.Conflict)
		mine := newMachine(t, nil)
		p.renew(t, a, mine)
		wantCode(t, p.refused(t, tok, mine.asking(t, template("join"))), problem.Conflict)
	})
}
