// Package attest judges machines that join: what tells them from others, whether they are the one that a token is pinned to, and whether a pool's attestor lets them in.
package attest

import (
	"context"
	"slices"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/store"
)

// Evidence is what an attestor decides on.
type Evidence struct {
	TenantID, PoolID string
	Machine          Machine
}

// An Outcome is what an attestor says of a machine: with neither reason it is
// admitted.
type Outcome struct {
	Defer  wire.DeferralReason // an operator must approve it
	Reject problem.Reason      // it never gets in
}

// An Attestor vouches for the machines of a pool. An error is a fault of ours:
// the machine may call again and nothing is spent.
type Attestor interface {
	Attest(ctx context.Context, evidence Evidence) (Outcome, error)
}

// Token is the attestor that takes the word of whoever has a join token, for
// any machine that can be told from others.
type Token struct{}

// Attest implements [Attestor].
func (Token) Attest(_ context.Context, evidence Evidence) (Outcome, error) {
	if len(evidence.Machine.Tells) == 0 {
		return Outcome{Defer: wire.DeferralReasonPlaceholderHardware}, nil
	}
	return Outcome{}, nil
}

// Inventory knows machines before they join.
type Inventory interface {
	// InventoryMatches returns the machines of a pool that have any of the identifiers.
	InventoryMatches(ctx context.Context, tenantID, poolID string, identifiers []store.Identifier) ([]store.InventoryMachine, error)
}

// Discovery is the attestor that admits the machines of the pool's inventory.
type Discovery struct{ Inventory Inventory }

// Attest implements [Attestor]. A machine that matches several entries is none
// of them for certain, and neither is one that does not have the serial number
// or UUID of its entry: an address is seen by everybody on the network.
func (d Discovery) Attest(ctx context.Context, evidence Evidence) (Outcome, error) {
	matches, err := d.Inventory.InventoryMatches(ctx, evidence.TenantID, evidence.PoolID, evidence.Machine.Tells)
	if err != nil {
		return Outcome{}, err
	}
	if len(matches) != 1 || lacks(evidence.Machine, matches[0]) {
		return Outcome{Defer: wire.DeferralReasonUnknownMachine}, nil
	}
	return Outcome{}, nil
}

// lacks reports whether a machine does not have the serial number or product
// UUID that the inventory knows of it.
func lacks(m Machine, known store.InventoryMachine) bool {
	return slices.ContainsFunc(identifiersOf(store.Claims{Serial: known.Serial, ProductUUID: known.ProductUUID}),
		func(id store.Identifier) bool { return !slices.Contains(m.Tells, id) })
}
