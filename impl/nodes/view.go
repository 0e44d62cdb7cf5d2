package nodes

import (
	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/attest"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/trust"
)

// view is a node as callers see it.
func view(n store.Node) api.Node {
	return api.Node{
		ID:                  n.ID,
		TenantID:            n.TenantID,
		PoolID:              n.PoolID,
		Status:              status(n),
		Trust:               wire.Trust(n.Trust),
		Profile:             trust.Profile(wire.Trust(n.Trust)),
		Hosted:              store.Optional[wire.Hosted](n.Hosted),
		Claims:              attest.ClaimsView(n.Claims),
		AgentVersion:        store.Optional[string](n.AgentVersion),
		TokenID:             n.TokenID,
		CertificateSerial:   store.Optional[string](n.CertificateSerial),
		CertificateNotAfter: n.CertificateNotAfter,
		CreatedAt:           n.CreatedAt,
		JoinedAt:            n.JoinedAt,
		LastSeenAt:          n.LastSeenAt,
		BannedAt:            n.BannedAt,
		BannedBy:            store.Optional[string](n.BannedBy),
		Note:                store.Optional[string](n.Note),
		RemovedAt:           n.RemovedAt,
	}
}

func status(n store.Node) wire.NodeStatus {
	switch {
	case n.RemovedAt != nil:
		return wire.NodeStatusRemoved
	case n.BannedAt != nil:
		return wire.NodeStatusBanned
	case n.ConfirmedAt == nil:
		return wire.NodeStatusJoining
	default:
		return wire.NodeStatusActive
	}
}
