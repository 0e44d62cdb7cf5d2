package nodes

import (
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/store"
)

func claimsOf(in *wire.NodesJoinInput) store.Claims {
	c := in.Claims
	return store.Claims{
		ProductUUID: c.ProductUUID.Value,
		Serial:      c.Serial.Value,
		MACs:        c.Macs,
		GPUUUIDs:    c.GPUUuids,
		Hostname:    c.Hostname.Value,
		Environment: string(c.Environment.Value),
	}
}
