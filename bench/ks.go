package main

import (
	"math"
	"slices"
)

// kolmogorovSmirnov is the statistic of the two-sample test: how far apart the
// distributions of two samples are at most, from 0 to 1.
func kolmogorovSmirnov(a, b []float64) (d float64) {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	for i, j := 0, 0; i < len(a) && j < len(b); {
		at := min(a[i], b[j])
		for i < len(a) && a[i] == at {
			i++
		}
		for j < len(b) && b[j] == at {
			j++
		}
		d = max(d, math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b))))
	}
	return d
}

// kolmogorovSmirnovCritical is what the statistic of two samples of n and m from
// one distribution exceeds with a probability of alpha, for large n and m.
func kolmogorovSmirnovCritical(alpha float64, n, m int) float64 {
	return math.Sqrt(-math.Log(alpha/2)/2) * math.Sqrt(float64(n+m)/(float64(n)*float64(m)))
}
