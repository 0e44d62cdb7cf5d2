package nodes_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// A rowSet is all that is stored of a node.
type rowSet struct {
	Node        store.Node
	Certificate store.NodeCertificate
	Caller      store.Caller
	Held        []store.Identifier
}

// rows reads all that is stored of a node that a machine has become.
func (p *process) rows(t testing.TB, a *api.Admission, m machine) (rows rowSet) {
	t.Helper()
	var err error
	rows.Node, err = p.db.Node(t.Context(), a.TenantID, a.PoolID, a.NodeID)
	must(t, err)
	rows.Certificate, err = p.db.NodeCertificate(t.Context(), a.Serial)
	must(t, err)
	rows.Caller, err = p.db.Caller(t.Context(), a.Serial)
	must(t, err)
	holdings, err := p.db.Holdings(t.Context(), a.TenantID, a.PoolID, m.tells())
	must(t, err)
	for _, h := range holdings {
		if h.Node.ID == a.NodeID {
			rows.Held = append(rows.Held, h.Identifier)
		}
	}
	return rows
}

func wantUndisturbed(t testing.TB, before, after rowSet) {
	t.Helper()
	if !reflect.DeepEqual(before, after) {
		t.Errorf("the node was\n%+v, and is\n%+v", before, after)
	}
}

// TestNJ_5_WithoutReclaim holds that a machine whose hardware is another node's
// is refused by a token that may not take over, whether that node is alive or not.
func TestNJ_5_WithoutReclaim(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		tok := p.mint(t, p.pool(t, nil), nil)
		m := newMachine(t, &claims{Serial: strictjson.Some("CZ2D1X0QTP"), Macs: []string{mac1, mac2}})
		a := p.admit(t, tok, m)
		p.confirm(t, a)
		before := p.rows(t, a, m)
		for name, c := range map[string]*claims{
			"all of it":    &m.claims,
			"one address":  {Macs: []string{mac2}},
			"its serial":   {Serial: strictjson.Some("cz2d1x0qtp"), Macs: []string{"3c:ec:ef:99:99:99"}},
			"and it again": {Macs: []string{"3C:EC:EF:12:34:56"}, Serial: strictjson.Some(unique("CZ2D"))},
		} {
			err := p.refused(t, tok, newMachine(t, c))
			if wantReason(t, err, problem.ReasonIdentityInUse); t.Failed() {
				t.Fatal(name)
			}
			p.advance(time.Hour / 8)
		}
		p.wantCauses(t, "identity_in_use", "identity_in_use", "identity_in_use", "identity_in_use")
		wantUndisturbed(t, before, p.rows(t, a, m))
		must(t, p.recognizes(t, a, false))
		if uses := p.uses(t, tok); uses != 1 {
			t.Errorf("%d uses, want 1", uses)
		}
	})
}

// TestNJ_5_Reclaim holds that a token that may take over hands a machine the
// node that it was: the same id and history, old certificates refused.
func TestNJ_5_Reclaim(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		tok, again := p.mint(t, pool, nil), p.mint(t, pool, reclaiming)
		m := newMachine(t, &claims{Serial: strictjson.Some("CZ2D1X0QTP"), Macs: []string{mac1, mac2}})
		first := p.admit(t, tok, m)
		p.confirm(t, first)
		renewed := p.renew(t, first, newMachine(t, nil))
		p.advance(time.Minute)
		m2 := newMachine(t, &claims{Serial: strictjson.Some("CZ2D1X0QTP"), Macs: []string{mac1, "3c:ec:ef:99:99:99"}, Hostname: strictjson.Some("rack7")})
		second := p.admit(t, again, m2)
		if second.NodeID != first.NodeID || second.Serial == first.Serial || second.Replayed {
			t.Errorf("%+v after %+v", second, first)
		}
		for _, old := range []*api.Admission{first, renewed} {
			for _, renewal := range []bool{false, true} {
				wantCode(t, p.recognizes(t, old, renewal), problem.Unauthenticated)
			}
		}
		n := p.node(t, second)
		if n.Status != wire.NodeStatusJoining || !n.CreatedAt.Equal(noon) || !n.JoinedAt.Equal(noon.Add(time.Minute)) || n.LastSeenAt != nil ||
			n.TokenID != again.ID || n.Claims.Hostname == nil || *n.CertificateSerial != second.Serial {
			t.Errorf("%+v", n)
		}
		p.confirm(t, second)
		if got := p.node(t, second); got.Status != wire.NodeStatusActive || p.count(t, pool) != 1 {
			t.Errorf("%+v, one of %d", got, p.count(t, pool))
		}
		// What it has no more is free, what it has is its own.
		held := p.rows(t, second, machine{claims: claims{Serial: m.claims.Serial, Macs: []string{mac1, mac2, "3c:ec:ef:99:99:99"}}}).Held
		if want := m2.tells(); !slices.Equal(held, want) {
			t.Errorf("it holds %v, want %v", held, want)
		}
		p.admit(t, tok, newMachine(t, &claims{Macs: []string{mac2}}))
		if got := p.eventsOf(t, "acme", "security.node.reclaimed"); len(got) != 1 || got[0].Data["serial"] != second.Serial || got[0].Subject != first.NodeID {
			t.Errorf("%v", got)
		}
	})
}

// TestNJ_5_AliveIsDeferred holds that a node that joined or reported within the
// last 60 seconds is handed over by an operator alone, and then exactly that one.
func TestNJ_5_AliveIsDeferred(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		for name, seen := range map[string]func(a *api.Admission){
			"joined":    func(*api.Admission) {},
			"confirmed": func(a *api.Admission) { p.advance(time.Hour / 4); p.confirm(t, a) },
			"reported":  func(a *api.Admission) { p.advance(time.Hour / 4); p.report(t, a) },
		} {
			tok := p.mint(t, pool, func(tok *store.JoinToken) { tok.AllowReclaim, tok.ExpiresAt = true, p.db.Now().Add(24*time.Hour) })
			m := newMachine(t, nil)
			a := p.admit(t, tok, m)
			seen(a)
			p.advance(time.Minute - time.Microsecond)
			before := p.rows(t, a, m)
			again := m.reinstalled(t)
			d := p.defers(t, tok, again, wire.DeferralReasonNodeActive)
			wantUndisturbed(t, before, p.rows(t, a, m))
			if q := p.request(t, tok, d.RequestID); q.ReclaimsNodeID == nil || *q.ReclaimsNodeID != a.NodeID {
				t.Fatalf("%s: the operator does not see which node it is about: %+v", name, q)
			}
			p.report(t, a) // it is still there
			p.approve(t, tok, d)
			must(t, p.recognizes(t, a, false))
			if got := p.admit(t, tok, again); got.NodeID != a.NodeID {
				t.Errorf("%s: the approval hands over %s, want %s", name, got.NodeID, a.NodeID)
			}
			wantCode(t, p.recognizes(t, a, false), problem.Unauthenticated)
		}
		tok, m := p.mint(t, pool, func(tok *store.JoinToken) { tok.AllowReclaim, tok.ExpiresAt = true, p.db.Now().Add(time.Hour) }), newMachine(t, nil)
		a := p.admit(t, tok, m)
		p.advance(time.Minute)
		if got := p.admit(t, tok, m.reinstalled(t)); got.NodeID != a.NodeID {
			t.Errorf("60 seconds later it is %s, want %s", got.NodeID, a.NodeID)
		}
	})
}

// TestNJ_5_ApprovalHandsOverWhatWasSeen holds that an approval is for the node
// that the operator saw: where another one has the hardware since, an operator is asked again.
func TestNJ_5_ApprovalHandsOverWhatWasSeen(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		tok := p.mint(t, p.pool(t, nil), reclaiming)
		m := newMachine(t, nil)
		a := p.admit(t, tok, m)
		again := m.reinstalled(t)
		d := p.defers(t, tok, again, wire.DeferralReasonNodeActive)
		p.approve(t, tok, d)
		p.remove(t, a)
		other := p.admit(t, tok, m.reinstalled(t)) // the hardware's owner now, and alive
		before := p.rows(t, other, m)
		second := p.defers(t, tok, again, wire.DeferralReasonNodeActive)
		wantUndisturbed(t, before, p.rows(t, other, m))
		if q := p.request(t, tok, second.RequestID); second.RequestID == d.RequestID || *q.ReclaimsNodeID != other.NodeID {
			t.Errorf("%+v", q)
		}
		if q := p.request(t, tok, d.RequestID); q.Status != wire.JoinRequestStatusCanceled {
			t.Errorf("the approval for the other node is still there: %+v", q)
		}
		p.approve(t, tok, second)
		if got := p.admit(t, tok, again); got.NodeID != other.NodeID {
			t.Errorf("the approval hands over %s, want %s", got.NodeID, other.NodeID)
		}
	})
}
