package attest_test

import (
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/attest"
	"github.com/bettercompute/bettercompute/impl/placeholder"
	"github.com/bettercompute/bettercompute/impl/store"
)

func expect(uuid, serial, mac, gpu string) store.Expect {
	return store.Expect{ProductUUID: uuid, Serial: serial, MAC: mac, GPUUUID: gpu}
}

// TestNJ_4_Pin holds each identifier of a pin, all of them together, and how they are spelled.
func TestNJ_4_Pin(t *testing.T) {
	t.Parallel()
	const mismatch, byteOrder = problem.ReasonHardwareMismatch, problem.ReasonUUIDByteOrder
	machine := store.Claims{ProductUUID: uuid, Serial: "CZ2D1X0QTP", MACs: []string{mac2, mac}, GPUUUIDs: []string{gpu2, gpu}}
	all := store.Expect{ProductUUID: uuid, Serial: "CZ2D1X0QTP", MAC: mac, GPUUUID: gpu}
	for name, c := range map[string]struct {
		expect store.Expect
		claims store.Claims
		want   problem.Reason
	}{
		"nothing is expected":            {store.Expect{}, store.Claims{}, ""},
		"all match":                      {all, machine, ""},
		"the UUID alone":                 {store.Expect{ProductUUID: uuid}, machine, ""},
		"the serial alone":               {store.Expect{Serial: "CZ2D1X0QTP"}, machine, ""},
		"any of the addresses":           {store.Expect{MAC: mac2}, machine, ""},
		"any of the GPUs":                {store.Expect{GPUUUID: gpu2}, machine, ""},
		"case does not matter":           {expect(strings.ToUpper(uuid), "cz2d1x0qtp", strings.ToUpper(mac), "GPU-"+strings.ToUpper(gpu[4:])), machine, ""},
		"separators do not matter":       {store.Expect{ProductUUID: strings.ReplaceAll(uuid, "-", ""), MAC: strings.ReplaceAll(mac, ":", "-")}, machine, ""},
		"another UUID":                   {store.Expect{ProductUUID: uuid[:35] + "3"}, machine, mismatch},
		"another serial":                 {store.Expect{Serial: "CZ2D1X0QTQ"}, machine, mismatch},
		"another address":                {store.Expect{MAC: "3c:ec:ef:12:34:58"}, machine, mismatch},
		"another GPU":                    {store.Expect{GPUUUID: gpu[:39] + "0"}, machine, mismatch},
		"no UUID":                        {store.Expect{ProductUUID: uuid}, store.Claims{Serial: "CZ2D1X0QTP"}, mismatch},
		"no claims at all":               {all, store.Claims{}, mismatch},
		"all but the UUID":               {expect(uuid[:35]+"3", all.Serial, mac, gpu), machine, mismatch},
		"all but the serial":             {expect(uuid, "other", mac, gpu), machine, mismatch},
		"all but the address":            {expect(uuid, all.Serial, "3c:ec:ef:12:34:58", gpu), machine, mismatch},
		"all but the GPU":                {expect(uuid, all.Serial, mac, gpu[:39]+"0"), machine, mismatch},
		"a serial does not match a UUID": {store.Expect{ProductUUID: uuid}, store.Claims{Serial: uuid}, mismatch},
		"a byte-swapped UUID":            {store.Expect{ProductUUID: swapped}, machine, byteOrder},
		"swapped on the machine":         {store.Expect{ProductUUID: strings.ToUpper(uuid)}, store.Claims{ProductUUID: strings.ToUpper(swapped)}, byteOrder},
		"swapped and all else right":     {expect(swapped, all.Serial, mac, gpu), machine, byteOrder},
		"swapped and another serial":     {store.Expect{ProductUUID: swapped, Serial: "other"}, machine, mismatch},
		"placeholder serial":             {store.Expect{Serial: "0123456789"}, store.Claims{Serial: "0123456789"}, mismatch},
		"placeholder UUID":               {store.Expect{ProductUUID: "03000200-0400-0500-0006-000700080009"}, store.Claims{ProductUUID: "03000200-0400-0500-0006-000700080009"}, mismatch},
		"placeholder UUID, swapped":      {store.Expect{ProductUUID: "00020003-0004-0005-0006-000700080009"}, store.Claims{ProductUUID: "03000200-0400-0500-0006-000700080009"}, mismatch},
		"placeholder address":            {store.Expect{MAC: "02:00:00:00:00:07"}, store.Claims{MACs: []string{"02:00:00:00:00:07"}}, mismatch},
	} {
		if got := attest.Pin(c.expect, attest.Judge(placeholder.Default(), c.claims, false)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestNJ_4_SharedValuesSatisfyNoPin holds that a value that two nodes have presented pins no machine.
func TestNJ_4_SharedValuesSatisfyNoPin(t *testing.T) {
	t.Parallel()
	for field, expect := range map[string]store.Expect{
		"productUuid": {ProductUUID: uuid}, "serial": {Serial: "CZ2D1X0QTP"}, "mac": {MAC: mac}, "gpuUuid": {GPUUUID: gpu},
	} {
		value := map[string]string{"productUuid": uuid, "serial": "CZ2D1X0QTP", "mac": mac, "gpuUuid": gpu}[field]
		m := attest.Judge(placeholder.Default(), claimsWith(t, field, value), false)
		if reason := attest.Pin(expect, m); reason != "" {
			t.Errorf("%s: %s before it is shared", field, reason)
		}
		left, _ := m.WithoutShared([]store.Holding{{Identifier: m.Tells[0], Shared: true}})
		if reason := attest.Pin(expect, left); reason != problem.ReasonHardwareMismatch {
			t.Errorf("%s: %q when it is shared", field, reason)
		}
	}
}
