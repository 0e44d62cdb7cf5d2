package main

import (
	"testing"

	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// What is compared must do the same: everyone takes the body, and nobody takes a
// wrong one.
func TestEveryoneDecides(t *testing.T) {
	if len(createBody) != 340 {
		t.Errorf("the body has %d bytes", len(createBody))
	}
	kin, err := newKinFilter()
	if err != nil {
		t.Fatal(err)
	}
	ogen, err := newOgenRequests()
	if err != nil {
		t.Fatal(err)
	}
	for name, decode := range map[string]func([]byte) error{
		"ours":            func(body []byte) error { return decodeOurs(body, strictjson.All) },
		"ours, first":     func(body []byte) error { return decodeOurs(body, strictjson.First) },
		"kin-openapi":     kin.validate,
		"ogen":            decodeOgen,
		"ogen, a request": ogen.decode,
		"by hand":         decodeByHand,
	} {
		if err := decode([]byte(createBody)); err != nil {
			t.Errorf("%s refuses the body: %v", name, err)
		}
		for _, r := range refusals {
			if decode([]byte(r.body)) == nil {
				t.Errorf("%s accepts %s", name, r.name)
			}
		}
	}
}

func TestEveryoneServes(t *testing.T) {
	sides, err := requestSides()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sides {
		if err := s.once(); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

func TestTemplates(t *testing.T) {
	token, request := "jt_0123456789abcdefghjkmnpqrstvwxyz0123456789abcdefghjk", "bench-trace-1"
	got := templates([]string{"BEGIN", "INSERT VALUES ('" + token + "', 'evt_01m8m47x0ve9yswccb3hpxe0zv', '" + request + "')"}, request, token)
	want := "INSERT VALUES ('jt_:bca:bcb:bcc', 'evt_00000000:bcn:bcw', 'req_00000000:bcn:bcw')"
	if got[0] != "BEGIN" || got[1] != want {
		t.Errorf("got %q", got)
	}
}

// The small comparisons as ordinary benchmarks, so that a profile is one flag away:
//
//	go test -bench Request/ours -cpuprofile cpu.out

func BenchmarkDecode(b *testing.B) {
	sides, err := decodeSides()
	loop(b, sides, err)
}

func BenchmarkRequest(b *testing.B) {
	sides, err := requestSides()
	loop(b, sides, err)
}

func BenchmarkRefused(b *testing.B) {
	for _, m := range modes {
		b.Run(m.name, func(b *testing.B) { loop(b, refusedSides(m.mode), nil) })
	}
}

func loop(b *testing.B, sides []side, err error) {
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range sides {
		b.Run(s.name, s.loop)
	}
}
