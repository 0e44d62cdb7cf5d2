package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
)

// A side is one of those that are compared: one operation, done over and over.
type side struct {
	name   string
	during func() (after func()) // puts the process into the state that the side needs; nil: none
	do     func() error
}

// loop is the side as an ordinary benchmark.
func (s side) loop(b *testing.B) {
	if s.during != nil {
		defer s.during()()
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.do(); err != nil {
			b.Fatal(err)
		}
	}
}

// A sample is what one operation of a side takes.
type sample struct {
	nanoseconds []float64 // by round
	allocations float64
}

// Many short rounds rather than few long ones: what disturbs the machine for a
// while then disturbs all sides. They make a few seconds of every comparison.
const (
	microRounds = 25
	microTime   = "40ms"
)

// ballast is how large a heap the collector sees beside what a comparison needs.
// Without it, it would run every few milliseconds and each time go through what
// the other sides keep, such as a whole OpenAPI document: half of our time would
// be theirs. It holds no pointers and is never touched.
const ballast = 256 << 20

// compare lets the sides take turns and returns what each took. A side that fails
// is an error.
func compare(ctx context.Context, sides ...side) ([]sample, error) {
	heap := make([]byte, ballast)
	defer runtime.KeepAlive(heap)
	took := make([]sample, len(sides))
	for round := range microRounds {
		for i, s := range sides {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if round == 0 {
				if err := s.once(); err != nil {
					return nil, fmt.Errorf("%s: %w", s.name, err)
				}
			}
			runtime.GC()
			r := testing.Benchmark(s.loop)
			if r.N == 0 {
				return nil, fmt.Errorf("%s failed while it was measured", s.name)
			}
			took[i].nanoseconds = append(took[i].nanoseconds, float64(r.T.Nanoseconds())/float64(r.N))
			took[i].allocations = float64(r.AllocsPerOp())
		}
	}
	return took, nil
}

func (s side) once() error {
	if s.during != nil {
		defer s.during()()
	}
	return s.do()
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
