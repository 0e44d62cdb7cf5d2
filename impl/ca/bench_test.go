package ca_test

import (
	"testing"

	"github.com/bettercompute/bettercompute/impl/ca"
)

func BenchmarkSignNode(b *testing.B) {
	a := authority(b, generate(b))
	o := order(b, true, newKey(b).Public())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.SignNode(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkVerifyNode has three generations of issuers, of which the oldest signed.
func BenchmarkVerifyNode(b *testing.B) {
	materials := generate(b)
	chain := signNode(b, authority(b, materials), order(b, false, newKey(b).Public()))
	for range 2 {
		rotated, err := ca.Rotate(materials, today)
		if err != nil {
			b.Fatal(err)
		}
		materials = append(materials, rotated...)
	}
	a := authority(b, materials)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.VerifyNode(chain, today); err != nil {
			b.Fatal(err)
		}
	}
}
