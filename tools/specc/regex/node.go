package regex

// maxSize bounds the characters of a pattern once its repeats are written out.
const maxSize = 1 << 17

type op int

const (
	opClass     op = iota // one character of a class; a literal is a class of one
	opConcat              // subs one after the other, at least two
	opAlternate           // one of the subs, at least two
	opRepeat              // its only sub, min to max times
)

// node is one node of a parsed pattern. None matches only the empty text.
type node struct {
	op       op
	class    Class
	members  []span // opClass: as written, for the translations
	subs     []*node
	min, max int // opRepeat: max is at least 1, or unbounded
	size     int // characters once all repeats are written out
}

// unbounded is the max of a repeat, a length or a run that has none.
const unbounded = -1

func classNode(members ...span) *node {
	return &node{op: opClass, class: classOf(members), members: members, size: 1}
}

// join makes a concatenation or an alternation, or returns a lone sub as it is.
func join(op op, subs []*node) *node {
	if len(subs) == 1 {
		return subs[0]
	}
	n := &node{op: op, subs: subs}
	for _, sub := range subs {
		n.size += sub.size
	}
	return n
}

func repeatNode(sub *node, min, max int) *node {
	copies := max
	if max == unbounded {
		copies = min + 1
	}
	return &node{op: opRepeat, subs: []*node{sub}, min: min, max: max, size: copies * sub.size}
}

// lengths returns the shortest and the longest match of n; max may be unbounded.
func (n *node) lengths() (shortest, longest int) {
	switch n.op {
	case opConcat:
		for _, sub := range n.subs {
			low, high := sub.lengths()
			shortest += low
			longest = plus(longest, high)
		}
		return shortest, longest
	case opAlternate:
		shortest, longest = n.subs[0].lengths()
		for _, sub := range n.subs[1:] {
			low, high := sub.lengths()
			shortest = min(shortest, low)
			if longest != unbounded && (high == unbounded || high > longest) {
				longest = high
			}
		}
		return shortest, longest
	case opRepeat:
		low, high := n.subs[0].lengths()
		if n.max == unbounded || high == unbounded {
			return low * n.min, unbounded
		}
		return low * n.min, high * n.max
	}
	return 1, 1
}

// plus adds two maxima.
func plus(a, b int) int {
	if a == unbounded || b == unbounded {
		return unbounded
	}
	return a + b
}
