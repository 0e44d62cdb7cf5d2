package jointokens

import (
	"strings"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/placeholder"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

func expectOf(in *wire.JoinTokensCreateInput) store.Expect {
	e := in.Expect.Value
	return store.Expect{ProductUUID: e.ProductUUID.Value, Serial: e.Serial.Value, MAC: e.MAC.Value, GPUUUID: e.GPUUUID.Value}
}

// normal is an expectation in the form in which two are compared: hexadecimal
// digits have no case, a serial has.
func normal(e store.Expect) store.Expect {
	e.ProductUUID = strings.ToLower(e.ProductUUID)
	e.MAC = strings.ToLower(e.MAC)
	e.GPUUUID = strings.ToLower(e.GPUUUID)
	return e
}

// difference names what a repeated call asks for that the stored token is not, or "".
func difference(stored store.JoinToken, in *wire.JoinTokensCreateInput) string {
	switch {
	case stored.PoolID != in.PoolID:
		return "poolId"
	case normal(stored.Expect) != normal(expectOf(in)):
		return "expect"
	case stored.AllowReclaim != in.AllowReclaim:
		return "allowReclaim"
	case stored.Hosted != string(in.Hosted.Value):
		return "hosted"
	default:
		return ""
	}
}

// placeholdersIn names the identifiers of expect that are vendors' placeholders:
// a token pinned to one would admit any machine that never got its own (NJ-4).
func (j *JoinTokens) placeholdersIn(in *wire.JoinTokensCreateInput, pool store.Pool) (found []strictjson.Violation) {
	var options []placeholder.Option
	if pool.AllowVirtualMachines {
		options = append(options, placeholder.VirtualMachines)
	}
	e := in.Expect.Value
	for _, id := range []struct {
		field string
		kind  placeholder.Kind
		value strictjson.Optional[string]
	}{
		{"expect.productUuid", placeholder.ProductUUID, e.ProductUUID},
		{"expect.serial", placeholder.Serial, e.Serial},
		{"expect.mac", placeholder.MAC, e.MAC},
		{"expect.gpuUuid", placeholder.GPUUUID, e.GPUUUID},
	} {
		if !id.value.Set {
			continue
		}
		if rule, bogus := j.placeholders.Match(id.kind, id.value.Value, options...); bogus {
			found = append(found, strictjson.Violation{
				Field:   id.field,
				Rule:    problem.RulePlaceholder,
				Message: "is a placeholder and identifies no machine (" + rule + ")",
			})
		}
	}
	return found
}

// view is a token as callers see it.
func view(t store.JoinToken) api.JoinToken {
	out := api.JoinToken{
		ID:           t.ID,
		TenantID:     t.TenantID,
		PoolID:       t.PoolID,
		Role:         wire.TokenRoleNode,
		MaxUses:      t.MaxUses,
		Uses:         t.Uses,
		Pinned:       t.Expect.Pinned(),
		Hosted:       store.Optional[wire.Hosted](t.Hosted),
		AllowReclaim: t.AllowReclaim,
		CreatedAt:    t.CreatedAt,
		CreatedBy:    t.CreatedBy,
		ExpiresAt:    t.ExpiresAt,
		RevokedAt:    t.RevokedAt,
	}
	if out.Pinned {
		out.Expect = &api.JoinTokenExpect{
			ProductUUID: store.Optional[string](t.Expect.ProductUUID),
			Serial:      store.Optional[string](t.Expect.Serial),
			MAC:         store.Optional[string](t.Expect.MAC),
			GPUUUID:     store.Optional[string](t.Expect.GPUUUID),
		}
	}
	return out
}
