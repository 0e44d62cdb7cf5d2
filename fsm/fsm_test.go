package fsm_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/bettercompute/bettercompute/fsm"
)

// every calls fn with all states, and one that is none, all events, and one that
// is none, with and without force.
func every(fn func(from fsm.State, event fsm.Event, force bool)) {
	for _, from := range append(fsm.States(), "nowhere", "") {
		for _, event := range append(fsm.Events(), "explode", "", "forget!") {
			for _, force := range []bool{false, true} {
				fn(from, event, force)
			}
		}
	}
}

func TestGate_AgreesWithNextEverywhere(t *testing.T) {
	t.Parallel()
	gate, moves := fsm.NewGate(), 0
	every(func(from fsm.State, event fsm.Event, force bool) {
		want, leads := fsm.Next(from, event, force)
		got, err := gate.Pass(t.Context(), from, event, force)
		if (err == nil) != leads || got != want || err != nil && !errors.Is(err, fsm.ErrRefused) {
			t.Errorf("%s from %s, force %v: the gate says %q, %v; the table %q, %v", event, from, force, got, err, want, leads)
		}
		if leads && force {
			moves++
		}
	})
	if moves != 100 || len(fsm.States()) != 24 || len(fsm.Events()) != 16 {
		t.Errorf("%d moves, %d states, %d events", moves, len(fsm.States()), len(fsm.Events()))
	}
}

// TestAllowed holds the verbs of a state to the table and the flags.
func TestAllowed(t *testing.T) {
	t.Parallel()
	flags := []fsm.Flag{fsm.Protected, fsm.Maintenance, fsm.Fault, fsm.Cordoned}
	for _, from := range fsm.States() {
		for set := range 1 << len(flags) {
			var has []fsm.Flag
			for i, f := range flags {
				if set>>i&1 == 1 {
					has = append(has, f)
				}
			}
			allowed := fsm.Allowed(from, has)
			if !slices.IsSorted(allowed) || allowed == nil {
				t.Errorf("%s: %v is not in order, or nil", from, allowed)
			}
			for _, event := range fsm.Events() {
				_, leads := fsm.Next(from, event, false)
				want := leads && event.IsVerb() && len(fsm.Blocking(event, has)) == 0
				if slices.Contains(allowed, event) != want {
					t.Errorf("%s with %v: %s is allowed: %v, want %v", from, has, event, !want, want)
				}
			}
		}
	}
}

// leadsTo returns the states from which some event leads to a state.
func leadsTo(to fsm.State) []fsm.State {
	var from []fsm.State
	for _, s := range fsm.States() {
		for _, e := range fsm.Events() {
			if next, leads := fsm.Next(s, e, true); leads && next == to && !slices.Contains(from, s) {
				from = append(from, s)
			}
		}
	}
	return from
}

func TestP4_AbortLeavesAllWork(t *testing.T) {
	t.Parallel()
	for _, s := range fsm.States() {
		to, leads := fsm.Next(s, fsm.Abort, false)
		if leads != (s.Kind() == fsm.Transitional) || leads && to.Kind() == fsm.Transitional {
			t.Errorf("abort from %s leads to %q", s, to)
		}
		if _, leads := fsm.Next(s, fsm.Forget, true); leads != (s.Kind() != fsm.Gone) {
			t.Errorf("forget with force from %s: %v", s, leads)
		}
	}
}

func TestP5_WorkHasADeadline(t *testing.T) {
	t.Parallel()
	for _, s := range fsm.States() {
		if (s.Deadline() > 0) != (s.Kind() == fsm.Transitional) {
			t.Errorf("%s has the deadline %v", s, s.Deadline())
		}
	}
}

// TestP6 holds that every workflow fails into a state of its own; only verifying
// falls back.
func TestP6_FailureHasItsState(t *testing.T) {
	t.Parallel()
	seen := map[fsm.State]bool{}
	for _, s := range fsm.States() {
		if s.Kind() != fsm.Transitional {
			continue
		}
		to, _ := fsm.Next(s, fsm.Fail, false)
		if s == fsm.Verifying {
			if to != fsm.Enrolled {
				t.Errorf("verifying fails into %s", to)
			}
			continue
		}
		if to.Kind() != fsm.Failed || seen[to] {
			t.Errorf("%s fails into %s", s, to)
		}
		seen[to] = true
		if aborted, _ := fsm.Next(s, fsm.Abort, false); aborted != to {
			t.Errorf("%s is aborted into %s, and fails into %s", s, aborted, to)
		}
	}
}

func TestP8_AvailableOnlyThroughAnErase(t *testing.T) {
	t.Parallel()
	if got := leadsTo(fsm.Available); !slices.Equal(got, []fsm.State{fsm.Commissioning, fsm.Releasing}) {
		t.Errorf("available is reached from %v", got)
	}
	if got := leadsTo(fsm.Active); !slices.Equal(got, []fsm.State{fsm.Deploying, fsm.Unrescuing, fsm.Adopting}) {
		t.Errorf("active is reached from %v", got)
	}
}

func BenchmarkGate(b *testing.B) {
	gate := fsm.NewGate()
	for b.Loop() {
		if _, err := gate.Pass(b.Context(), fsm.Available, fsm.Deploy, false); err != nil {
			b.Fatal(err)
		}
	}
}
