package ca_test

import (
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/ca"
)

var serialForm = regexp.MustCompile(`^[4-7][0-9a-f]{31}$`)

// TestNJ_3_Serial holds that serial numbers are random, positive and of one
// width, and come back from the store as they were.
func TestNJ_3_Serial(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		text := ca.NewSerial()
		serial, err := ca.ParseSerial(text)
		if err != nil || serial.Sign() <= 0 || serial.BitLen() != 127 || ca.FormatSerial(serial) != text || !serialForm.MatchString(text) || seen[text] {
			t.Fatalf("%s: %v", text, err)
		}
		seen[text] = true
	}
	if text := ca.FormatSerial(big.NewInt(0x4711)); text != strings.Repeat("0", 28)+"4711" {
		t.Errorf("a small one is %s", text)
	}
}

// FuzzParseSerial holds that only what FormatSerial writes is read.
func FuzzParseSerial(f *testing.F) {
	for _, text := range []string{ca.NewSerial(), "", strings.Repeat("0", 32), strings.Repeat("f", 32), strings.Repeat("F", 32), strings.Repeat("0", 31) + "1", "0x" + strings.Repeat("1", 30), strings.Repeat("1", 34)} {
		f.Add(text)
	}
	form := regexp.MustCompile(`^[0-9a-f]{32}$`)
	f.Fuzz(func(t *testing.T, text string) {
		serial, err := ca.ParseSerial(text)
		if want := form.MatchString(text) && strings.Trim(text, "0") != ""; (err == nil) != want {
			t.Fatalf("%q: %v", text, err)
		}
		if err == nil && (ca.FormatSerial(serial) != text || serial.Sign() <= 0) {
			t.Fatalf("%q is %x", text, serial)
		}
	})
}
