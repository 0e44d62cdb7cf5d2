package nodes_test

import (
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/attest"
	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/csr"
	"github.com/bettercompute/bettercompute/impl/ids"
	"github.com/bettercompute/bettercompute/impl/placeholder"
	"github.com/bettercompute/bettercompute/impl/store"
)

// claimed leaves a join as a server that died after the claim leaves it: the
// node is there and its certificate was never signed. tells are what tells it.
func (p *process) claimed(t testing.TB, tok token, request *csr.Request, tells ...store.Identifier) store.Claim {
	t.Helper()
	claim := p.claim(tok, request, tells...)
	outcome, err := p.db.ClaimJoin(t.Context(), claim)
	if err != nil || outcome != store.Claimed {
		t.Fatalf("the claim ends as %d, %v", outcome, err)
	}
	return claim
}

func (p *process) claim(tok token, request *csr.Request, tells ...store.Identifier) store.Claim {
	now := p.db.Now().Truncate(time.Second)
	id := ids.New("nd", now)
	return store.Claim{
		Node: store.Node{ID: id, TenantID: tok.TenantID, PoolID: tok.PoolID, Trust: string(wire.TrustTenantOwned), Hosted: tok.Hosted, TokenID: tok.ID},
		Certificate: store.NodeCertificate{
			Serial: ca.NewSerial(), NodeID: id, CSRSHA256: request.Fingerprint, KeySHA256: request.KeySHA256,
			Trust: string(wire.TrustTenantOwned), NotBefore: now.Add(-5 * time.Minute), NotAfter: now.Add(24 * time.Hour),
		},
		Tells: tells, SourceAddress: address,
	}
}

// waits leaves a join request that waits for an operator.
func (p *process) waits(t testing.TB, tok token, request *csr.Request, m machine, reason wire.DeferralReason) store.JoinRequest {
	t.Helper()
	c := storeClaims(m)
	made, outcome, err := p.db.DeferJoin(t.Context(), store.JoinRequest{
		TenantID: tok.TenantID, PoolID: tok.PoolID, TokenID: tok.ID, Reason: string(reason), Attestor: "token",
		CSRSHA256: request.Fingerprint, KeySHA256: request.KeySHA256, Claims: c, ClaimsSHA256: attest.ClaimsSHA256(c), SourceAddress: address,
	})
	if err != nil || outcome != store.Deferred {
		t.Fatalf("the deferral ends as %d, %v", outcome, err)
	}
	return made
}

func storeClaims(m machine) store.Claims {
	return store.Claims{
		ProductUUID: m.claims.ProductUUID.Value, Serial: m.claims.Serial.Value, MACs: m.claims.Macs, GPUUUIDs: m.claims.GPUUuids,
		Hostname: m.claims.Hostname.Value, Environment: string(m.claims.Environment.Value),
	}
}

// tells are what tells a machine from others.
func (m machine) tells() []store.Identifier {
	return attest.Judge(placeholder.Default(), storeClaims(m), false).Tells
}
