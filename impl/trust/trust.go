// Package trust says how far a machine is trusted (JT-40). It is pure: what it
// decides follows from what it is given, and nothing that a machine claims is among that.
package trust

import (
	"slices"

	"github.com/bettercompute/bettercompute/gen/policy"
	"github.com/bettercompute/bettercompute/gen/wire"
)

// ranks are the levels of trust, the least first.
var ranks = []wire.Trust{wire.TrustTenantOwned, wire.TrustTenantControlled, wire.TrustPlatform}

// Min returns the lesser of two levels.
func Min(a, b wire.Trust) wire.Trust {
	return ranks[min(slices.Index(ranks, a), slices.Index(ranks, b))]
}

// OfPool is the most that a machine of a pool can reach: platform trust takes a
// site that the platform owns and that is not custom.
func OfPool(siteOwner string, custom bool) wire.Trust {
	if siteOwner == policy.PlatformTenant && !custom {
		return wire.TrustPlatform
	}
	return wire.TrustTenantOwned
}

// OfToken lowers the trust of a pool to what a token of it gives. A token for a
// hosted daemon takes platform trust away, unless the platform operates the
// pool's clusters and the pool itself is trusted.
func OfToken(pool wire.Trust, platformOperated, hosted bool) wire.Trust {
	if hosted && !platformOperated {
		return Min(pool, wire.TrustTenantControlled)
	}
	return pool
}

// Profile is the kind of certificate that a level of trust gets (JT-40).
func Profile(t wire.Trust) wire.NodeProfile {
	if t == wire.TrustPlatform {
		return wire.NodeProfileNodePlatform
	}
	return wire.NodeProfileNodeTenant
}
