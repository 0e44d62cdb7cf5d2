package main

import (
	"testing"

	"github.com/bettercompute/bettercompute/impl/bearer"
)

// A wrong bearer must get past the checksum, or its timing says nothing; and it
// must differ from the right one in what it is named for alone.
func TestWrongBearers(t *testing.T) {
	right, hash := bearer.Mint(bearer.JoinToken, tokenID)
	wrong, err := wrongBearers(right.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	for kind, text := range wrong {
		id, other, ok := bearer.Parse(bearer.JoinToken, text)
		if !ok || other == hash || (id == tokenID) != (kind != unknownID) || len(text) != len(right.Reveal()) {
			t.Errorf("kind %d: id %q, well-formed %v", kind, id, ok)
		}
	}
	first := len(bearer.JoinToken + tokenID + ".")
	if at := firstDifference(right.Reveal(), wrong[wrongFirst]); at != first {
		t.Errorf("the wrong first byte is at %d, and not at %d", at, first)
	}
	if at := firstDifference(right.Reveal(), wrong[wrongLast]); at != first+42 {
		t.Errorf("the wrong last byte is at %d, and not at %d", at, first+42)
	}
}

func firstDifference(a, b string) int {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	return i
}
