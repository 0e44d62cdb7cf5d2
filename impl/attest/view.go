package attest

import (
	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/store"
)

// ClaimsView is what a machine has claimed, as operators see it.
func ClaimsView(c store.Claims) api.Claims {
	return api.Claims{
		ProductUUID: store.Optional[string](c.ProductUUID),
		Serial:      store.Optional[string](c.Serial),
		Macs:        c.MACs,
		GPUUuids:    c.GPUUUIDs,
		Environment: store.Optional[wire.ClaimedEnvironment](c.Environment),
		Hostname:    store.Optional[string](c.Hostname),
	}
}
