package trust_test

import (
	"fmt"
	"testing"

	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/trust"
)

// TestJT_40_TruthTable goes through site owner × custom × platformOperated ×
// hosted × what the machine claims. Exactly six of the 32 rows give platform.
func TestJT_40_TruthTable(t *testing.T) {
	t.Parallel()
	both := []bool{false, true}
	rows, platform := 0, 0
	for _, owner := range []string{"platform", "acme"} {
		for _, custom := range both {
			for _, operated := range both {
				for _, hosted := range both {
					for range []string{"bare-metal", "kubernetes"} { // a claim has no way in
						rows++
						got := trust.OfToken(trust.OfPool(owner, custom), operated, hosted)
						if want := expected(owner, custom, operated, hosted); got != want {
							t.Errorf("owner %s custom %v operated %v hosted %v: %s, want %s", owner, custom, operated, hosted, got, want)
						}
						if got == wire.TrustPlatform {
							platform++
						}
					}
				}
			}
		}
	}
	if rows != 32 || platform != 6 {
		t.Errorf("%d of %d rows give platform, want 6 of 32", platform, rows)
	}
}

// expected is the rule as JT-40 states it, written another way.
func expected(owner string, custom, operated, hosted bool) wire.Trust {
	switch {
	case owner != "platform" || custom:
		return wire.TrustTenantOwned
	case hosted && !operated:
		return wire.TrustTenantControlled
	default:
		return wire.TrustPlatform
	}
}

// TestJT_40_OnlyLowers holds that the least of two levels is never above either.
func TestJT_40_OnlyLowers(t *testing.T) {
	t.Parallel()
	order := []wire.Trust{wire.TrustTenantOwned, wire.TrustTenantControlled, wire.TrustPlatform}
	for i, a := range order {
		for j, b := range order {
			if got := trust.Min(a, b); got != order[min(i, j)] {
				t.Error(fmt.Sprintf("Min(%s, %s) = %s", a, b, got))
			}
		}
	}
}
