package nodes_test

import (
	"slices"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// TestNJ_5_SeveralCandidates holds that a machine that could be either of two
// nodes is deferred, and that an approval makes it a third one and what they
// have in common nobody's.
func TestNJ_5_SeveralCandidates(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		tok := p.mint(t, pool, reclaiming)
		m1 := newMachine(t, &claims{Macs: []string{mac1}, Serial: strictjson.Some(unique("CZ2D"))})
		m2 := newMachine(t, &claims{Macs: []string{mac2}, Serial: strictjson.Some(unique("CZ2D"))})
		a1, a2 := p.admit(t, tok, m1), p.admit(t, tok, m2)
		p.advance(time.Hour / 2)
		both := newMachine(t, &claims{Macs: []string{mac1, mac2}, Serial: strictjson.Some(unique("CZ2D"))})
		d := p.defers(t, tok, both, wire.DeferralReasonSeveralCandidates)
		if q := p.request(t, tok, d.RequestID); q.ReclaimsNodeID != nil {
			t.Errorf("an approval would hand over %s", *q.ReclaimsNodeID)
		}
		p.approve(t, tok, d)
		a3 := p.admit(t, tok, both)
		if a3.NodeID == a1.NodeID || a3.NodeID == a2.NodeID || p.count(t, pool) != 3 {
			t.Errorf("it is %s, after %s and %s", a3.NodeID, a1.NodeID, a2.NodeID)
		}
		must(t, p.recognizes(t, a1, false))
		must(t, p.recognizes(t, a2, false))
		holdings, err := p.db.Holdings(t.Context(), "acme", "lab", both.tells())
		must(t, err)
		for _, h := range holdings {
			if shared := h.Kind == "mac"; h.Shared != shared {
				t.Errorf("%s of %s: shared is %v", h.Value, h.Node.ID, h.Shared)
			}
		}
		if len(holdings) != 5 { // either address of two nodes, and the serial of one
			t.Errorf("%v", holdings)
		}
		// A shared value counts for nobody any more, and is shown as such.
		p.defers(t, tok, newMachine(t, &claims{Macs: []string{mac1, mac2}}), wire.DeferralReasonPlaceholderHardware)
		p.advance(2 * time.Minute)
		if got := p.admit(t, tok, m1.reinstalled(t)); got.NodeID != a1.NodeID {
			t.Errorf("its serial tells %s, and it became %s", a1.NodeID, got.NodeID)
		}
	})
}

// TestNJ_5_Banned holds that a banned node's hardware never joins its pool
// again, not even by an approval, and joins another pool.
func TestNJ_5_Banned(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.poolCalled(t, "lab", "discovery")
		tok := p.mint(t, pool, reclaiming)
		m := newMachine(t, nil)
		d := p.defers(t, tok, m, wire.DeferralReasonUnknownMachine)
		p.approve(t, tok, d)
		a := p.admit(t, tok, m)
		p.ban(t, a)
		p.advance(time.Hour / 2)
		before := p.rows(t, a, m)
		again := m.reinstalled(t)
		p.approve(t, tok, p.defers(t, tok, again, wire.DeferralReasonUnknownMachine))
		for _, tok := range []token{tok, p.mint(t, pool, nil)} {
			if tok.AllowReclaim {
				wantReason(t, p.refused(t, tok, again), problem.ReasonNodeBanned)
			}
		}
		wantReason(t, p.refused(t, tok, m), problem.ReasonNodeBanned) // its own retry, too
		p.wantCauses(t, "node_banned", "node_banned")
		wantUndisturbed(t, before, p.rows(t, a, m))
		other := p.mint(t, p.poolCalled(t, "other", "token"), reclaiming)
		if got := p.admit(t, other, m.reinstalled(t)); got.NodeID == a.NodeID {
			t.Error("another pool hands over the banned node")
		}
		wantUndisturbed(t, before, p.rows(t, a, m))
	})
}

// TestNJ_5_OnlyItsOwnPool holds that nodes of other pools and tenants are no
// candidates and are not touched, and nor are nodes that were removed.
func TestNJ_5_OnlyItsOwnPool(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		m := newMachine(t, &claims{Serial: strictjson.Some("CZ2D1X0QTP"), Macs: []string{mac1}})
		var admissions []*api.Admission
		var before []rowSet
		for _, owner := range []struct{ tenant, pool string }{{"acme", "lab"}, {"acme", "other"}, {"globex", "lab"}} {
			pool := p.pool(t, func(pool *store.Pool, _ *store.Site) { pool.TenantID, pool.PoolID = owner.tenant, owner.pool })
			a := p.admit(t, p.mint(t, pool, reclaiming), m.reinstalled(t))
			if a.TenantID != owner.tenant || a.PoolID != owner.pool || slices.ContainsFunc(admissions, func(o *api.Admission) bool { return o.NodeID == a.NodeID }) {
				t.Errorf("%+v", a)
			}
			admissions, before = append(admissions, a), append(before, p.rows(t, a, m))
		}
		pool := store.Pool{TenantID: "acme", PoolID: "lab"}
		p.advance(2 * time.Minute)
		p.remove(t, admissions[0])
		removed := p.rows(t, admissions[0], m)
		a := p.admit(t, p.mint(t, pool, nil), m.reinstalled(t)) // needs no leave to take over
		if a.NodeID == admissions[0].NodeID {
			t.Error("a removed node comes back")
		}
		wantUndisturbed(t, removed, p.rows(t, admissions[0], m))
		p.advance(2 * time.Minute)
		if got := p.admit(t, p.mint(t, pool, reclaiming), m.reinstalled(t)); got.NodeID != a.NodeID {
			t.Errorf("%s takes the place of %s", got.NodeID, a.NodeID)
		}
		for i := 1; i < len(admissions); i++ {
			wantUndisturbed(t, before[i], p.rows(t, admissions[i], m))
			must(t, p.recognizes(t, admissions[i], false))
		}
	})
}

// TestNJ_5_TrustIsTheLeast holds that a node that is taken over is trusted with
// the least of pool, token and what it was trusted with before (JT-40).
func TestNJ_5_TrustIsTheLeast(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, func(pool *store.Pool, site *store.Site) { site.TenantID = "platform" })
		reclaim := func(hosted string) token {
			return p.mint(t, pool, func(tok *store.JoinToken) {
				tok.AllowReclaim, tok.Hosted, tok.ExpiresAt = true, hosted, p.db.Now().Add(time.Hour)
			})
		}
		m := newMachine(t, nil)
		for _, step := range []struct {
			hosted string
			want   wire.Trust
		}{{"", wire.TrustPlatform}, {"", wire.TrustPlatform}, {"kubernetes", wire.TrustTenantControlled}, {"", wire.TrustTenantControlled}} {
			a := p.admit(t, reclaim(step.hosted), m.reinstalled(t))
			if a.Trust != step.want || p.count(t, pool) != 1 {
				t.Errorf("by a token for %q it is trusted as %s, want %s", step.hosted, a.Trust, step.want)
			}
			p.advance(2 * time.Minute)
		}
		p.remove(t, &api.Admission{TenantID: "acme", PoolID: "lab", NodeID: p.nodesOf(t, pool)[0].ID})
		if a := p.admit(t, reclaim(""), m.reinstalled(t)); a.Trust != wire.TrustPlatform {
			t.Errorf("a new node is trusted as %s", a.Trust)
		}
	})
}
