package regex

import "slices"

// walk returns a shortest text that leads from a state to one that is wanted,
// and that state. It shows one byte of each class, the most readable.
func (d *DFA) walk(from uint16, wanted func(state uint16) bool) (text []byte, to uint16, ok bool) {
	type visit struct {
		state uint16
		from  int
		by    byte
	}
	letters := tellingApart(d, d)
	seen := make([]bool, d.States())
	seen[from], seen[dead] = true, true
	visits := []visit{{state: from}}
	for i := 0; i < len(visits); i++ {
		at := visits[i].state
		if wanted(at) {
			for ; i > 0; i = visits[i].from {
				text = append(text, visits[i].by)
			}
			slices.Reverse(text)
			return text, at, true
		}
		for _, letter := range letters {
			if next := d.step(at, letter); !seen[next] {
				seen[next] = true
				visits = append(visits, visit{next, i, letter})
			}
		}
	}
	return nil, dead, false
}

// finish returns a shortest text from a live state to acceptance.
func (d *DFA) finish(from uint16) []byte {
	text, _, _ := d.walk(from, func(state uint16) bool { return d.accepting[state] })
	return text
}

// shortest returns a shortest match of an automaton that is not empty.
func (d *DFA) shortest() string { return string(d.finish(uint16(d.start))) }

// tours returns up to count matches that together pass, where they can, every
// byte at the edge of a range that the automaton tells apart.
func (d *DFA) tours(count int) []string {
	left := d.edges()
	var tours []string
	for len(tours) < count {
		state, tour := uint16(d.start), []byte(nil)
		for {
			passes := func(at uint16) bool { return d.firstLive(at, left) >= 0 }
			text, at, ok := d.walk(state, passes)
			if !ok {
				break
			}
			i := d.firstLive(at, left)
			tour = append(append(tour, text...), left[i])
			state = d.step(at, left[i])
			left = slices.Delete(left, i, i+1)
		}
		if tour == nil {
			break
		}
		tours = append(tours, string(append(tour, d.finish(state)...)))
	}
	return tours
}

// edges returns the first and last byte of every range of one byte class.
func (d *DFA) edges() []byte {
	var edges []byte
	for b := range 256 {
		first := b == 0 || d.classOf[b-1] != d.classOf[b]
		last := b == 255 || d.classOf[b+1] != d.classOf[b]
		if first || last {
			edges = append(edges, byte(b))
		}
	}
	return edges
}

// firstLive returns the index of the first of the bytes that may follow, or -1.
func (d *DFA) firstLive(state uint16, bytes []byte) int {
	return slices.IndexFunc(bytes, func(b byte) bool { return d.step(state, b) != dead })
}

// longest returns a longest match; it reports false when there is none, because
// the live states have a cycle.
func (d *DFA) longest() (string, bool) {
	order, ok := d.inOrder()
	if !ok {
		return "", false
	}
	letters := tellingApart(d, d)
	length := make([]int, d.States()) // of the longest text to acceptance
	by := make([]byte, d.States())    // its first byte
	for _, state := range slices.Backward(order) {
		for _, letter := range letters {
			next := d.step(state, letter)
			if next != dead && length[next]+1 > length[state] {
				length[state], by[state] = length[next]+1, letter
			}
		}
	}
	var text []byte
	for state := uint16(d.start); length[state] > 0; {
		text = append(text, by[state])
		state = d.step(state, text[len(text)-1])
	}
	return string(text), true
}

// inOrder returns the live states so that each comes before those it leads to, or
// false when they have a cycle.
func (d *DFA) inOrder() ([]uint16, bool) {
	incoming := make([]int, d.States())
	for _, next := range d.table {
		incoming[next]++
	}
	order := []uint16{uint16(d.start)}
	if incoming[d.start] > 0 {
		return nil, false
	}
	for i := 0; i < len(order); i++ {
		row := d.table[int(order[i])*d.classes:][:d.classes]
		for _, next := range row {
			if incoming[next]--; next != dead && incoming[next] == 0 {
				order = append(order, next)
			}
		}
	}
	return order, len(order) == d.States()-1
}
