package main

import "time"

// A machine is the state table of provision.md.
type machine struct {
	states []*state // the first is where everything begins
	events []*trigger
	guards []*guard
	rows   []cell  // the states that have a row
	moves  []*move // in the order of the table
}

// What a state can be. Only a transitional state is worked in; a final one is
// the end of service, and what is gone is not stored.
const (
	stable       = "stable"
	transitional = "transitional"
	failed       = "failed"
	gone         = "gone"
)

// A state is where a machine can be.
type state struct {
	name     string
	at       position
	kind     string
	deadline time.Duration // of a transitional state
	meaning  string
}

// A trigger is an event of the machine: a verb of a caller, or what the work reports.
type trigger struct {
	name    string
	at      position
	verb    bool
	meaning string
}

// A guard is a flag that blocks verbs in every state.
type guard struct {
	flag    string
	at      position
	blocks  []cell
	meaning string
}

// A move is a cell of the table.
type move struct {
	from, event, to string
	force           bool
	at              position
}
