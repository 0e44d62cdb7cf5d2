package fsm

import (
	"context"
	"errors"
	"fmt"

	"github.com/looplab/fsm"
)

// ErrRefused says that the table has no such move.
var ErrRefused = errors.New("fsm: no such move")

// A Gate lets events through the state machine. It is for any number of goroutines.
type Gate struct {
	free   fsm.Events
	forced fsm.Events // with the moves that need force
}

// NewGate returns a gate for the table of spec/provision.md.
func NewGate() *Gate {
	g := &Gate{}
	for _, r := range states {
		for _, m := range r.moves {
			row := fsm.EventDesc{Name: string(m.Event), Src: []string{string(r.state)}, Dst: string(m.To)}
			g.forced = append(g.forced, row)
			if !m.Force {
				g.free = append(g.free, row)
			}
		}
	}
	return g
}

// Pass returns the state that an event leads to, or ErrRefused. Each call has a
// machine of its own, which no other call can leave in the middle of a move.
func (g *Gate) Pass(ctx context.Context, from State, event Event, force bool) (State, error) {
	table := g.free
	if force {
		table = g.forced
	}
	machine := fsm.NewFSM(string(from), table, fsm.Callbacks{})
	// A cancelled context would leave it in the middle. No move leads from a state
	// to itself, which would be an error that is none: the compiler refuses it.
	if err := machine.Event(context.WithoutCancel(ctx), string(event)); err != nil {
		return "", fmt.Errorf("%w: %s from %s", ErrRefused, event, from)
	}
	return State(machine.Current()), nil
}
