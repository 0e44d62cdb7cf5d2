package strictjson_test

import (
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// This file is what gen/wire emits, for the input of joinTokens.create.

type joinTokensCreateInput struct {
	TenantID       string
	PoolID         string
	MaxUses        int64
	TTLSeconds     int64
	Expect         strictjson.Optional[joinTokensCreateExpect]
	AllowReclaim   bool
	Hosted         strictjson.Optional[string]
	IdempotencyKey string
}

type joinTokensCreateExpect struct {
	ProductUUID, Serial, MAC, GPUUUID strictjson.Optional[string]
}

var (
	classTenant = strictjson.ClassOf("A-Za-z0-9._:-")
	classAlnum  = strictjson.ClassOf("A-Za-z0-9")
	classHex    = strictjson.ClassOf("0-9A-Fa-f")
	classUUID   = strictjson.ClassOf("0-9A-Fa-f-")
	classSerial = strictjson.ClassOf("A-Za-z0-9._:/+-")
	classKey    = strictjson.ClassOf("A-Za-z0-9._~:/+=-")

	createNames  = []string{"tenantId", "poolId", "maxUses", "ttlSeconds", "expect", "allowReclaim", "hosted", "idempotencyKey"}
	expectNames  = []string{"productUuid", "serial", "mac", "gpuUuid"}
	createHosted = []string{"kubernetes"}
)

func matchTenantID(s string) bool {
	return len(s) >= 1 && len(s) <= 128 && classTenant.All(s)
}

func matchPoolID(s string) bool {
	return len(s) >= 1 && len(s) <= 128 && classAlnum[s[0]] && classTenant.All(s[1:])
}

func matchProductUUID(s string) bool {
	return len(s) >= 8 && len(s) <= 64 && classUUID.All(s)
}

func matchSerial(s string) bool {
	return len(s) >= 1 && len(s) <= 128 && classSerial.All(s)
}

func matchMAC(s string) bool {
	if len(s) != 17 {
		return false
	}
	for i := range 17 {
		if i%3 == 2 && s[i] != ':' || i%3 != 2 && !classHex[s[i]] {
			return false
		}
	}
	return true
}

func matchGPUUUID(s string) bool {
	return len(s) >= 12 && len(s) <= 68 && s[:4] == "GPU-" && classUUID.All(s[4:])
}

func matchKey(s string) bool {
	return len(s) >= 1 && len(s) <= 128 && classKey.All(s)
}

func decodeCreate(body string, mode strictjson.Mode, in *joinTokensCreateInput) error {
	d := strictjson.NewDecoder(body, mode)
	in.decode(&d)
	return d.End()
}

func (in *joinTokensCreateInput) decode(d *strictjson.Decoder) {
	in.MaxUses = 1
	var seen uint64
	for more := d.Open(); more; more = d.Next() {
		switch d.Name() {
		case "tenantId":
			d.Field(&seen, 0)
			in.TenantID = d.String()
			if !matchTenantID(in.TenantID) {
				d.Fail(strictjson.RulePattern, "must match ^[A-Za-z0-9._:-]{1,128}$")
			}
		case "poolId":
			d.Field(&seen, 1)
			in.PoolID = d.String()
			if !matchPoolID(in.PoolID) {
				d.Fail(strictjson.RulePattern, "must match ^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$")
			}
		case "maxUses":
			d.Field(&seen, 2)
			in.MaxUses = d.Integer(1, 10000)
		case "ttlSeconds":
			d.Field(&seen, 3)
			in.TTLSeconds = d.Integer(60, 86400)
		case "expect":
			d.Field(&seen, 4)
			in.Expect.Set = true
			in.Expect.Value.decode(d)
		case "allowReclaim":
			d.Field(&seen, 5)
			in.AllowReclaim = d.Boolean()
		case "hosted":
			d.Field(&seen, 6)
			in.Hosted = strictjson.Some(d.OneOf(createHosted))
		case "idempotencyKey":
			d.Field(&seen, 7)
			in.IdempotencyKey = d.String()
			if !matchKey(in.IdempotencyKey) {
				d.Fail(strictjson.RulePattern, "must match ^[A-Za-z0-9._~:/+=-]{1,128}$")
			}
		default:
			d.Unknown(createNames)
		}
	}
	d.Require(seen, 0b1000_1011, createNames)
}

func (in *joinTokensCreateExpect) decode(d *strictjson.Decoder) {
	var seen uint64
	for more := d.Open(); more; more = d.Next() {
		switch d.Name() {
		case "productUuid":
			d.Field(&seen, 0)
			in.ProductUUID = strictjson.Some(d.String())
			if !matchProductUUID(in.ProductUUID.Value) {
				d.Fail(strictjson.RulePattern, "must match ^[0-9A-Fa-f-]{8,64}$")
			}
		case "serial":
			d.Field(&seen, 1)
			in.Serial = strictjson.Some(d.String())
			if !matchSerial(in.Serial.Value) {
				d.Fail(strictjson.RulePattern, "must match ^[A-Za-z0-9._:/+-]{1,128}$")
			}
		case "mac":
			d.Field(&seen, 2)
			in.MAC = strictjson.Some(d.String())
			if !matchMAC(in.MAC.Value) {
				d.Fail(strictjson.RulePattern, "must match ^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$")
			}
		case "gpuUuid":
			d.Field(&seen, 3)
			in.GPUUUID = strictjson.Some(d.String())
			if !matchGPUUUID(in.GPUUUID.Value) {
				d.Fail(strictjson.RulePattern, "must match ^GPU-[0-9A-Fa-f-]{8,64}$")
			}
		default:
			d.Unknown(expectNames)
		}
	}
	d.AtLeastOne(seen)
}

// createBody is 340 bytes.
const createBody = `{"tenantId":"tenant-7f3a.prd","poolId":"gpu-pool-e1","maxUses":8,"ttlSeconds":3600,` +
	`"expect":{"productUuid":"4c4c4544-0042-3510-8056-b4c04f4d5a33","serial":"7XK2P93/A.0","mac":"0c:42:a1:9e:7b:20","gpuUuid":"GPU-8f6f2d3c-1b1e-4d53-9a3c-2d6c1f0e9b7a"},` +
	`"allowReclaim":true,"hosted":"kubernetes","idempotencyKey":"rack-12/slot-07:2026-02-03T1+"}`

func BenchmarkDecode(b *testing.B) {
	for _, bench := range []struct {
		name, body string
		mode       strictjson.Mode
		refused    bool
	}{
		{"accepted", createBody, strictjson.All, false},
		{"refused/first/pattern-early", strings.Replace(createBody, "tenant-7", "tenant/7", 1), strictjson.First, true},
		{"refused/first/pattern-late", strings.Replace(createBody, "T1+", "T1*", 1), strictjson.First, true},
		{"refused/first/nested", strings.Replace(createBody, ":7b:", ":7g:", 1), strictjson.First, true},
		{"refused/all/pattern-early", strings.Replace(createBody, "tenant-7", "tenant/7", 1), strictjson.All, true},
		{"refused/all/nested", strings.Replace(createBody, ":7b:", ":7g:", 1), strictjson.All, true},
		{"refused/all/range", strings.Replace(createBody, ":8,", ":0,", 1), strictjson.All, true},
		{"refused/all/required", strings.Replace(createBody, "tenantId", "tenantID", 1), strictjson.All, true},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(bench.body)))
			for b.Loop() {
				var in joinTokensCreateInput
				if err := decodeCreate(bench.body, bench.mode, &in); (err != nil) != bench.refused {
					b.Fatal(err)
				}
			}
		})
	}
}
