package placeholder

import (
	"strings"
	"testing"
	"unicode"
)

func TestNormalize(t *testing.T) {
	t.Parallel()
	const uuid = "4c4c4544-0042-3510-8052-b3c04f4b4e32"
	for _, c := range []struct {
		kind     Kind
		in, want string
	}{
		{Serial, "", ""},
		{Serial, " \t'To  Be Filled\u00a0By O.E.M.'. ", "to be filled by o.e.m"},
		{Serial, "“Default\x00string”", "default string"},
		{Serial, "ＡＢＣ①", "abc1"},
		{Serial, "Straße", "strasse"},
		{Serial, "zero\u200bwidth", "zero width"},
		{Serial, "...leading dots stay", "...leading dots stay"},
		{Serial, "a\xff\xfeb", "a\ufffdb"},
		{Serial, "AA-BB-CC-DD-EE-FF", "aa-bb-cc-dd-ee-ff"}, // a serial is no MAC
		{MAC, "AA-BB-CC-DD-EE-FF", "aa:bb:cc:dd:ee:ff"},
		{MAC, "aabb.ccdd.eeff", "aa:bb:cc:dd:ee:ff"},
		{MAC, "AABBCCDDEEFF", "aa:bb:cc:dd:ee:ff"},
		{MAC, "aa bb cc dd ee ff", "aa:bb:cc:dd:ee:ff"},
		{MAC, "aa:bb:cc:dd:ee", "aa:bb:cc:dd:ee"},
		{MAC, "AA:BB:CC:DD:EE:FF:00", "aa:bb:cc:dd:ee:ff:00"},
		{MAC, "AA:BB:CC:DD:EE:GG", "aa:bb:cc:dd:ee:gg"},
		{ProductUUID, "{4C4C4544-0042-3510-8052-B3C04F4B4E32}", uuid},
		{ProductUUID, "4C4C45440042351080 52B3C04F4B4E32", uuid},
		{ProductUUID, "{not a UUID}", "{not a uuid}"},
		{GPUUUID, "GPU-4C4C4544-0042-3510-8052-B3C04F4B4E32", "gpu-" + uuid},
		{GPUUUID, "4c4c4544-0042-3510-8052-b3c04f4b4e32", "gpu-" + uuid},
		{GPUUUID, "GPU-592C190172FD5D40", "gpu-592c190172fd5d40"},
		{GPUUUID, "MIG-4C4C4544-0042-3510-8052-B3C04F4B4E32", "mig-" + uuid},
	} {
		if got := Normalize(c.kind, c.in); got != c.want {
			t.Errorf("Normalize(%s, %q) = %q, want %q", c.kind, c.in, got, c.want)
		}
	}
}

func TestSwapUUID(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"03000200-0400-0500-0006-000700080009": "00020003-0004-0005-0006-000700080009",
		"00112233-4455-6677-8899-AABBCCDDEEFF": "33221100-5544-7766-8899-aabbccddeeff",
		"00112233445566778899aabbccddeeff":     "33221100-5544-7766-8899-aabbccddeeff",
		"Not Settable":                         "not settable",
		"":                                     "",
	} {
		got := SwapUUID(in)
		if got != want {
			t.Errorf("SwapUUID(%q) = %q, want %q", in, got, want)
		}
		if back := SwapUUID(got); back != Normalize(ProductUUID, in) {
			t.Errorf("SwapUUID(%q) = %q does not undo itself", got, back)
		}
	}
}

// Every character that could move, alone, after a letter and before a mark, so that the rounds of text are known to
// suffice. Ideographs and the private use areas fold and compose to themselves.
func TestNormalizeSettles(t *testing.T) {
	t.Parallel()
	for r := range rune(unicode.MaxRune + 1) {
		if !unicode.IsGraphic(r) && !blank(r) || unicode.In(r, unicode.Han, unicode.Hangul, unicode.Tangut) {
			continue
		}
		for _, in := range []string{string(r), "a" + string(r), string(r) + "\u0345"} {
			if once := Normalize(Serial, in); Normalize(Serial, once) != once {
				t.Fatalf("%U in %q: %q is not settled", r, in, once)
			}
		}
	}
}

func FuzzMatch(f *testing.F) {
	l, c := Default(), readCorpus(f)
	for _, samples := range c.Bogus {
		for _, s := range samples {
			f.Add(string(s.Kind), s.Value, s.VMs)
		}
	}
	for _, s := range c.Real {
		f.Add(string(s.Kind), s.Value, s.VMs)
	}
	f.Add("serial", "\"\u0301.'\u00b4", false)
	f.Fuzz(func(t *testing.T, kind, value string, vms bool) {
		k := Kind(kind)
		once := Normalize(k, value)
		if twice := Normalize(k, once); twice != once {
			t.Errorf("Normalize(%q, %q) = %q, and again %q", kind, value, once, twice)
		}
		if swapped := SwapUUID(value); SwapUUID(swapped) != Normalize(ProductUUID, value) {
			t.Errorf("SwapUUID(%q) = %q does not undo itself", value, swapped)
		}
		rule, bogus := l.Match(k, value, sample{VMs: vms}.options()...)
		if bogus != (rule != "") || bogus && l.Why(rule) == "" {
			t.Errorf("Match(%q, %q) = %q, %t", kind, value, rule, bogus)
		}
		if again, _ := l.Match(k, strings.ToUpper(once), sample{VMs: vms}.options()...); isASCII(once) && again != rule {
			t.Errorf("Match(%q, %q) = %q, but %q of its upper-case normal form", kind, value, rule, again)
		}
	})
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}
