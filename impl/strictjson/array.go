package strictjson

// OpenArray enters the array that stands next and moves to its first item. It
// returns false when there is none: the array is empty, or the value is no array
// and was refused and skipped (RuleType, RuleNull, RuleDepth, RuleEmpty).
//
//	for more := d.OpenArray(); more; more = d.NextItem() { … }
func (d *Decoder) OpenArray() bool {
	if !d.enter('[', "must be an array") {
		return false
	}
	if peek(d.body, d.pos) == ']' {
		d.count = 0
		return d.leave(d.pos + 1)
	}
	d.marks[d.depth] = ^0
	return true
}

// NextItem moves to the next item of the array entered last, and returns false
// when the array is closed or the decode has stopped.
func (d *Decoder) NextItem() bool {
	d.refused = false
	i := space(d.body, d.pos)
	switch peek(d.body, i) {
	case ',':
		d.marks[d.depth]--
		d.pos = space(d.body, i+1)
		return true
	case ']':
		d.count = -d.marks[d.depth]
		return d.leave(i + 1)
	}
	d.malformed(i)
	return false
}

// Items refuses the array closed last unless it has min to max items (RuleItems).
// Without an upper bound max is math.MaxInt.
func (d *Decoder) Items(min, max int) {
	if d.refused || d.dead || d.count >= min && d.count <= max {
		return
	}
	b := append(make([]byte, 0, 64), "must have "...)
	d.Fail(RuleItems, string(append(appendSpan(b, int64(min), int64(max), 0), " items"...)))
}
