package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/problem"
)

// The contract corpus goes through every field of every method; here stand the
// limits of joinTokens.create as the reference page has them, by hand.

// holds tries values in one field of joinTokens.create: good ones reach the
// method, and bad ones, by rule, are refused for this field alone.
func holds(t *testing.T, field string, good []any, bad map[string][]any) {
	t.Helper()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		for _, value := range good {
			a := s.call(t, ops, "joinTokens.create", set(field, value))
			if a.status != http.StatusOK && a.status != http.StatusNotFound { // NOT_FOUND: a pool of this name
				t.Errorf("%s = %v: %d %s", field, value, a.status, a.body)
			}
		}
		for rule, values := range bad {
			for _, value := range values {
				t.Run(fmt.Sprintf("%s %.40v", rule, value), func(t *testing.T) {
					s.call(t, ops, "joinTokens.create", set(field, value)).violates(t, field, rule)
				})
			}
		}
	})
}

// set is a body with one field, of the top or of expect, set or, for nil, left out.
func set(field string, value any) object {
	if name, inner := strings.CutPrefix(field, "expect."); inner {
		return lab().with(object{"expect": object{name: value}})
	}
	return lab().with(object{field: value})
}

func x(n int) string { return strings.Repeat("x", n) }

func TestJT_10_TenantID(t *testing.T) {
	t.Parallel()
	holds(t, "tenantId", []any{"acme", "a", ".", "A:b.c_d-9", x(128)}, map[string][]any{
		"required": {nil},
		"length":   {x(129)},
		"pattern":  {"", "ac/me", "ac me", "acme\n", "ácme", "*"},
		"type":     {1, true, []string{"acme"}, object{}},
		"null":     {json.RawMessage("null")},
	})
}

func TestJT_11_PoolID(t *testing.T) {
	t.Parallel()
	holds(t, "poolId", []any{"lab", "9", "A:b.c_d-9", x(128)}, map[string][]any{
		"required": {nil},
		"length":   {x(129)},
		"pattern":  {"", "-lab", ".lab", "_lab", ":lab", "lab/1", "lab\n"},
		"type":     {1, false},
	})
}

func TestJT_12_MaxUses(t *testing.T) {
	t.Parallel()
	raw := func(text string) any { return json.RawMessage(text) }
	holds(t, "maxUses", []any{nil, 1, 10000, raw("1e4"), raw("2.0"), raw("10000.000")}, map[string][]any{
		"range":   {0, 10001, -1, raw("-0"), raw("1e400"), raw("18446744073709551617")},
		"integer": {raw("1.5"), raw("1.0000000000000000001")},
		"type":    {"1", true, object{}},
		"null":    {raw("null")},
	})
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		for given, want := range map[any]int64{nil: 1, 7: 7, 10000: 10000} {
			if token := s.mint(t, ops, set("maxUses", given)).JoinToken; token.MaxUses != want || token.Uses != 0 {
				t.Errorf("maxUses %v became %d with %d used", given, token.MaxUses, token.Uses)
			}
		}
	})
}

func TestJT_13_TTLSeconds(t *testing.T) {
	t.Parallel()
	holds(t, "ttlSeconds", []any{60, 86400, json.RawMessage("6e1")}, map[string][]any{
		"required": {nil},
		"range":    {0, 59, 86401, -60},
		"integer":  {json.RawMessage("60.5")},
		"type":     {"60"},
	})
	each(t, func(t *testing.T, s *running) {
		s.clock.Set(noon)
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		for _, seconds := range []int{60, 86400} {
			token := s.mint(t, ops, set("ttlSeconds", seconds)).JoinToken
			if lives := token.ExpiresAt.Sub(token.CreatedAt); !token.CreatedAt.Equal(noon) || int(lives.Seconds()) != seconds {
				t.Errorf("ttlSeconds %d gave %v from %v", seconds, lives, token.CreatedAt)
			}
		}
	})
}

// What pins a machine: a real address, UUID and serial.
const (
	aMAC  = "a0:36:9f:12:34:56"
	aUUID = "4c4c4544-0042-3510-8054-b7c04f4e3733"
	aGPU  = "GPU-9f3c2a71-5b0e-4d8a-a1c6-7e21d0b94f35"
)

func TestJT_14_Expect(t *testing.T) {
	t.Parallel()
	t.Run("productUuid", func(t *testing.T) {
		t.Parallel()
		holds(t, "expect.productUuid", []any{aUUID, strings.ToUpper(aUUID), "4c4c4544", strings.Repeat("4c4c4544", 8)}, map[string][]any{
			"pattern":     {"", "4c4c454", aUUID + "\n", "4c4c454g"},
			"length":      {strings.Repeat("4c4c4544", 8) + "4"},
			"placeholder": {"00000000-0000-0000-0000-000000000000", "03000200-0400-0500-0006-000700080009", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"},
			"type":        {1},
		})
	})
	t.Run("serial", func(t *testing.T) {
		t.Parallel()
		holds(t, "expect.serial", []any{"CN7792194B0735", "a:b/c+d.e_f-1", strings.Repeat("CN77", 32)}, map[string][]any{
			"pattern":     {"", "CN 77", "CN77\n"},
			"length":      {strings.Repeat("CN77", 32) + "C"},
			"placeholder": {"None", "0123456789", "0", "N/A"},
		})
	})
	t.Run("mac", func(t *testing.T) {
		t.Parallel()
		holds(t, "expect.mac", []any{aMAC, strings.ToUpper(aMAC)}, map[string][]any{
			"pattern":     {"", "a0-36-9f-12-34-56", "a0369f123456", "a0:36:9f:12:34:5", "g0:36:9f:12:34:56"},
			"length":      {aMAC + ":78"},
			"placeholder": {"00:00:00:00:00:00", "FF:ff:FF:ff:FF:ff", "01:00:5e:00:00:01", "02:00:00:00:00:01"},
		})
	})
	t.Run("gpuUuid", func(t *testing.T) {
		t.Parallel()
		holds(t, "expect.gpuUuid", []any{aGPU, "GPU-" + strings.ToUpper(aGPU[4:]), "GPU-9f3c2a71"}, map[string][]any{
			"pattern":     {"", aGPU[4:], "gpu-" + aGPU[4:], "GPU-"},
			"length":      {"GPU-" + strings.Repeat("9", 65)},
			"placeholder": {"GPU-00000000-0000-0000-0000-000000000000"},
		})
	})
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		s.call(t, ops, "joinTokens.create", set("expect", object{})).violates(t, "expect", "at-least-one")
		s.call(t, ops, "joinTokens.create", set("expect", object{"hostname": "x"})).refused(t, problem.InvalidInput)
		token := s.mint(t, ops, set("expect", object{"mac": aMAC, "serial": "CN7792194B0735", "productUuid": aUUID, "gpuUuid": aGPU})).JoinToken
		if e := token.Expect; !token.Pinned || e == nil || *e.MAC != aMAC || *e.Serial != "CN7792194B0735" || *e.ProductUUID != aUUID || *e.GPUUUID != aGPU {
			t.Errorf("all four became %+v, pinned: %v", token.Expect, token.Pinned)
		}
		if token := s.mint(t, ops, lab()).JoinToken; token.Pinned || token.Expect != nil {
			t.Errorf("nothing became %+v, pinned: %v", token.Expect, token.Pinned)
		}
		r := s.call(t, ops, "joinTokens.create", set("expect", object{"mac": "00:00:00:00:00:00", "serial": "None", "productUuid": aUUID})).refused(t, problem.InvalidInput)
		if len(r.Errors) != 2 {
			t.Errorf("two placeholders are told as %+v", r.Errors)
		}
		// A pool that admits virtual machines takes their addresses, and only those.
		s.pool(t, "acme", "vms", "acme/berlin", object{"policy": object{"allowVirtualMachines": true}})
		s.mint(t, ops, set("expect", object{"mac": "52:54:00:ab:cd:ef"}).with(object{"poolId": "vms"}))
		s.call(t, ops, "joinTokens.create", set("expect.mac", "00:00:00:00:00:00").with(object{"poolId": "vms"})).violates(t, "expect.mac", "placeholder")
	})
}

func TestJT_15_AllowReclaim(t *testing.T) {
	t.Parallel()
	holds(t, "allowReclaim", []any{nil, true, false}, map[string][]any{"type": {"true", 1, 0}, "null": {json.RawMessage("null")}})
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		for given, want := range map[any]bool{nil: false, false: false, true: true} {
			if token := s.mint(t, ops, set("allowReclaim", given)).JoinToken; token.AllowReclaim != want {
				t.Errorf("allowReclaim %v became %v", given, token.AllowReclaim)
			}
		}
	})
}

func TestJT_16_Hosted(t *testing.T) {
	t.Parallel()
	holds(t, "hosted", []any{nil, "kubernetes"}, map[string][]any{"enum": {"Kubernetes", "", "docker"}, "type": {true, object{}}})
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		if token := s.mint(t, ops, lab()).JoinToken; token.Hosted != nil {
			t.Errorf("no hosted became %v", *token.Hosted)
		}
		if token := s.mint(t, ops, set("hosted", "kubernetes")).JoinToken; token.Hosted == nil || *token.Hosted != "kubernetes" {
			t.Errorf("hosted became %v", token.Hosted)
		}
	})
}

func TestJT_17_IdempotencyKey(t *testing.T) {
	t.Parallel()
	holds(t, "idempotencyKey", []any{"a", "Aa0._~:/+=-", x(128)}, map[string][]any{
		"required": {nil},
		"length":   {x(129)},
		"pattern":  {"", "a b", "a,b", "a\n", "ä"},
		"type":     {1},
	})
}
