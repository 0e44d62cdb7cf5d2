package nodes

import (
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"
)

// A Refusal is a join that was refused, with the true cause, which the machine
// is not always told.
type Refusal struct {
	Token   store.JoinToken // with no more than its id, tenant and pool; empty: no token that there is
	Cause   string
	Address string
}

// Causes of refusals beside the reasons of spec/errors.md.
const (
	causeMalformed   = "malformed"
	causeUnknown     = "unknown"
	causeWrongSecret = "wrong_secret"
	causeRevoked     = "revoked"
	causeExpired     = "expired"
	causeExhausted   = "exhausted"
	causeRemoved     = "node_removed"
	causeKeyTaken    = "key_taken"
	causeConfirmed   = "already_joined"
	causeQueueFull   = "queue_full"
	// CauseTooFast is for who asks before the token was looked at.
	CauseTooFast = "rate_limited"
)

func (n *Nodes) refused(token store.JoinToken, address, cause string) {
	n.audit(Refusal{store.JoinToken{ID: token.ID, TenantID: token.TenantID, PoolID: token.PoolID}, cause, address})
}

// turnAway answers every bad token alike; the cause is for the audit.
func (n *Nodes) turnAway(token store.JoinToken, address, cause string) error {
	n.refused(token, address, cause)
	return fault.Unauthenticated(fault.JoinToken)
}

// refuse answers a machine that may not join, and says why.
func (n *Nodes) refuse(a Arrival, reason problem.Reason) error {
	n.refused(a.Token, a.Address, string(reason))
	return fault.Refused(reason)
}

// conflict answers a join that cannot be told from another one.
func (n *Nodes) conflict(a Arrival, cause, detail string) error {
	n.refused(a.Token, a.Address, cause)
	return fault.Conflict(detail)
}
