package regex

// nfa is a pattern with its repeats written out. State accept is the end; every
// other state either consumes one character of a class or splits in two.
type nfa struct {
	states []nfaState
	start  int32
}

// accept is the index of the state in which the whole text has been matched.
const accept = 0

type nfaState struct {
	class    Class // what it consumes before out; empty for a split
	out, alt int32 // alt is the second way of a split
	split    bool
}

func compile(root *node) *nfa {
	n := &nfa{states: make([]nfaState, 1, root.size+1)}
	n.start = n.add(root, accept)
	return n
}

// add makes the states that match sub and go on at next, and returns the first.
func (n *nfa) add(sub *node, next int32) int32 {
	switch sub.op {
	case opConcat:
		for i := len(sub.subs) - 1; i >= 0; i-- {
			next = n.add(sub.subs[i], next)
		}
		return next
	case opAlternate:
		last := len(sub.subs) - 1
		entry := n.add(sub.subs[last], next)
		for i := last - 1; i >= 0; i-- {
			entry = n.push(nfaState{split: true, out: n.add(sub.subs[i], next), alt: entry})
		}
		return entry
	case opRepeat:
		return n.addRepeat(sub, next)
	}
	return n.push(nfaState{class: sub.class, out: next})
}

// addRepeat writes the copies out from the last to the first. Each optional copy
// may leave straight for next, which keeps the sets of live states small.
func (n *nfa) addRepeat(repeat *node, next int32) int32 {
	sub := repeat.subs[0]
	entry := next
	if repeat.max == unbounded {
		entry = n.push(nfaState{split: true, alt: next})
		n.states[entry].out = n.add(sub, entry)
	}
	for range repeat.max - repeat.min {
		entry = n.push(nfaState{split: true, out: n.add(sub, entry), alt: next})
	}
	for range repeat.min {
		entry = n.add(sub, entry)
	}
	return entry
}

func (n *nfa) push(s nfaState) int32 {
	n.states = append(n.states, s)
	return int32(len(n.states) - 1)
}

// byteClasses divides the bytes into the fewest classes whose members no state
// tells apart, numbered by their first byte. samples holds that byte of each.
func (n *nfa) byteClasses() (classOf [256]uint8, samples []byte) {
	distinct := map[Class]bool{}
	for _, s := range n.states {
		if s.split || s.class == (Class{}) || distinct[s.class] {
			continue
		}
		distinct[s.class] = true
		type part struct {
			old    uint8
			inside bool
		}
		numbers := map[part]uint8{}
		for b := range classOf {
			p := part{classOf[b], s.class.Contains(byte(b))}
			number, known := numbers[p]
			if !known {
				number = uint8(len(numbers))
				numbers[p] = number
			}
			classOf[b] = number
		}
	}
	for b, class := range classOf {
		if int(class) == len(samples) {
			samples = append(samples, byte(b))
		}
	}
	return classOf, samples
}
