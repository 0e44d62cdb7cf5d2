package nodes_test

import (
	"context"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/iam"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// TestJT_41_NobodyVouchesForTheirOwn holds that a tenant who lets a machine in
// that the pool's attestor does not know does not make it the platform's, on
// the platform's site; that the site's owner does; and that nothing is lost on
// a machine that is known, or on the tenant's own site.
func TestJT_41_NobodyVouchesForTheirOwn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		for name, c := range map[string]struct {
			site, by string
			known    bool
			want     wire.Trust
		}{
			"the tenant":                   {"platform", "acme", false, wire.TrustTenantControlled},
			"the platform":                 {"platform", "platform", false, wire.TrustPlatform},
			"nobody need":                  {"platform", "", true, wire.TrustPlatform},
			"the tenant, on its own site":  {"acme", "acme", false, wire.TrustTenantOwned},
			"the platform, on acme's site": {"acme", "platform", false, wire.TrustTenantOwned},
		} {
			pool := p.pool(t, func(pool *store.Pool, site *store.Site) {
				pool.PoolID, pool.Attestor, site.TenantID = unique("p"), "discovery", c.site
			})
			tok, m := p.mint(t, pool, nil), newMachine(t, nil)
			if c.known {
				p.knows(t, pool, "rack7", m)
			} else {
				p.approveAs(t, c.by, tok, m, unknown)
			}
			a := p.admit(t, tok, m)
			if p.wantCertificate(t, a, m, c.want); t.Failed() {
				t.Fatal(name)
			}
			p.confirm(t, a)
			p.advance(time.Second)
			next := newMachine(t, nil)
			p.wantCertificate(t, p.renew(t, a, next), next, c.want)
		}
	})
}

// TestJT_41_VouchedOnTheWay holds that who vouched for a machine counts, too,
// where another operator has waived the next reason.
func TestJT_41_VouchedOnTheWay(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, func(pool *store.Pool, site *store.Site) { pool.Attestor, site.TenantID = "discovery", "platform" })
		tok, m := p.mint(t, pool, reclaiming), newMachine(t, nil)
		p.knows(t, pool, "rack7", m)
		a := p.admit(t, tok, m)
		_, err := p.inventory.Remove(ops(t.Context()), &wire.InventoryRemoveInput{TenantID: "acme", PoolID: "lab", MachineID: "rack7"})
		must(t, err)
		again := m.reinstalled(t)
		p.approveAs(t, "acme", tok, again, unknown)
		p.approveAs(t, "platform", tok, again, active)
		if got := p.admit(t, tok, again); got.NodeID != a.NodeID || got.Trust != wire.TrustTenantControlled {
			t.Errorf("%+v", got)
		}
	})
}

// approveAs lets somebody of a tenant approve what a machine waits for.
func (p *process) approveAs(t testing.TB, tenant string, tok token, m machine, reason wire.DeferralReason) {
	t.Helper()
	d := p.defers(t, tok, m, reason)
	ctx := iam.WithPrincipal(context.WithoutCancel(t.Context()), iam.Principal{Tenant: tenant, Name: "ops"})
	_, err := p.requests.Approve(ctx, &wire.JoinRequestsApproveInput{TenantID: tok.TenantID, PoolID: tok.PoolID, RequestID: d.RequestID, CSRSha256: d.CSRSha256})
	must(t, err)
}

// TestNJ_5_PinnedTakesOverItsMachineAlone holds that a token that is pinned to a
// machine hands over no node but one that is known by all that it expects.
func TestNJ_5_PinnedTakesOverItsMachineAlone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		victim := newMachine(t, &claims{Serial: strictjson.Some(unique("CZ2D")), Macs: []string{mac1}})
		a := p.admit(t, p.mint(t, pool, nil), victim)
		p.advance(2 * time.Minute)
		before := p.rows(t, a, victim)
		mine := unique("CZ2D")
		tok := p.mint(t, pool, func(tok *store.JoinToken) { tok.AllowReclaim, tok.Expect.Serial = true, mine })
		thief := newMachine(t, &claims{Serial: strictjson.Some(mine), Macs: []string{mac1}})
		wantReason(t, p.refused(t, tok, thief), problem.ReasonIdentityInUse)
		wantUndisturbed(t, before, p.rows(t, a, victim))
		own := p.mint(t, pool, func(tok *store.JoinToken) {
			tok.AllowReclaim, tok.Expect.Serial, tok.Expect.MAC = true, victim.claims.Serial.Value, mac1
		})
		if got := p.admit(t, own, victim.reinstalled(t)); got.NodeID != a.NodeID {
			t.Errorf("it is %s, want %s", got.NodeID, a.NodeID)
		}
	})
}

// TestNJ_5_ByteSwappedUUID holds that a node is found by its product UUID also
// where another tool reads its first three fields in the other order.
func TestNJ_5_ByteSwappedUUID(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		a := p.admit(t, p.mint(t, pool, nil), newMachine(t, &claims{ProductUUID: strictjson.Some(uuid)}))
		p.advance(2 * time.Minute)
		swapped := newMachine(t, &claims{ProductUUID: strictjson.Some(swappedUUID)})
		wantReason(t, p.refused(t, p.mint(t, pool, nil), swapped), problem.ReasonIdentityInUse)
		if got := p.admit(t, p.mint(t, pool, reclaiming), swapped); got.NodeID != a.NodeID || p.count(t, pool) != 1 {
			t.Errorf("it is %s, want %s", got.NodeID, a.NodeID)
		}
		p.advance(2 * time.Minute)
		if got := p.admit(t, p.mint(t, pool, reclaiming), newMachine(t, &claims{ProductUUID: strictjson.Some(uuid)})); got.NodeID != a.NodeID {
			t.Errorf("read as before it is %s, want %s", got.NodeID, a.NodeID)
		}
	})
}

// TestNJ_5_BannedAlsoByWhatIsShared holds that a banned node's hardware does not
// get in by an address that others have presented, too.
func TestNJ_5_BannedAlsoByWhatIsShared(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		p.share(t, pool, mac1)
		holdings, err := p.db.Holdings(t.Context(), "acme", "lab", []store.Identifier{{Kind: "mac", Value: mac1}})
		must(t, err)
		must(t, p.db.Write(t.Context(), func(tx *store.Tx) error {
			_, err := tx.BanNode(t.Context(), holdings[0].Node, "acme/ops", "")
			return err
		}))
		m := newMachine(t, &claims{Serial: strictjson.Some(unique("CZ2D")), Macs: []string{mac1}})
		wantReason(t, p.refused(t, p.mint(t, pool, reclaiming), m), problem.ReasonNodeBanned)
	})
}

// TestDiscovery_Contradiction holds that a machine with an address that is known
// and not the serial number and UUID of its entry waits for an operator.
func TestDiscovery_Contradiction(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.poolCalled(t, "lab", "discovery")
		tok := p.mint(t, pool, nil)
		p.knows(t, pool, "rack7", newMachine(t, &claims{Serial: strictjson.Some("CZ2D1X0QTP"), ProductUUID: strictjson.Some(uuid), Macs: []string{mac1}}))
		p.defers(t, tok, newMachine(t, &claims{Serial: strictjson.Some("CZ2D1X0QTQ"), Macs: []string{mac1}}), unknown)
		p.defers(t, tok, newMachine(t, &claims{ProductUUID: strictjson.Some("4c4c4544-0042-3510-8052-b3c04f4b4e33"), Macs: []string{mac1}}), unknown)
		p.defers(t, tok, newMachine(t, &claims{Macs: []string{mac1, mac2}}), unknown)
		p.admit(t, tok, newMachine(t, &claims{Serial: strictjson.Some("CZ2D1X0QTP"), ProductUUID: strictjson.Some(uuid), Macs: []string{mac2}}))
	})
}
