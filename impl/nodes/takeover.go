package nodes

import (
	"slices"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/attest"
	"github.com/bettercompute/bettercompute/impl/store"
)

// aliveFor is how long a node that was seen is not taken over without an operator (NJ-5).
const aliveFor = 60 * time.Second

// A takeover is what becomes of a machine whose identifiers others may hold:
// with nothing set it is a new node.
type takeover struct {
	reject   problem.Reason
	deferred wire.DeferralReason
	reclaims *store.Node
	shares   []store.Identifier // held by others too, and so nobody's from now on
}

// decideTakeover applies the rules of NJ-5 to who holds the identifiers of a
// machine. An approval hands over no other node than the one that the operator
// saw, and a token that is pinned to a machine no other node than that machine's.
func decideTakeover(holdings []store.Holding, token store.JoinToken, approved approval, now time.Time) takeover {
	holders := map[string]bool{}
	var held []store.Identifier
	for _, h := range holdings {
		holders[h.Node.ID] = true
		held = append(held, h.Identifier)
	}
	switch {
	case len(holders) == 0:
		return takeover{}
	case !token.AllowReclaim:
		return takeover{reject: problem.ReasonIdentityInUse}
	case len(holders) > 1 && approved.waives(wire.DeferralReasonSeveralCandidates):
		return takeover{shares: held}
	case len(holders) > 1:
		return takeover{deferred: wire.DeferralReasonSeveralCandidates}
	}
	for _, pinned := range attest.Pinned(token.Expect) {
		if !slices.Contains(held, pinned) {
			return takeover{reject: problem.ReasonIdentityInUse}
		}
	}
	node := &holdings[0].Node
	if alive(node, now) && !(approved.waives(wire.DeferralReasonNodeActive) && approved.nodeID == node.ID) {
		return takeover{deferred: wire.DeferralReasonNodeActive, reclaims: node}
	}
	return takeover{reclaims: node}
}

// alive reports whether a node was heard of a moment ago: it has reported, or joined.
func alive(node *store.Node, now time.Time) bool {
	last := node.JoinedAt
	if node.LastSeenAt != nil && node.LastSeenAt.After(last) {
		last = *node.LastSeenAt
	}
	return now.Before(last.Add(aliveFor))
}
