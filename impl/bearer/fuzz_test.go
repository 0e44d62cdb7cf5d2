package bearer_test

import (
	"hash/crc32"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/bearer"
)

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// FuzzParseBearer holds Parse against a reading of the rule that is written
// another way: from the end, by number.
func FuzzParseBearer(f *testing.F) {
	for _, kind := range []string{bearer.JoinToken, bearer.APIKey} {
		for _, id := range []string{anID, "ak_0", "x", "", "ak.0", "ak_\xff"} {
			b, _ := bearer.Mint(kind, id)
			f.Add(kind, b.Reveal())
			f.Add(kind, b.Reveal()[1:])
			f.Add(bearer.APIKey, b.Reveal())
		}
	}
	f.Add("", "")
	f.Add("bck_", "bck_ak_0."+strings.Repeat("~", 49))
	f.Fuzz(func(t *testing.T, kind, text string) {
		if kind != bearer.JoinToken {
			kind = bearer.APIKey
		}
		id, hash, ok := bearer.Parse(kind, text)
		if want := wellFormed(kind, text); ok != want {
			t.Fatalf("Parse(%q, %q) is %v, want %v", kind, text, ok, want)
		}
		if !ok {
			if id != "" || hash != (bearer.Hash{}) {
				t.Fatalf("what is refused says %q %x", id, hash)
			}
			return
		}
		if !strings.HasPrefix(text, kind+id+".") || strings.ContainsAny(id, ".'\" \x00") {
			t.Fatalf("id %q of %q", id, text)
		}
		again, second, ok := bearer.Parse(kind, text)
		if !ok || again != id || second != hash {
			t.Fatal("read differently the second time")
		}
	})
}

func wellFormed(kind, text string) bool {
	if len(text) < len(kind)+1+1+49 || text[:len(kind)] != kind || text[len(text)-50] != '.' {
		return false
	}
	for _, c := range []byte(text[len(kind) : len(text)-50]) {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_') {
			return false
		}
	}
	for _, c := range []byte(text[len(text)-49:]) {
		if strings.IndexByte(digits, c) < 0 {
			return false
		}
	}
	sum := uint64(0)
	for _, c := range []byte(text[len(text)-6:]) {
		sum = sum*62 + uint64(strings.IndexByte(digits, c))
	}
	return sum == uint64(crc32.ChecksumIEEE([]byte(text[:len(text)-6])))
}
