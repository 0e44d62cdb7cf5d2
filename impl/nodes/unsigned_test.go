package nodes_test

import (
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/store"
)

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

// TestNJ_3_RenewalUnsigned holds that a renewal that a server claimed and never
// signed is signed by the retry, and that sweeping one leaves node and key to renew.
func TestNJ_3_RenewalUnsigned(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		m := newMachine(t, nil)
		a := p.admit(t, p.mint(t, p.pool(t, nil), nil), m)
		node, err := p.db.Node(t.Context(), "acme", "lab", a.NodeID)
		must(t, err)
		next := newMachine(t, nil)
		request := next.parsed(t)
		claim := func() string {
			certificate := p.claim(token{}, request).Certificate
			certificate.NodeID = a.NodeID
			renewed, err := p.db.RenewCertificate(t.Context(), node, a.Serial, certificate)
			if err != nil || !renewed {
				t.Fatal(renewed, err)
			}
			return certificate.Serial
		}
		serial := claim()
		if got := p.renew(t, a, next); got.Serial != serial || !got.Replayed {
			t.Errorf("%+v, want the serial %s", got, serial)
		}
		next = newMachine(t, nil)
		request = next.parsed(t)
		serial = claim()
		p.advance(6 * time.Minute)
		must(t, p.DropUnsigned(t.Context()))
		must(t, p.recognizes(t, a, false))
		got := p.renew(t, a, next)
		if got.Serial == serial || got.Replayed {
			t.Errorf("%+v comes back after it was swept", got)
		}
		must(t, p.recognizes(t, got, false))
	})
}
