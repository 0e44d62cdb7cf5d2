package main

import (
	"fmt"
	"slices"
	"time"
)

// emitMachine compiles the state table of provision.md, if there is one, into
// the files of a folder of its own.
func emitMachine(spec *spec) (outputs, error) {
	m := spec.machine
	if m == nil {
		return outputs{}, nil
	}
	var v machineView
	for _, s := range m.states {
		row := stateView{Name: s.name, Go: goName(s.name), Kind: goName(s.kind), Meaning: s.meaning, Deadline: goDuration(s.deadline)}
		for _, mv := range m.moves {
			if mv.from == s.name {
				row.Moves = append(row.Moves, moveView{goName(mv.event), goName(mv.to), mv.force})
				if m.event(mv.event).verb {
					row.Verbs = append(row.Verbs, mv.event)
				}
			}
		}
		slices.Sort(row.Verbs)
		for i, verb := range row.Verbs {
			row.Verbs[i] = goName(verb)
		}
		v.States = append(v.States, row)
	}
	for _, t := range m.events {
		row := triggerView{Name: t.name, Go: goName(t.name), Verb: t.verb, Meaning: t.meaning}
		for _, g := range m.guards {
			if slices.ContainsFunc(g.blocks, func(c cell) bool { return c.text == t.name }) {
				row.Blocked = append(row.Blocked, goName(g.flag))
			}
		}
		v.Events = append(v.Events, row)
	}
	for _, g := range m.guards {
		v.Flags = append(v.Flags, textView{g.flag, g.meaning})
	}
	e := &emitter{files: outputs{}}
	return e.files, e.goFile("provision.gen.go", "machine.tmpl", v)
}

// A machineView is the state table as its template sees it.
type machineView struct {
	States []stateView
	Events []triggerView
	Flags  []textView
}

type (
	stateView struct {
		Name, Go, Kind, Meaning, Deadline string
		Moves                             []moveView
		Verbs                             []string // sorted by their names
	}
	moveView struct {
		Event, To string
		Force     bool
	}
	triggerView struct {
		Name, Go, Meaning string
		Verb              bool
		Blocked           []string // by which flags
	}
)

// goDuration is a duration as Go writes it: "60 * time.Minute".
func goDuration(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d%time.Hour == 0:
		return fmt.Sprintf("%d * time.Hour", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%d * time.Minute", d/time.Minute)
	default:
		return fmt.Sprintf("%d * time.Second", d/time.Second)
	}
}
