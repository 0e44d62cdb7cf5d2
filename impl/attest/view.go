package attest

import (
	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/store"
)

// ClaimsView is what a machine has claimed, as operators see it.
func ClaimsView(c store.Claims) api.Claims {
	out := api.Claims{
		ProductUUID: optional(c.ProductUUID),
		Serial:      optional(c.Serial),
		Macs:        c.MACs,
		GPUUuids:    c.GPUUUIDs,
		Hostname:    optional(c.Hostname),
	}
	if c.Environment != "" {
		environment := wire.ClaimedEnvironment(c.Environment)
		out.Environment = &environment
	}
	return out
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
