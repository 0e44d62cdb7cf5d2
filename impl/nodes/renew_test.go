package nodes_test

import (
	"crypto/ecdsa"
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/fault"
)

// TestNJ_6_Renewal holds that a node gets its next certificate for the same key
// and for a new one, and that the same request again gives the same one.
func TestNJ_6_Renewal(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		tok := p.mint(t, p.pool(t, nil), usable(1))
		m := newMachine(t, nil)
		a := p.admit(t, tok, m)
		p.confirm(t, a)
		p.advance(16 * time.Hour)
		fresh := newMachine(t, nil)
		for name, next := range map[string]machine{"the same key": m.asking(t, template("next")), "a new key": fresh} {
			got := p.renew(t, a, next)
			if got.NodeID != a.NodeID || got.Serial == a.Serial || got.Replayed || got.TenantID != "acme" || got.PoolID != "lab" {
				t.Errorf("%s: %+v", name, got)
			}
			p.wantNext(t, got, next)
			p.advance(29 * time.Minute)
			wantSame(t, p.another(t).renew(t, a, next), got)
			p.advance(-29 * time.Minute)
		}
		// A node's own earlier key serves again as well.
		p.wantNext(t, p.renew(t, a, fresh.asking(t, template("again"))), fresh)
		if uses := p.uses(t, tok); uses != 1 {
			t.Errorf("%d uses, want 1", uses)
		}
	})
}

// wantNext holds that a certificate is for the key of its request, and serves.
func (p *process) wantNext(t *testing.T, a *api.Admission, m machine) {
	t.Helper()
	if key, ok := chainOf(t, a.Certificate)[0].PublicKey.(*ecdsa.PublicKey); !ok || !key.Equal(m.key.Public()) {
		t.Error("it is for another key")
	}
	if err := p.recognizes(t, a, false); err != nil {
		t.Error(err)
	}
}

// TestNJ_6_RenewalIsRepeatedForAWhile holds that a renewal can be repeated for
// 30 minutes or until it was confirmed.
func TestNJ_6_RenewalIsRepeatedForAWhile(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		m := newMachine(t, nil)
		a := p.admit(t, p.mint(t, p.pool(t, nil), nil), m)
		confirmed, late := newMachine(t, nil), newMachine(t, nil)
		p.renew(t, a, late)
		p.advance(30 * time.Minute)
		_, err := p.Renew(p.as(t, a), renewal(late))
		wantCode(t, err, problem.Conflict)
		// The request of the join is no fresh one either.
		_, err = p.Renew(p.as(t, a), renewal(m))
		wantCode(t, err, problem.Conflict)
		next := p.renew(t, a, confirmed)
		p.confirm(t, next)
		_, err = p.Renew(p.as(t, next), renewal(confirmed))
		wantCode(t, err, problem.Conflict)
	})
}

// TestNJ_5_FormerOwnerRenewsNothing holds that a call that was begun by a node's
// former machine gets no certificate once another one has taken the node over,
// or it was removed.
func TestNJ_5_FormerOwnerRenewsNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		tok, m := p.mint(t, pool, reclaiming), newMachine(t, nil)
		first := p.admit(t, tok, m)
		begun := p.as(t, first)
		p.advance(2 * time.Minute)
		second := p.admit(t, tok, m.reinstalled(t))
		if out, err := p.Renew(begun, renewal(newMachine(t, nil))); err == nil {
			t.Errorf("the former machine has a certificate of %s: %+v", second.NodeID, out.Admitted)
		}
		_, err := p.Confirm(begun, &wire.NodesConfirmInput{})
		if n := p.node(t, second); n.Status != wire.NodeStatusJoining {
			t.Errorf("the former machine has confirmed: %v", err)
		}
		must(t, p.recognizes(t, second, false))
		begun = p.as(t, second)
		p.remove(t, second)
		if out, err := p.Renew(begun, renewal(newMachine(t, nil))); err == nil {
			t.Errorf("a removed node has a certificate: %+v", out.Admitted)
		}
	})
}

// TestNJ_6_RenewalUnderRaces holds that 16 renewals with one request at once,
// over two processes, give one certificate, and that of two requests at once one
// certificate serves in the end.
func TestNJ_6_RenewalUnderRaces(t *testing.T) {
	t.Parallel()
	eachRunning(t, func(t *testing.T, p *process) {
		processes := []*process{p, p.another(t)}
		a := p.admit(t, p.mint(t, p.pool(t, nil), nil), newMachine(t, nil))
		for range 6 {
			next := newMachine(t, nil)
			var mu sync.Mutex
			serials := map[string]int{}
			together(16, func(i int) {
				out, err := processes[i%2].Renew(processes[i%2].as(t, a), renewal(next))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				serials[out.Admitted.Serial]++
			})
			if len(serials) != 1 {
				t.Fatalf("one request has the certificates %v", serials)
			}
			rivals := []machine{newMachine(t, nil), newMachine(t, nil)}
			var renewed []*api.Admission
			together(2, func(i int) {
				out, err := processes[i].Renew(processes[i].as(t, a), renewal(rivals[i]))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					renewed = append(renewed, &out.Admitted)
				} else if !fault.Is(err, problem.Conflict) && !fault.Is(err, problem.RateLimited) {
					t.Error(err)
				}
			})
			serving := 0
			for _, r := range renewed {
				if p.recognizes(t, r, false) == nil {
					serving++
				}
			}
			if serving != 1 {
				t.Fatalf("%d of %d renewals serve", serving, len(renewed))
			}
		}
	})
}
