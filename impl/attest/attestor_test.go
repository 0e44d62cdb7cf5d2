package attest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/attest"
	"github.com/bettercompute/bettercompute/impl/placeholder"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// TestAttestors_Token holds that it admits whatever can be told from others.
func TestAttestors_Token(t *testing.T) {
	t.Parallel()
	for serial, want := range map[string]wire.DeferralReason{"CZ2D1X0QTP": "", "Default string": wire.DeferralReasonPlaceholderHardware, "": wire.DeferralReasonPlaceholderHardware} {
		out, err := attest.Token{}.Attest(t.Context(), attest.Evidence{
			TenantID: "acme", PoolID: "lab", Machine: attest.Judge(placeholder.Default(), store.Claims{Serial: serial}, false),
		})
		if err != nil || out.Defer != want || out.Reject != "" {
			t.Errorf("%q: %+v, %v", serial, out, err)
		}
	}
}

// TestAttestors_Discovery holds that it admits exactly one match in the
// machine's own pool, and defers everything else.
func TestAttestors_Discovery(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		known(t, db, "lab", "rack7-u12", "CZ2D1X0QTP", mac)
		known(t, db, "lab", "rack7-u13", "CZ2D1X0QTQ", mac2)
		known(t, db, "other", "rack8", "CZ2D1X0QTR", "3c:ec:ef:12:34:58")
		for name, c := range map[string]struct {
			claims store.Claims
			want   wire.DeferralReason
		}{
			"one":                     {store.Claims{Serial: "cz2d1x0qtp"}, ""},
			"one, by two identifiers": {store.Claims{Serial: "CZ2D1X0QTP", MACs: []string{"3C:EC:EF:12:34:56"}}, ""},
			"one, and what is new":    {store.Claims{Serial: "CZ2D1X0QTP", MACs: []string{"3c:ec:ef:99:99:99"}}, ""},
			"none":                    {store.Claims{Serial: "CZ2D1X0QTS"}, wire.DeferralReasonUnknownMachine},
			"two":                     {store.Claims{Serial: "CZ2D1X0QTP", MACs: []string{mac2}}, wire.DeferralReasonUnknownMachine},
			"of another pool":         {store.Claims{Serial: "CZ2D1X0QTR"}, wire.DeferralReasonUnknownMachine},
			"another's serial":        {store.Claims{Serial: "CZ2D1X0QTS", MACs: []string{mac}}, wire.DeferralReasonUnknownMachine},
			"its address alone":       {store.Claims{MACs: []string{mac}}, wire.DeferralReasonUnknownMachine},
			"a UUID, and no serial":   {store.Claims{ProductUUID: uuid, MACs: []string{mac}}, wire.DeferralReasonUnknownMachine},
			"a serial as UUID":        {store.Claims{ProductUUID: "CZ2D1X0QTP"}, wire.DeferralReasonUnknownMachine},
			"nothing but a bogus one": {store.Claims{Serial: "Default string"}, wire.DeferralReasonUnknownMachine},
			"no claims":               {store.Claims{}, wire.DeferralReasonUnknownMachine},
		} {
			out, err := attest.Discovery{Inventory: db}.Attest(t.Context(), attest.Evidence{
				TenantID: "acme", PoolID: "lab", Machine: attest.Judge(placeholder.Default(), c.claims, false),
			})
			if err != nil || out.Defer != c.want || out.Reject != "" {
				t.Errorf("%s: %+v, %v", name, out, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := attest.Discovery{Inventory: db}.Attest(ctx, attest.Evidence{Machine: attest.Machine{Tells: []store.Identifier{{Kind: "mac", Value: mac}}}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a fault of ours is %v", err)
		}
	})
}

// known puts a machine into the inventory of a pool of the tenant acme.
func known(t testing.TB, db *store.DB, poolID, id, serial, mac string) {
	t.Helper()
	must(t, db.Write(t.Context(), func(tx *store.Tx) error {
		ctx := t.Context()
		if _, _, err := tx.CreateSite(ctx, store.Site{TenantID: "acme", SiteID: "berlin", CreatedBy: "acme/ops"}); err != nil {
			return err
		}
		if _, _, err := tx.CreatePool(ctx, store.Pool{
			TenantID: "acme", PoolID: poolID, SiteTenantID: "acme", SiteID: "berlin", Agent: "bcd", Attestor: "discovery", Erase: "required", CreatedBy: "acme/ops",
		}); err != nil {
			return err
		}
		_, _, err := tx.ImportMachines(ctx, "acme", poolID, []store.Known{{
			Machine:     store.InventoryMachine{TenantID: "acme", PoolID: poolID, MachineID: id, Serial: serial, MACs: []string{mac}, GPUUUIDs: []string{}},
			Identifiers: []store.Identifier{attest.Normal(wire.IdentifierFieldSerial, serial), attest.Normal(wire.IdentifierFieldMAC, mac)},
		}}, "acme/ops")
		return err
	}))
}
