// Package fsm is the provision machine of spec/provision.md: where a machine
// can be, what moves it, and where that leads. It decides and touches nothing.
package fsm

import (
	"slices"
	"time"
)

// A State is where a machine is; see spec/provision.md.
type State string

// An Event is a verb of a caller, or what the reconciler reports.
type Event string

// A Flag is something about a machine that keeps verbs from it, whatever its state.
type Flag string

// A Kind is what a state is for.
type Kind int

// The kinds of states.
const (
	Stable       Kind = iota // the machine stays until a verb moves it
	Transitional             // the reconciler works until it is done, or has failed
	Failed                   // work has failed or was aborted; a verb leads on
	Gone                     // the machine is not stored any more
)

// A Move is where an event leads from a state.
type Move struct {
	Event Event
	To    State
	Force bool // only with force
}

// row is a state and its row of the table.
type row struct {
	state    State
	kind     Kind
	deadline time.Duration
	verbs    []Event // of moves, in the order of their names
	moves    []Move
}

// column is an event and what blocks it.
type column struct {
	event     Event
	verb      bool
	blockedBy []Flag
}

func rowOf(s State) *row {
	for i := range states {
		if states[i].state == s {
			return &states[i]
		}
	}
	return &row{}
}

func columnOf(e Event) *column {
	for i := range events {
		if events[i].event == e {
			return &events[i]
		}
	}
	return &column{}
}

// Initial is the state in which a machine begins.
func Initial() State { return states[0].state }

// States returns all states, in the order of the page.
func States() []State {
	list := make([]State, len(states))
	for i, r := range states {
		list[i] = r.state
	}
	return list
}

// Events returns all events, in the order of the page.
func Events() []Event {
	list := make([]Event, len(events))
	for i, c := range events {
		list[i] = c.event
	}
	return list
}

// Kind returns what the state is for; Stable for one that is not in the table.
func (s State) Kind() Kind { return rowOf(s).kind }

// Deadline is how long work in a transitional state may take, without the time
// in a queue; 0 for other states. After half of it the work is overdue (P5).
func (s State) Deadline() time.Duration { return rowOf(s).deadline }

// IsVerb reports whether callers may ask for the event.
func (e Event) IsVerb() bool { return columnOf(e).verb }

// Next returns where an event leads from a state, and whether it leads anywhere.
func Next(from State, event Event, force bool) (State, bool) {
	for _, m := range rowOf(from).moves {
		if m.Event == event && (force || !m.Force) {
			return m.To, true
		}
	}
	return "", false
}

// Blocking returns the flags, of those that a machine has, that keep an event from it.
func Blocking(event Event, flags []Flag) []Flag {
	var blocking []Flag
	for _, f := range columnOf(event).blockedBy {
		if slices.Contains(flags, f) {
			blocking = append(blocking, f)
		}
	}
	return blocking
}

// Allowed returns the verbs that lead somewhere from a state without force and
// that no flag blocks, in the order of their names.
func Allowed(from State, flags []Flag) []Event {
	allowed := []Event{}
	for _, verb := range rowOf(from).verbs {
		if _, leads := Next(from, verb, false); leads && len(Blocking(verb, flags)) == 0 {
			allowed = append(allowed, verb)
		}
	}
	return allowed
}
