package regex

import "slices"

// maxStates bounds an automaton, so that a state fits in a uint16.
const maxStates = 65535

// minimise merges the states that no text tells apart and the bytes that no
// state tells apart. The result depends on the language alone: dead state 0,
// then breadth first from the start, classes by their first byte.
func (r *raw) minimise(classOf [256]uint8) (*DFA, bool) {
	block := r.equivalent()
	number := map[int32]uint16{block[0]: 0}
	order := []int{0} // a raw state of each numbered block
	visit := func(state int) bool {
		if _, known := number[block[state]]; !known {
			if len(order) == maxStates {
				return false
			}
			number[block[state]] = uint16(len(order))
			order = append(order, state)
		}
		return true
	}
	if !visit(1) {
		return nil, false
	}
	d := &DFA{classOf: classOf, classes: r.classes, start: int(number[block[1]])}
	for i := 0; i < len(order); i++ {
		row := r.next[order[i]*r.classes:][:r.classes]
		for _, next := range row {
			if !visit(int(next)) {
				return nil, false
			}
			d.table = append(d.table, number[block[next]])
		}
		d.accepting = append(d.accepting, r.accepting[order[i]])
	}
	d.mergeClasses()
	return d, true
}

// mergeClasses makes one class of those with equal columns.
func (d *DFA) mergeClasses() {
	merged := make([]uint8, d.classes)
	var kept []int
	for class := range d.classes {
		same := slices.IndexFunc(kept, func(k int) bool { return d.equalColumns(k, class) })
		if same < 0 {
			same = len(kept)
			kept = append(kept, class)
		}
		merged[class] = uint8(same)
	}
	for b := range d.classOf {
		d.classOf[b] = merged[d.classOf[b]]
	}
	table := make([]uint16, 0, len(d.accepting)*len(kept))
	for state := range d.accepting {
		for _, class := range kept {
			table = append(table, d.table[state*d.classes+class])
		}
	}
	d.table, d.classes = table, len(kept)
}

func (d *DFA) equalColumns(a, b int) bool {
	for row := 0; row < len(d.table); row += d.classes {
		if d.table[row+a] != d.table[row+b] {
			return false
		}
	}
	return true
}

// partition holds the states in order, each block of it contiguous.
type partition struct {
	states []int32 // all states, block after block
	place  []int32 // of a state in states
	block  []int32 // of a state
	first  []int32 // of a block, its first place
	size   []int32 // of a block
	marked []int32 // of a block, how many of its first states are marked
}

// equivalent returns the block of each state after Hopcroft's refinement: blocks
// are split until all states of a block go to the same blocks.
func (r *raw) equivalent() []int32 {
	p := r.byAcceptance()
	sources := r.predecessors()
	pending := []int32{0}
	if len(p.first) == 2 && p.size[1] < p.size[0] {
		pending[0] = 1
	}
	waiting := map[int32]bool{pending[0]: true}
	for len(pending) > 0 {
		b := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		delete(waiting, b)
		splitter := slices.Clone(p.states[p.first[b]:][:p.size[b]])
		for class := range r.classes {
			var touched []int32
			for _, target := range splitter {
				for _, source := range sources.of(int(target)*r.classes + class) {
					touched = p.mark(source, touched)
				}
			}
			for _, old := range touched {
				fresh, ok := p.split(old)
				if !ok {
					continue
				}
				if !waiting[old] && p.size[old] < p.size[fresh] {
					fresh = old
				}
				waiting[fresh] = true
				pending = append(pending, fresh)
			}
		}
	}
	return p.block
}

// byAcceptance makes the first partition: states that accept and states that do not.
func (r *raw) byAcceptance() *partition {
	n := len(r.accepting)
	p := &partition{place: make([]int32, n), block: make([]int32, n)}
	for _, accepting := range []bool{false, true} {
		first := int32(len(p.states))
		for state, a := range r.accepting {
			if a == accepting {
				p.place[state] = int32(len(p.states))
				p.block[state] = int32(len(p.first))
				p.states = append(p.states, int32(state))
			}
		}
		if size := int32(len(p.states)) - first; size > 0 {
			p.first = append(p.first, first)
			p.size = append(p.size, size)
			p.marked = append(p.marked, 0)
		}
	}
	return p
}

// mark moves a state to the marked front of its block, once, and adds the block
// to touched when it is the first of it.
func (p *partition) mark(state int32, touched []int32) []int32 {
	b := p.block[state]
	to, from := p.first[b]+p.marked[b], p.place[state]
	if from < to {
		return touched
	}
	if p.marked[b] == 0 {
		touched = append(touched, b)
	}
	other := p.states[to]
	p.states[to], p.states[from] = state, other
	p.place[state], p.place[other] = to, from
	p.marked[b]++
	return touched
}

// split makes the marked front of a block a block of its own, unless it is all of it.
func (p *partition) split(b int32) (fresh int32, ok bool) {
	count := p.marked[b]
	p.marked[b] = 0
	if count == p.size[b] {
		return 0, false
	}
	fresh = int32(len(p.first))
	p.first = append(p.first, p.first[b])
	p.size = append(p.size, count)
	p.marked = append(p.marked, 0)
	for _, state := range p.states[p.first[b]:][:count] {
		p.block[state] = fresh
	}
	p.first[b] += count
	p.size[b] -= count
	return fresh, true
}

// reverse lists, for each target*classes+class, the states that go there.
type reverse struct {
	begin  []int32
	states []int32
}

func (v *reverse) of(i int) []int32 { return v.states[v.begin[i]:v.begin[i+1]] }

func (r *raw) predecessors() *reverse {
	v := &reverse{begin: make([]int32, len(r.next)+1), states: make([]int32, len(r.next))}
	slot := func(edge int) int { return int(r.next[edge])*r.classes + edge%r.classes }
	for edge := range r.next {
		v.begin[slot(edge)+1]++
	}
	for i := range r.next {
		v.begin[i+1] += v.begin[i]
	}
	filled := make([]int32, len(r.next))
	for edge := range r.next {
		i := slot(edge)
		v.states[v.begin[i]+filled[i]] = int32(edge / r.classes)
		filled[i]++
	}
	return v
}
