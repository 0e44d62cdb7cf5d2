package server_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/server"
	"github.com/bettercompute/bettercompute/impl/store"
)

// TestSweep_MarksWhatHasEnded holds that the sweep goes on until all is marked,
// and marks nothing that lives.
func TestSweep_MarksWhatHasEnded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.clock.Set(noon)
		s.withPools(t)
		s.fill(t, "lab", 2500, time.Minute)
		s.fill(t, "lab", 10, time.Hour)
		s.fill(t, "yard", 10, time.Minute)
		for _, at := range []struct {
			after time.Duration
			want  int
		}{{time.Minute - time.Microsecond, 0}, {time.Minute, 2510}, {time.Hour, 2520}} {
			s.clock.Set(noon.Add(at.after))
			for range 2 {
				if err := s.server.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if n := s.count(t, "join_tokens WHERE ended_at IS NOT NULL"); n != at.want {
				t.Errorf("after %v %d are marked, want %d", at.after, n, at.want)
			}
		}
	})
}

// TestDenials_Bounded holds that there is an end to what is kept between two
// writes, that the rest is told to the log, and that nothing is lost where the
// database does not answer.
func TestDenials_Bounded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		for range 2 {
			for i := range server.MaxDenials + 5 {
				s.server.Refused(store.Denial{Principal: fmt.Sprint("acme/", i), Action: "a", Resource: "r", Reason: "x"})
			}
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if err := s.server.FlushDenials(gone); err == nil {
			t.Error("a flush without a database worked")
		}
		s.server.Refused(store.Denial{Principal: "acme/1", Action: "a", Resource: "r", Reason: "x"})
		if err := s.server.FlushDenials(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n, all, one := s.count(t, "denials"), s.count(t, "denials WHERE count >= 2"), s.count(t, "denials WHERE principal = 'acme/1' AND count = 3"); n != server.MaxDenials || all != n || one != 1 {
			t.Errorf("%d rows, %d with two or more, %d with three", n, all, one)
		}
		if !logged(s.log.text(t), "refusals were of too many kinds to be recorded", `"count":10`) {
			t.Error("the log does not say what was left out")
		}
	})
}
