package attest_test

import (
	"cmp"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/bettercompute/bettercompute/impl/attest"
	"github.com/bettercompute/bettercompute/impl/placeholder"
	"github.com/bettercompute/bettercompute/impl/store"
)

var hexSHA256 = regexp.MustCompile(`^[0-9a-f]{64}$`)

func shuffled(seed uint64, c store.Claims) store.Claims {
	r := rand.New(rand.NewPCG(seed, seed))
	c.MACs, c.GPUUUIDs = slices.Clone(c.MACs), slices.Clone(c.GPUUUIDs)
	r.Shuffle(len(c.MACs), func(i, j int) { c.MACs[i], c.MACs[j] = c.MACs[j], c.MACs[i] })
	r.Shuffle(len(c.GPUUUIDs), func(i, j int) { c.GPUUUIDs[i], c.GPUUUIDs[j] = c.GPUUUIDs[j], c.GPUUUIDs[i] })
	return c
}

// sorted is what two claims must have in common to be the same.
func sorted(c store.Claims) store.Claims {
	c = shuffled(0, c)
	slices.Sort(c.MACs)
	slices.Sort(c.GPUUUIDs)
	if len(c.MACs) == 0 {
		c.MACs = nil
	}
	if len(c.GPUUUIDs) == 0 {
		c.GPUUUIDs = nil
	}
	return c
}

// FuzzClaims holds of both hashes that the order of addresses and GPUs does not
// matter, and that two that differ have different hashes (JR-4).
func FuzzClaims(f *testing.F) {
	f.Add("a", "b", "c", "d", "e", "f", "g", "host", uint64(1), "a", "b", "c", "d", "e", "f", "g", "host")
	f.Add("", "", "", "", "", "", "", "", uint64(2), "x\nmac=y", "", "", "", "", "", "", "")
	f.Add("", "", "x\nmac=y", "", "", "", "", "", uint64(3), "", "", "x", "y", "", "", "", "")
	f.Add("a", "", "", "", "", "", "b", "", uint64(4), "", "a", "", "", "", "", "b", "")
	f.Add(uuid, "CZ2D1X0QTP", mac, mac2, gpu, gpu2, "rack7", "host", uint64(5), swapped, "cz2d1x0qtp", mac2, mac, gpu2, gpu, "rack7", "host")
	list := placeholder.Default()
	f.Fuzz(func(t *testing.T, u1, s1, m1, m2, g1, g2, h1, e1 string, seed uint64, u2, s2, m3, m4, g3, g4, h2, e2 string) {
		a := store.Claims{ProductUUID: u1, Serial: s1, MACs: []string{m1, m2}, GPUUUIDs: []string{g1, g2}, Hostname: h1, Environment: e1}
		b := store.Claims{ProductUUID: u2, Serial: s2, MACs: []string{m3, m4}, GPUUUIDs: []string{g3, g4}, Hostname: h2, Environment: e2}
		ofA, ofB := attest.ClaimsSHA256(a), attest.ClaimsSHA256(b)
		if !hexSHA256.MatchString(ofA) || attest.ClaimsSHA256(shuffled(seed, a)) != ofA {
			t.Fatalf("%+v: %s depends on the order", a, ofA)
		}
		if (ofA == ofB) != reflect.DeepEqual(sorted(a), sorted(b)) {
			t.Fatalf("%+v and %+v: %s and %s", a, b, ofA, ofB)
		}
		first, second := attest.Judge(list, a, false), attest.Judge(list, b, false)
		if again := attest.Judge(list, shuffled(seed, a), false); !slices.Equal(again.Tells, first.Tells) || again.SHA256() != first.SHA256() {
			t.Fatalf("%+v: what tells the machine depends on the order: %v, %v", a, first, again)
		}
		if (first.SHA256() == second.SHA256()) != slices.Equal(first.Tells, second.Tells) {
			t.Fatalf("%v and %v: %q and %q", first.Tells, second.Tells, first.SHA256(), second.SHA256())
		}
		if (first.SHA256() == "") != (len(first.Tells) == 0) {
			t.Fatalf("%v: %q", first.Tells, first.SHA256())
		}
		ordered := slices.IsSortedFunc(first.Tells, func(a, b store.Identifier) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Value, b.Value))
		})
		if !ordered || len(slices.Compact(slices.Clone(first.Tells))) != len(first.Tells) {
			t.Fatalf("not sorted, or something twice: %v", first.Tells)
		}
	})
}

// TestJR_4_EveryClaimCounts holds that no two of many claims that differ in one
// place, or in where a value stands, have the same hash.
func TestJR_4_EveryClaimCounts(t *testing.T) {
	t.Parallel()
	seen := map[string]store.Claims{}
	values := []string{"", "a", "b", "a:b", "1:a", "serial=a", "host"}
	lists := [][]string{nil, {"a"}, {"b"}, {"a", "a"}, {"a", "b"}, {"a", "b", "b"}, {"b", "mac=a"}}
	for _, uuid := range values {
		for _, serial := range values {
			for _, macs := range lists {
				for _, gpus := range lists {
					for _, host := range values {
						for _, environment := range []string{"", "host", "kubernetes"} {
							c := store.Claims{ProductUUID: uuid, Serial: serial, MACs: macs, GPUUUIDs: gpus, Hostname: host, Environment: environment}
							hash := attest.ClaimsSHA256(c)
							if other, taken := seen[hash]; taken {
								t.Fatalf("%+v and %+v have one hash", c, other)
							}
							seen[hash] = c
						}
					}
				}
			}
		}
	}
}

// TestJR_4_TheSameMachine holds that spelling, order and what does not tell a
// machine do not make it another one.
func TestJR_4_TheSameMachine(t *testing.T) {
	t.Parallel()
	list := placeholder.Default()
	first := attest.Judge(list, store.Claims{ProductUUID: uuid, Serial: "CZ2D1X0QTP", MACs: []string{mac, mac2}, Hostname: "a"}, false)
	second := attest.Judge(list, store.Claims{ProductUUID: "{" + uuid + "}", Serial: "cz2d1x0qtp ", MACs: []string{mac2, mac, mac, "ff:ff:ff:ff:ff:ff"}, Hostname: "b", Environment: "host"}, false)
	if first.SHA256() != second.SHA256() {
		t.Errorf("%v and %v", first.Tells, second.Tells)
	}
	if other := attest.Judge(list, store.Claims{ProductUUID: uuid, Serial: "CZ2D1X0QTP", MACs: []string{mac}}, false); other.SHA256() == first.SHA256() {
		t.Error("an address less makes the same machine")
	}
}
