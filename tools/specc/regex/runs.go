package regex

// Run is a class repeated Min to Max times; Max is -1 when there is no bound.
type Run struct {
	Class    Class
	Min, Max int
}

// fixed reports whether the run has only one length.
func (r Run) fixed() bool { return r.Min == r.Max }

// Runs returns the pattern as runs one after the other, of which at most one has
// a variable length, so that a matcher needs only the length of the text and one
// loop per run. Neighbours differ in their class. It reports false when the
// pattern has no such form. What it returns is proved equal to the automaton.
func (p *Pattern) Runs() ([]Run, bool) {
	runs, ok := flatten(p.root)
	if !ok || variable(runs) > 1 {
		return nil, false
	}
	items := make([]*node, len(runs))
	for i, r := range runs {
		items[i] = repeatNode(classNode(r.Class.spans()...), r.Min, r.Max)
	}
	proof, ok := build(join(opConcat, items))
	if !ok {
		return nil, false
	}
	_, narrow := Subset(proof, p.dfa)
	_, wide := Subset(p.dfa, proof)
	return runs, narrow && wide
}

func variable(runs []Run) int {
	count := 0
	for _, r := range runs {
		if !r.fixed() {
			count++
		}
	}
	return count
}

// flatten writes a node as a row of runs, if it has one.
func flatten(n *node) ([]Run, bool) {
	switch n.op {
	case opConcat:
		var runs []Run
		for _, sub := range n.subs {
			more, ok := flatten(sub)
			if !ok {
				return nil, false
			}
			runs = appendRuns(runs, more)
		}
		return runs, true
	case opAlternate:
		return flattenAlternate(n)
	case opRepeat:
		return flattenRepeat(n)
	}
	return []Run{{n.class, 1, 1}}, true
}

// flattenAlternate unites alternatives of one character each.
func flattenAlternate(n *node) ([]Run, bool) {
	var all Class
	for _, sub := range n.subs {
		runs, ok := flatten(sub)
		if !ok || len(runs) != 1 || runs[0].Min != 1 || runs[0].Max != 1 {
			return nil, false
		}
		all = all.union(runs[0].Class)
	}
	return []Run{{all, 1, 1}}, true
}

// flattenRepeat repeats a single character, or writes out a fixed number of copies.
func flattenRepeat(n *node) ([]Run, bool) {
	inside, ok := flatten(n.subs[0])
	if !ok {
		return nil, false
	}
	if len(inside) == 1 && inside[0].Min == 1 && inside[0].Max == 1 {
		return []Run{{inside[0].Class, n.min, n.max}}, true
	}
	if n.min != n.max {
		return nil, false
	}
	var runs []Run
	for range n.min {
		runs = appendRuns(runs, inside)
	}
	return runs, true
}

// appendRuns joins two rows; runs of one class that meet become one.
func appendRuns(runs, more []Run) []Run {
	for _, r := range more {
		if last := len(runs) - 1; last >= 0 && runs[last].Class == r.Class {
			runs[last].Min += r.Min
			runs[last].Max = plus(runs[last].Max, r.Max)
			continue
		}
		runs = append(runs, r)
	}
	return runs
}
