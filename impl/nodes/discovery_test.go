package nodes_test

import (
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// knows puts a machine into the inventory of a pool.
func (p *process) knows(t testing.TB, pool store.Pool, id string, m machine) {
	t.Helper()
	_, err := p.inventory.Import(ops(t.Context()), &wire.InventoryImportInput{
		TenantID: pool.TenantID, PoolID: pool.PoolID,
		Machines: []wire.InventoryImportInputMachinesItem{{MachineID: id, Identifiers: wire.InventoryImportInputMachinesItemIdentifiers{
			ProductUUID: m.claims.ProductUUID, Serial: m.claims.Serial, Macs: m.claims.Macs, GPUUuids: m.claims.GPUUuids,
		}}},
	})
	must(t, err)
}

// TestDiscovery_OnlyKnownMachines holds the discovery attestor from end to end:
// an unknown machine waits, one that was imported gets in by a new request, and
// one that could be either of two waits, too.
func TestDiscovery_OnlyKnownMachines(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.poolCalled(t, "lab", "discovery")
		tok := p.mint(t, pool, reclaiming)
		m := newMachine(t, &claims{Serial: strictjson.Some("CZ2D1X0QTP"), Macs: []string{mac1}})
		d := p.defers(t, tok, m, unknown)
		p.knows(t, pool, "rack7-u12", newMachine(t, &claims{Serial: strictjson.Some("cz2d1x0qtp")}))
		if got := p.defers(t, tok, m, unknown); got.RequestID != d.RequestID {
			t.Errorf("a request that waits for an operator is made again: %+v", got)
		}
		again := m.reinstalled(t)
		a := p.admit(t, tok, again)
		if p.uses(t, tok) != 1 {
			t.Errorf("%d uses", p.uses(t, tok))
		}

		other := newMachine(t, &claims{Macs: []string{mac2}})
		p.knows(t, pool, "rack7-u13", other)
		p.admit(t, tok, other)
		p.advance(2 * time.Minute)
		both := newMachine(t, &claims{Serial: strictjson.Some("CZ2D1X0QTP"), Macs: []string{mac2}})
		p.defers(t, tok, both, unknown)

		// What is known in another pool, or by nobody any more, is not known here.
		elsewhere := newMachine(t, nil)
		p.knows(t, p.poolCalled(t, "other", "discovery"), "rack8", elsewhere)
		p.defers(t, tok, elsewhere, unknown)
		_, err := p.inventory.Remove(ops(t.Context()), &wire.InventoryRemoveInput{TenantID: "acme", PoolID: "lab", MachineID: "rack7-u12"})
		must(t, err)
		must(t, p.recognizes(t, a, false)) // what it became stays
		p.advance(2 * time.Minute)
		p.defers(t, tok, again.reinstalled(t), unknown)
		p.defers(t, tok, whiteBox(t), unknown)
	})
}

// TestDiscovery_PoolDecides holds that the pool's attestor is asked, as it is at
// that moment, and that one which this release does not serve admits nobody.
func TestDiscovery_PoolDecides(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		tok := p.mint(t, pool, nil)
		p.admit(t, tok, newMachine(t, nil))
		p.policy(t, pool, func(pool *store.Pool) { pool.Attestor = "discovery" })
		p.defers(t, tok, newMachine(t, nil), unknown)
		p.policy(t, pool, func(pool *store.Pool) { pool.Attestor = "tpm" })
		wantCode(t, p.refused(t, tok, newMachine(t, nil)), problem.InvalidState)
		if uses := p.uses(t, tok); uses != 1 {
			t.Errorf("%d uses", uses)
		}
	})
}
