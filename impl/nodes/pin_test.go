package nodes_test

import (
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

const (
	uuid        = "4c4c4544-0042-3510-8052-b3c04f4b4e32"
	swappedUUID = "44454c4c-4200-1035-8052-b3c04f4b4e32"
	mac1        = "3c:ec:ef:12:34:56"
	mac2        = "3c:ec:ef:12:34:57"
	gpu1        = "GPU-8f6b1c2d-03e4-4b5a-9c7d-1e2f3a4b5c6d"
	gpu2        = "GPU-8f6b1c2d-03e4-4b5a-9c7d-1e2f3a4b5c6e"
)

// TestNJ_4_Pin holds that a pinned token admits its machine alone: every
// identifier must match, an address or GPU any of the machine's, in any case.
func TestNJ_4_Pin(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		full := claims{
			ProductUUID: strictjson.Some(uuid), Serial: strictjson.Some("CZ2D1X0QTP"),
			Macs: []string{mac2, mac1}, GPUUuids: []string{gpu2, gpu1},
		}
		all := store.Expect{ProductUUID: uuid, Serial: "CZ2D1X0QTP", MAC: mac1, GPUUUID: gpu1}
		with := func(change func(*store.Expect)) store.Expect {
			expect := all
			change(&expect)
			return expect
		}
		for name, c := range map[string]struct {
			expect store.Expect
			want   problem.Reason
		}{
			"the machine":           {all, ""},
			"another case":          {store.Expect{ProductUUID: strings.ToUpper(uuid), Serial: "cz2d1x0qtp", MAC: strings.ToUpper(mac1), GPUUUID: "GPU-" + strings.ToUpper(gpu1[4:])}, ""},
			"its second address":    {store.Expect{MAC: mac1}, ""},
			"its first address":     {store.Expect{MAC: mac2}, ""},
			"its second GPU":        {store.Expect{GPUUUID: gpu1}, ""},
			"its first GPU":         {store.Expect{GPUUUID: gpu2}, ""},
			"another UUID":          {with(func(e *store.Expect) { e.ProductUUID = "4c4c4544-0042-3510-8052-b3c04f4b4e33" }), problem.ReasonHardwareMismatch},
			"another serial":        {with(func(e *store.Expect) { e.Serial = "CZ2D1X0QTQ" }), problem.ReasonHardwareMismatch},
			"another address":       {with(func(e *store.Expect) { e.MAC = "3c:ec:ef:12:34:58" }), problem.ReasonHardwareMismatch},
			"another GPU":           {with(func(e *store.Expect) { e.GPUUUID = gpu1[:39] + "f" }), problem.ReasonHardwareMismatch},
			"a byte-swapped UUID":   {with(func(e *store.Expect) { e.ProductUUID = swappedUUID }), problem.ReasonUUIDByteOrder},
			"swapped, other serial": {with(func(e *store.Expect) { e.ProductUUID, e.Serial = swappedUUID, "CZ2D1X0QTQ" }), problem.ReasonHardwareMismatch},
		} {
			pool := p.poolCalled(t, unique("p"), "token")
			tok := p.mint(t, pool, func(tok *store.JoinToken) { tok.MaxUses, tok.Expect = 1, c.expect })
			p.causes()
			if c.want == "" {
				p.admit(t, tok, newMachine(t, &full))
				continue
			}
			err := p.refused(t, tok, newMachine(t, &full))
			if wantReason(t, err, c.want); t.Failed() {
				t.Fatal(name)
			}
			p.wantCauses(t, string(c.want))
			if p.uses(t, tok) != 0 || p.count(t, pool) != 0 {
				t.Errorf("%s: something is spent", name)
			}
		}
	})
}

// TestNJ_4_PlaceholdersSatisfyNoPin holds that neither a placeholder nor a value
// that two nodes have presented satisfies a pin, and that no operator is asked.
func TestNJ_4_PlaceholdersSatisfyNoPin(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		bogus := p.mint(t, pool, func(tok *store.JoinToken) { tok.Expect.Serial = "Default_string" })
		for _, serial := range []string{"Default_string", "Default string"} {
			wantReason(t, p.refused(t, bogus, called(t, serial)), problem.ReasonHardwareMismatch)
		}
		local := p.mint(t, pool, func(tok *store.JoinToken) { tok.Expect.MAC = "02:00:00:00:00:07" })
		virtual := newMachine(t, &claims{Macs: []string{"02:00:00:00:00:07"}})
		wantReason(t, p.refused(t, local, virtual), problem.ReasonHardwareMismatch)

		shared := p.mint(t, pool, func(tok *store.JoinToken) { tok.Expect.MAC = mac1 })
		p.share(t, pool, mac1)
		dock := newMachine(t, &claims{Serial: strictjson.Some(unique("CZ2D")), Macs: []string{mac1}})
		wantReason(t, p.refused(t, shared, dock), problem.ReasonHardwareMismatch)
		if requests := p.eventsOf(t, "acme", "security.join-request.created"); len(requests) != 1 { // that of share
			t.Errorf("operators are asked: %v", requests)
		}
		p.policy(t, pool, func(pool *store.Pool) { pool.AllowVirtualMachines = true })
		p.admit(t, local, virtual)
	})
}

// share makes two nodes present one address, as an operator allows.
func (p *process) share(t testing.TB, pool store.Pool, address string) {
	t.Helper()
	tok := p.mint(t, pool, reclaiming)
	first := newMachine(t, &claims{Serial: strictjson.Some(unique("CZ2D")), Macs: []string{address}})
	second := called(t, unique("CZ2D"))
	p.admit(t, tok, first)
	p.admit(t, tok, second)
	both := newMachine(t, &claims{Serial: second.claims.Serial, Macs: []string{address}})
	d := p.defers(t, tok, both, wire.DeferralReasonSeveralCandidates)
	p.approve(t, tok, d)
	p.admit(t, tok, both)
}
