package bearer_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/bearer"
)

const anID = "jt_0123456789abcdefghjkmnpqrs"

var form = regexp.MustCompile(`^bcjt_` + anID + `\.[0-9A-Za-z]{49}$`)

// TestJT_03_MintAndParse holds that a bearer has the form of the rule, is never
// the same twice, and is read back as what it was.
func TestJT_03_MintAndParse(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		b, hash := bearer.Mint(bearer.JoinToken, anID)
		text := b.Reveal()
		if !form.MatchString(text) || seen[text] {
			t.Fatalf("minted %s, seen before: %v", text, seen[text])
		}
		seen[text] = true
		id, parsed, ok := bearer.Parse(bearer.JoinToken, text)
		if !ok || id != anID || parsed != hash {
			t.Fatalf("read back %s %v", id, ok)
		}
		if want := sha256.Sum256([]byte(text[len(text)-49:])); hash != want {
			t.Fatalf("hash %x, want that of the 49 characters", hash)
		}
	}
}

// TestJT_03_KnownBearer is one that was computed elsewhere (zlib.crc32).
func TestJT_03_KnownBearer(t *testing.T) {
	t.Parallel()
	const known = "bcjt_" + anID + ".00000000000000000000000000000000000000000001cC0n5"
	if id, _, ok := bearer.Parse(bearer.JoinToken, known); !ok || id != anID {
		t.Errorf("not read: %s", known)
	}
}

// TestJT_03_ATypoIsRefused changes every character of a bearer to every other
// one, and swaps every two neighbours.
func TestJT_03_ATypoIsRefused(t *testing.T) {
	t.Parallel()
	b, _ := bearer.Mint(bearer.JoinToken, anID)
	text := b.Reveal()
	refuse := func(wrong string) {
		t.Helper()
		if _, _, ok := bearer.Parse(bearer.JoinToken, wrong); ok && wrong != text {
			t.Errorf("taken for a bearer: %q", wrong)
		}
	}
	for i := range len(text) {
		for c := range 256 {
			refuse(text[:i] + string([]byte{byte(c)}) + text[i+1:])
		}
		refuse(text[:i])
		refuse(text[i:])
		refuse(text[:i] + text[i+1:])
		refuse(text[:i] + "0" + text[i:])
		if i > 0 {
			refuse(text[:i-1] + text[i:i+1] + text[i-1:i] + text[i+1:])
		}
	}
	for _, wrong := range []string{"", ".", "bcjt_", "bcjt_.", " " + text, text + " ", text + "\n", text + text, strings.ToUpper(text)} {
		refuse(wrong)
	}
	if _, _, ok := bearer.Parse(bearer.APIKey, text); ok {
		t.Error("one kind is taken for the other")
	}
}

// TestBearer_PrintsSealed holds that no way of printing shows the text.
func TestBearer_PrintsSealed(t *testing.T) {
	t.Parallel()
	b, _ := bearer.Mint(bearer.APIKey, "ak_0123456789abcdefghjkmnpqrs")
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info(b.String(), "value", b, "pointer", &b, "inside", struct{ B bearer.Bearer }{b}, slog.Any("list", []bearer.Bearer{b}))
	}
	text, err := json.Marshal(map[string]any{"value": b, "pointer": &b, "list": []bearer.Bearer{b}})
	if err != nil {
		t.Fatal(err)
	}
	type holder struct {
		B bearer.Bearer
		p *bearer.Bearer
		b bearer.Bearer
	}
	h, anyVerb := holder{b, &b, b}, "%d %t %p %c %s %w"
	_, secret, _ := strings.Cut(b.Reveal(), ".")
	for _, printed := range []string{
		log.String(), string(text), fmt.Sprint(b), fmt.Sprintf("%v %+v %#v %s %q", b, b, b, b, b),
		fmt.Sprintf("%v %+v %#v %+v", h, h, h, &h), fmt.Sprintf("%v %+v %#v", &b, []bearer.Bearer{b}, map[string]bearer.Bearer{"": b}),
		fmt.Errorf("with %v", b).Error(), fmt.Sprintf("%x %X", b, b), fmt.Sprintf(anyVerb, b, b, b, b, h, h),
	} {
		if strings.Contains(printed, secret) || strings.Contains(printed, fmt.Sprintf("%x", secret)) {
			t.Errorf("printed: %s", printed)
		}
	}
}

// TestHash_Equal holds that only the hash itself is equal.
func TestHash_Equal(t *testing.T) {
	t.Parallel()
	_, hash := bearer.Mint(bearer.APIKey, "ak_0123456789abcdefghjkmnpqrs")
	if !hash.Equal(hash[:]) {
		t.Error("a hash is not equal to itself")
	}
	other := hash
	other[31] ^= 1
	for _, stored := range [][]byte{nil, {}, hash[:31], append(hash[:], 0), other[:], make([]byte, 32)} {
		if hash.Equal(stored) {
			t.Errorf("equal to %x", stored)
		}
	}
}
