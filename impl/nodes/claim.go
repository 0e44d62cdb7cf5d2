package nodes

import (
	"context"
	"strings"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/attest"
	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/csr"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/ids"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/trust"
)

// The life of a certificate (NJ-6), and how long the call that issued it can be
// repeated (NJ-3).
const (
	certificateLife  = 24 * time.Hour
	certificateSkew  = 5 * time.Minute
	renewAfterParts  = 3 // it is renewed after two of three parts of its life
	replayable       = 30 * time.Minute
	renewableExpired = 7 * 24 * time.Hour
)

// claim makes the machine a node, or the node that it was, and certifies it.
func (n *Nodes) claim(ctx context.Context, j join, pool store.Pool, machine attest.Machine, over takeover, approved approval) (*api.NodesJoinOutput, error) {
	now := n.db.Now()
	node := store.Node{
		ID:       ids.New("nd", now),
		TenantID: pool.TenantID,
		PoolID:   pool.PoolID,
		Hosted:   j.Token.Hosted,
		Claims:   j.claims,
		TokenID:  j.Token.ID,
	}
	level := trust.Min(poolTrust(pool.SiteTenantID, pool.SiteCustom, pool.PlatformOperated, node.Hosted), vouched(approved, pool))
	if over.reclaims != nil {
		node.ID, node.CreatedAt = over.reclaims.ID, over.reclaims.CreatedAt
		level = trust.Min(level, wire.Trust(over.reclaims.Trust))
	}
	node.Trust = string(level)
	certificate := newCertificate(node, j.csr, now)
	outcome, err := n.db.ClaimJoin(ctx, store.Claim{
		Node:          node,
		Reclaims:      over.reclaims,
		Tells:         without(machine.Tells, over.shares),
		Shares:        over.shares,
		Certificate:   certificate,
		RequestID:     approved.requestID,
		SourceAddress: j.Address,
	})
	if err != nil {
		return nil, err
	}
	switch outcome {
	case store.Claimed:
		admission, err := n.admit(ctx, node, certificate, j.csr, false)
		return admitted(admission), err
	case store.TokenEnded:
		return nil, n.tokenEnded(ctx, j, approved)
	default: // what stands in the way is seen by the next look
		return nil, nil
	}
}

// vouched is how far those may be trusted who let in a machine that the pool's
// attestor did not know. Nobody vouches for their own machines on somebody
// else's site (JT-41): there such a machine stays its tenant's.
func vouched(approved approval, pool store.Pool) wire.Trust {
	for _, w := range approved.waivers {
		by, _, _ := strings.Cut(w.By, "/")
		switch wire.DeferralReason(w.Reason) {
		case wire.DeferralReasonUnknownMachine, wire.DeferralReasonUnlistedEk:
			if by != pool.SiteTenantID {
				return wire.TrustTenantControlled
			}
		}
	}
	return wire.TrustPlatform
}

// poolTrust is what a node of a pool is trusted with by a token (JT-40).
func poolTrust(siteOwner string, custom, platformOperated bool, hosted string) wire.Trust {
	return trust.OfToken(trust.OfPool(siteOwner, custom), platformOperated, hosted != "")
}

// newCertificate chooses serial and dates before anything is signed, so that a
// repeated call is answered with the same ones (NJ-3). Certificates count whole seconds.
func newCertificate(node store.Node, request *csr.Request, now time.Time) store.NodeCertificate {
	now = now.Truncate(time.Second)
	return store.NodeCertificate{
		Serial:    ca.NewSerial(),
		NodeID:    node.ID,
		CSRSHA256: request.Fingerprint,
		KeySHA256: request.KeySHA256,
		Trust:     node.Trust,
		NotBefore: now.Add(-certificateSkew),
		NotAfter:  now.Add(certificateLife),
	}
}

func without(all, some []store.Identifier) []store.Identifier {
	taken := map[store.Identifier]bool{}
	for _, id := range some {
		taken[id] = true
	}
	var left []store.Identifier
	for _, id := range all {
		if !taken[id] {
			left = append(left, id)
		}
	}
	return left
}

// admit signs a certificate that was claimed, unless it is signed already, and
// returns it. Where a server dies before the chain is kept, a repeated call
// signs again. Without an answer the claim was swept meanwhile.
func (n *Nodes) admit(ctx context.Context, node store.Node, certificate store.NodeCertificate, request *csr.Request, replayed bool) (*api.Admission, error) {
	authority := n.authority()
	profile := trust.Profile(wire.Trust(certificate.Trust))
	chain := certificate.Chain
	if chain == "" {
		serial, err := ca.ParseSerial(certificate.Serial)
		if err != nil {
			return nil, err
		}
		signed, err := authority.SignNode(ctx, ca.Order{
			NodeID:    node.ID,
			Platform:  profile == wire.NodeProfileNodePlatform,
			Public:    request.PublicKey,
			Serial:    serial,
			NotBefore: certificate.NotBefore,
			NotAfter:  certificate.NotAfter,
		})
		if err != nil {
			return nil, err
		}
		chain, err = n.db.SignedChain(ctx, certificate.Serial, signed)
		if fault.Is(err, problem.NotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return &api.Admission{
		NodeID:      node.ID,
		TenantID:    node.TenantID,
		PoolID:      node.PoolID,
		Certificate: chain,
		CaBundle:    authority.Bundle(),
		Profile:     profile,
		Trust:       wire.Trust(certificate.Trust),
		Serial:      certificate.Serial,
		NotBefore:   certificate.NotBefore,
		NotAfter:    certificate.NotAfter,
		RenewAfter:  renewAfter(certificate),
		ServerTime:  n.db.Now(),
		Replayed:    replayed,
	}, nil
}

// admitted is the answer to a join; without an admission there is none yet.
func admitted(admission *api.Admission) *api.NodesJoinOutput {
	if admission == nil {
		return nil
	}
	return &api.NodesJoinOutput{Admitted: admission}
}

// renewAfter is when two thirds of a certificate's life are over.
func renewAfter(c store.NodeCertificate) time.Time {
	issued := c.NotBefore.Add(certificateSkew)
	return issued.Add(2 * c.NotAfter.Sub(issued) / renewAfterParts)
}

// replay answers the join that a certificate request has made before (NJ-3).
func (n *Nodes) replay(ctx context.Context, j join) (*api.NodesJoinOutput, error) {
	use, err := n.db.JoinUse(ctx, j.Token.ID, j.csr.Fingerprint)
	if err != nil {
		return nil, lookAgain(err)
	}
	certificate, err := n.db.NodeCertificate(ctx, use.Serial)
	if err != nil {
		return nil, n.gone(ctx, j, err)
	}
	node, err := n.db.Node(ctx, j.Token.TenantID, j.Token.PoolID, use.NodeID)
	if err != nil {
		return nil, n.gone(ctx, j, err)
	}
	switch {
	case node.RemovedAt != nil:
		return nil, n.turnAway(j.Token, j.Address, causeRemoved)
	case node.BannedAt != nil:
		return nil, n.refuse(j.Arrival, problem.ReasonNodeBanned)
	case !repeatable(certificate, n.db.Now()):
		return nil, n.conflict(j.Arrival, causeConfirmed, "this machine has joined already: renew its certificate, or join with a new key")
	}
	admission, err := n.admit(ctx, node, certificate, j.csr, true)
	return admitted(admission), err
}

// gone says why what a use of the token stands for is not there: the node was
// removed and forgotten, or the claim was swept a moment ago.
func (n *Nodes) gone(ctx context.Context, j join, err error) error {
	if !fault.Is(err, problem.NotFound) {
		return err
	}
	if _, err := n.db.JoinUse(ctx, j.Token.ID, j.csr.Fingerprint); err != nil {
		return lookAgain(err)
	}
	return n.turnAway(j.Token, j.Address, causeRemoved)
}

// lookAgain swallows that a row is gone: a claim that was never signed may be
// swept while it is repeated.
func lookAgain(err error) error {
	if fault.Is(err, problem.NotFound) {
		return nil
	}
	return err
}
