package nodes

import (
	"context"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/attest"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"
)

// How long a machine that is pending is asked to wait, and one for which the
// queue has no room.
const (
	retryPending   = 15 * time.Second
	retryQueueFull = time.Minute
)

// deferJoin puts the join into the approval queue. What was approved before
// stays so: a machine may need several reasons to be waived, one after the other.
func (n *Nodes) deferJoin(ctx context.Context, j join, pool store.Pool, machine attest.Machine, reason wire.DeferralReason, over takeover, approved approval) (*api.NodesJoinOutput, error) {
	request := store.JoinRequest{
		TenantID:      pool.TenantID,
		PoolID:        pool.PoolID,
		TokenID:       j.Token.ID,
		Reason:        string(reason),
		Attestor:      pool.Attestor,
		CSRSHA256:     j.csr.Fingerprint,
		KeySHA256:     j.csr.KeySHA256,
		Claims:        j.claims,
		ClaimsSHA256:  attest.ClaimsSHA256(j.claims),
		MachineSHA256: machine.SHA256(),
		Placeholders:  machine.Placeholders,
		Waived:        approved.waivers,
		Hosted:        j.Token.Hosted,
		SourceAddress: j.Address,
	}
	if over.reclaims != nil {
		request.ReclaimsNodeID = over.reclaims.ID
	}
	made, outcome, err := n.db.DeferJoin(ctx, request)
	if err != nil {
		return nil, err
	}
	switch outcome {
	case store.Deferred:
		return n.pending(made), nil
	case store.QueueFull:
		n.refused(j.Token, j.Address, causeQueueFull)
		return nil, fault.RateLimited("too many joins of this token or pool wait for an operator", retryQueueFull)
	case store.NoUsesLeft:
		return nil, n.tokenEnded(ctx, j, approval{})
	default:
		return nil, nil
	}
}

func (n *Nodes) pending(request store.JoinRequest) *api.NodesJoinOutput {
	return &api.NodesJoinOutput{Pending: &api.Deferral{
		RequestID:         request.ID,
		Reason:            wire.DeferralReason(request.Reason),
		CSRSha256:         request.CSRSHA256,
		RetryAfterSeconds: int64(retryPending / time.Second),
		ServerTime:        n.db.Now(),
	}}
}

// tokenEnded turns a machine away whose token has ended since it was read.
func (n *Nodes) tokenEnded(ctx context.Context, j join, approved approval) error {
	token, err := n.db.JoinToken(ctx, j.Token.ID)
	if err != nil {
		return err
	}
	cause := causeRevoked
	if token.RevokedAt == nil {
		cause = ended(token, approved, n.db.Now())
	}
	if cause == "" { // it was used up, and has a use again
		cause = causeExhausted
	}
	return n.turnAway(j.Token, j.Address, cause)
}
