package regex

import (
	"encoding/binary"
	"slices"
)

// maxWork bounds the steps of one construction, a fraction of a second.
const maxWork = 1 << 23

// raw is an automaton before it is made minimal. State 0 is dead; state 1 starts.
type raw struct {
	classes   int
	next      []int32 // state*classes+class
	accepting []bool
}

// build makes the minimal automaton of a pattern, or reports that it is too large.
func build(root *node) (*DFA, bool) {
	prog := compile(root)
	classOf, samples := prog.byteClasses()
	r, ok := prog.determinise(samples)
	if !ok {
		return nil, false
	}
	return r.minimise(classOf)
}

// subsets numbers the sets of nfa states that occur.
type subsets struct {
	prog    *nfa
	members [][]int32 // of each set, ascending, splits followed
	numbers map[string]int32
	seen    []int32 // round in which a state was last reached
	round   int32
	work    int
}

// determinise runs all ways through the nfa at once, a set of states per state.
func (n *nfa) determinise(samples []byte) (*raw, bool) {
	s := subsets{prog: n, numbers: map[string]int32{}, seen: make([]int32, len(n.states))}
	r := &raw{classes: len(samples)}
	s.number(nil)
	s.number(s.follow([]int32{n.start}))
	for state := 0; state < len(s.members); state++ {
		members := s.members[state]
		r.accepting = append(r.accepting, len(members) > 0 && members[0] == accept)
		for _, b := range samples {
			var out []int32
			for _, member := range members {
				if n.states[member].class.Contains(b) {
					out = append(out, n.states[member].out)
				}
			}
			r.next = append(r.next, s.number(s.follow(out)))
			s.work += 1 + len(members)
			if s.work > maxWork {
				return nil, false
			}
		}
	}
	return r, true
}

// follow returns the states that the given ones reach without consuming, sorted.
func (s *subsets) follow(pending []int32) []int32 {
	s.round++
	var reached []int32
	for len(pending) > 0 {
		last := len(pending) - 1
		state := pending[last]
		pending = pending[:last]
		if s.seen[state] == s.round {
			continue
		}
		s.seen[state] = s.round
		s.work++
		if st := s.prog.states[state]; st.split {
			pending = append(pending, st.out, st.alt)
		} else {
			reached = append(reached, state)
		}
	}
	slices.Sort(reached)
	return reached
}

// number returns the number of a set, a new one when the set is new.
func (s *subsets) number(members []int32) int32 {
	key := make([]byte, 0, 4*len(members))
	for _, m := range members {
		key = binary.LittleEndian.AppendUint32(key, uint32(m))
	}
	number, known := s.numbers[string(key)]
	if !known {
		number = int32(len(s.members))
		s.numbers[string(key)] = number
		s.members = append(s.members, members)
	}
	return number
}
