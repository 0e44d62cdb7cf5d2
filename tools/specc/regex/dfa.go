package regex

import "slices"

// DFA is a minimal deterministic automaton over bytes. State 0 is dead: no text
// leads out of it. Two automata of the same language are equal in every part.
type DFA struct {
	classOf   [256]uint8
	classes   int
	table     []uint16 // state*classes+class
	accepting []bool
	start     int
}

// dead is the state from which nothing is accepted.
const dead = 0

// Match reports whether the whole of s is accepted.
func (d *DFA) Match(s string) bool {
	state := uint16(d.start)
	for i := 0; i < len(s) && state != dead; i++ {
		state = d.step(state, s[i])
	}
	return d.accepting[state]
}

func (d *DFA) step(state uint16, b byte) uint16 {
	return d.table[int(state)*d.classes+int(d.classOf[b])]
}

// States returns the number of states, the dead one included; at most 65,535.
func (d *DFA) States() int { return len(d.accepting) }

// Classes returns the class of every byte and the number n of classes. Bytes of
// one class are treated alike in every state; classes are numbered by first byte.
func (d *DFA) Classes() (classOf [256]uint8, n int) { return d.classOf, d.classes }

// Table returns the transitions: entry state*n+class is the next state, where n
// is the number of classes. The caller owns the slice.
func (d *DFA) Table() []uint16 { return slices.Clone(d.table) }

// Accepting returns, for each state, whether a text that ends there is accepted.
// The caller owns the slice.
func (d *DFA) Accepting() []bool { return slices.Clone(d.accepting) }

// Start returns the state before the first byte: 1, or 0 when nothing is accepted.
func (d *DFA) Start() int { return d.start }

// Empty reports whether no text at all is accepted. No parsed pattern is empty.
func (d *DFA) Empty() bool { return d.start == dead }

// LengthDFA accepts every ASCII text of at most max characters, so that
// Subset(p, LengthDFA(n)) says whether p implies its length limit n. A negative
// max accepts nothing. A max beyond 65,533 is taken as 65,533, which no bounded
// pattern exceeds, so that the verdict on a parsed pattern stays exact.
func LengthDFA(max int) *DFA {
	d := &DFA{classes: 2, table: []uint16{dead, dead}, accepting: []bool{false}}
	for b := 128; b < 256; b++ {
		d.classOf[b] = 1
	}
	if max < 0 {
		d.mergeClasses()
		return d
	}
	max = min(max, maxStates-2)
	d.start = 1
	for length := range max + 1 {
		next := uint16(length + 2)
		if length == max {
			next = dead
		}
		d.table = append(d.table, next, dead)
		d.accepting = append(d.accepting, true)
	}
	d.mergeClasses()
	return d
}
