package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestKolmogorovSmirnov(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b []float64
		want float64
	}{
		{"the same", []float64{1, 2, 3}, []float64{3, 1, 2}, 0},
		{"apart", []float64{1, 2}, []float64{3, 4, 5}, 1},
		{"half", []float64{1, 2, 3, 4}, []float64{3, 4, 5, 6}, 0.5},
		{"ties", []float64{1, 1, 1, 2}, []float64{1, 2, 2, 2}, 0.5},
	} {
		if got := kolmogorovSmirnov(c.a, c.b); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v instead of %v", c.name, got, c.want)
		}
	}
	if got := kolmogorovSmirnovCritical(0.01, 20_000, 20_000); math.Abs(got-0.01628) > 1e-5 { // the tables say 1.628 sqrt(2/n)
		t.Errorf("critical value %v", got)
	}
}

// The test must see a shift of a tenth of the spread, and must not see what is not there.
func TestKolmogorovSmirnovTellsApart(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	sample := func(shift float64) []float64 {
		s := make([]float64, timingRequests)
		for i := range s {
			s[i] = math.Exp(random.NormFloat64()*0.3) + shift
		}
		return s
	}
	critical := kolmogorovSmirnovCritical(timingAlpha, timingRequests, timingRequests)
	if d := kolmogorovSmirnov(sample(0), sample(0)); d > critical {
		t.Errorf("samples of one distribution are told apart: %v > %v", d, critical)
	}
	if d := kolmogorovSmirnov(sample(0), sample(0.03)); d <= critical {
		t.Errorf("a shift is not seen: %v <= %v", d, critical)
	}
}
