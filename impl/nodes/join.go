package nodes

import (
	"context"
	"slices"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/attest"
	"github.com/bettercompute/bettercompute/impl/csr"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// A join is one call of a machine.
type join struct {
	Arrival
	csr    *csr.Request
	claims store.Claims
}

// An approval is what operators have waived for a join.
type approval struct {
	requestID string
	waivers   []store.Waiver
	nodeID    string // the node that may be taken over although it is alive
}

func (a approval) waives(reason wire.DeferralReason) bool {
	return slices.ContainsFunc(a.waivers, func(w store.Waiver) bool { return w.Reason == string(reason) })
}

// looks is how often a join is looked at again because what it was decided on
// has changed meanwhile. Each time somebody else got on.
const looks = 8

// Join decides on a machine in the order of NJ-1. Nothing is spent before the
// claim (NJ-2), and what was decided is looked at again where it has changed.
func (n *Nodes) Join(ctx context.Context, in *wire.NodesJoinInput) (*api.NodesJoinOutput, error) {
	request, err := parseCSR(in.CSR)
	if err != nil {
		return nil, err
	}
	j := join{arrivalFrom(ctx), request, claimsOf(in)}
	for range looks {
		out, err := n.look(ctx, j)
		if out != nil || err != nil {
			return out, err
		}
	}
	return nil, fault.RateLimited("too many machines join at once", time.Second)
}

func parseCSR(text string) (*csr.Request, error) {
	request, err := csr.Parse(text)
	if err != nil {
		return nil, fault.InvalidInput(strictjson.Violation{Field: "csr", Rule: problem.RuleCSR, Message: err.Error()})
	}
	return request, nil
}

// look decides on what is known now. Without an answer it must look again.
func (n *Nodes) look(ctx context.Context, j join) (*api.NodesJoinOutput, error) {
	state, err := n.db.JoinState(ctx, j.Token, j.csr.Fingerprint, j.csr.KeySHA256)
	if err != nil {
		return nil, err
	}
	if state.Used {
		return n.replay(ctx, j)
	}
	if state.KeyTaken {
		return nil, n.conflict(j.Arrival, causeKeyTaken, "the key of the certificate request stands for another join; make a new key")
	}
	var approved approval
	if state.RequestID != "" {
		request, err := n.db.JoinRequest(ctx, state.TenantID, state.PoolID, state.RequestID)
		if err != nil {
			return nil, err
		}
		switch wire.JoinRequestStatus(request.Status) {
		case wire.JoinRequestStatusConsumed, wire.JoinRequestStatusCanceled:
			return nil, nil // since the state was read
		}
		answer, granted, err := n.asked(ctx, j, request)
		if answer != nil || err != nil {
			return answer, err
		}
		approved = granted
	}
	if cause := ended(j.Token, approved, n.db.Now()); cause != "" {
		return nil, n.turnAway(j.Token, j.Address, cause)
	}
	return n.decide(ctx, j, state.Pool, approved)
}

// asked answers a machine that has a join request. It goes on without an answer:
// with an approval, with other claims than the request has, or where that has expired.
func (n *Nodes) asked(ctx context.Context, j join, request store.JoinRequest) (*api.NodesJoinOutput, approval, error) {
	same := request.ClaimsSHA256 == attest.ClaimsSHA256(j.claims)
	switch wire.JoinRequestStatus(request.Status) {
	case wire.JoinRequestStatusDenied:
		return nil, approval{}, n.refuse(j.Arrival, problem.ReasonRequestDenied)
	case wire.JoinRequestStatusPending:
		if !same {
			return nil, approval{}, nil // it makes another request, which takes the place of this one
		}
		if err := n.db.RequestCalledAgain(ctx, request.ID, j.Address); err != nil {
			return nil, approval{}, err
		}
		return n.pending(request), approval{}, nil
	case wire.JoinRequestStatusApproved:
		if same { // an approval holds for the claims that the operator saw (JR-4)
			waivers := append(request.Waived, store.Waiver{Reason: request.Reason, By: request.DecidedBy})
			return nil, approval{request.ID, waivers, request.ReclaimsNodeID}, nil
		}
	}
	return nil, approval{}, nil
}

// ended says why a token admits nobody any more, or "". An approval outlives
// the token's time, never its uses.
func ended(token store.JoinToken, approved approval, now time.Time) string {
	switch {
	case token.Uses >= token.MaxUses:
		return causeExhausted
	case approved.requestID == "" && !now.Before(token.ExpiresAt):
		return causeExpired
	default:
		return ""
	}
}

// decide holds the machine against pin, attestor and other nodes, and claims
// or defers the join.
func (n *Nodes) decide(ctx context.Context, j join, pool store.Pool, approved approval) (*api.NodesJoinOutput, error) {
	judged := attest.Judge(n.placeholders, j.claims, pool.AllowVirtualMachines)
	held, err := n.db.Holdings(ctx, pool.TenantID, pool.PoolID, judged.LooksFor())
	if err != nil {
		return nil, err
	}
	if len(held) > 0 {
		_, err := n.db.JoinUse(ctx, j.Token.ID, j.csr.Fingerprint)
		if err == nil {
			return nil, nil // another call of the machine was faster: the node is its own
		}
		if !fault.Is(err, problem.NotFound) {
			return nil, err
		}
	}
	machine, holdings := judged.WithoutShared(held)
	if reason := attest.Pin(j.Token.Expect, machine); reason != "" {
		return nil, n.refuse(j.Arrival, reason)
	}
	attestor, known := n.attestors[wire.Attestor(pool.Attestor)]
	if !known {
		return nil, fault.InvalidState("the attestor " + pool.Attestor + " of this pool is not served by this release")
	}
	outcome, err := attestor.Attest(ctx, attest.Evidence{TenantID: pool.TenantID, PoolID: pool.PoolID, Machine: machine})
	if err != nil {
		return nil, err
	}
	if outcome.Reject != "" {
		return nil, n.refuse(j.Arrival, outcome.Reject)
	}
	over := decideTakeover(holdings, j.Token, approved, n.db.Now())
	if slices.ContainsFunc(held, func(h store.Holding) bool { return h.Node.BannedAt != nil }) {
		over = takeover{reject: problem.ReasonNodeBanned} // whatever it shares with others
	}
	switch {
	case outcome.Defer != "" && !approved.waives(outcome.Defer):
		return n.deferJoin(ctx, j, pool, machine, outcome.Defer, over, approved)
	case over.reject != "":
		return nil, n.refuse(j.Arrival, over.reject)
	case over.deferred != "":
		return n.deferJoin(ctx, j, pool, machine, over.deferred, over, approved)
	}
	return n.claim(ctx, j, pool, machine, over, approved)
}
