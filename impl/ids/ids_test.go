package ids_test

import (
	"encoding/binary"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/ids"
)

var (
	derived = regexp.MustCompile(`^jt_[0-9a-hjkmnp-tv-z]{52}$`)
	fresh   = regexp.MustCompile(`^evt_[0-9a-hjkmnp-tv-z]{26}$`)
)

// TestJT_22_Derive holds the form, and that the same parts always give the same id.
func TestJT_22_Derive(t *testing.T) {
	t.Parallel()
	id := ids.Derive("jt", "acme", "acme", "ops", "rack-7")
	if !derived.MatchString(id) || ids.Derive("jt", "acme", "acme", "ops", "rack-7") != id {
		t.Errorf("id %s", id)
	}
	// Ids are stored: what they derive from must not change between releases.
	if want := "jt_z3wc9gcawase3zsz8c2prcn7rg52n816400a31asts19kegfwcd0"; id != want {
		t.Errorf("id %s, want %s as ever", id, want)
	}
}

// TestJT_22_NeighboursDoNotMeet tries every way of cutting a text into parts.
func TestJT_22_NeighboursDoNotMeet(t *testing.T) {
	t.Parallel()
	seen := map[string][]string{}
	var cut func(done []string, rest string)
	cut = func(done []string, rest string) {
		parts := append(slices.Clone(done), rest)
		for _, list := range [][]string{parts, append(slices.Clone(parts), "")} {
			id := ids.Derive("jt", list...)
			if other, taken := seen[id]; taken && !slices.Equal(other, list) {
				t.Fatalf("%q and %q give one id", other, list)
			}
			seen[id] = list
		}
		for i := range len(rest) + 1 {
			if len(done) < 4 {
				cut(append(slices.Clone(done), rest[:i]), rest[i:])
			}
		}
	}
	cut(nil, "acme\x00\x00\x04a")
	if len(seen) < 1000 {
		t.Errorf("only %d ways were tried", len(seen))
	}
}

// FuzzDerive holds that two lists of parts give one id only where they are one list.
func FuzzDerive(f *testing.F) {
	f.Add([]byte("acme"), []byte("acme"), uint16(0), uint16(0))
	f.Add([]byte("ab\x00c"), []byte("a\x00bc"), uint16(0x0102), uint16(0x0201))
	f.Add(binary.BigEndian.AppendUint64(nil, 1), []byte{}, uint16(8), uint16(0))
	f.Fuzz(func(t *testing.T, a, b []byte, cutA, cutB uint16) {
		x, y := split(a, cutA), split(b, cutB)
		same := slices.Equal(x, y)
		if got := ids.Derive("jt", x...) == ids.Derive("jt", y...); got != same {
			t.Fatalf("%q and %q: one id is %v", x, y, got)
		}
		if id := ids.Derive("jt", x...); !derived.MatchString(id) {
			t.Fatalf("id %q", id)
		}
	})
}

// split cuts a text into up to five parts; each four bits of cuts say where.
func split(text []byte, cuts uint16) (parts []string) {
	for ; cuts != 0; cuts >>= 4 {
		n := min(int(cuts&15), len(text))
		parts, text = append(parts, string(text[:n])), text[n:]
	}
	return append(parts, string(text))
}

// TestNew_OrderOfTime holds that fresh ids differ and sort by their milliseconds.
func TestNew_OrderOfTime(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var list []string
	for i := range 1000 {
		id := ids.New("evt", at.Add(time.Duration(i)*time.Millisecond))
		if !fresh.MatchString(id) {
			t.Fatalf("id %s", id)
		}
		list = append(list, id)
	}
	if !slices.IsSorted(list) {
		t.Error("ids are not in the order of their times")
	}
	seen := map[string]bool{}
	for range 10_000 {
		id := ids.New("evt", at)
		if seen[id] {
			t.Fatalf("%s twice", id)
		}
		seen[id] = true
	}
}
