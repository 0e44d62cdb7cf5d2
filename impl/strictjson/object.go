package strictjson

import (
	"math/bits"
	"strings"
)

// Open enters the object that stands next and moves to its first member. It
// returns false when there is none: the object is empty, or the value is no object
// and was refused and skipped (RuleType, RuleNull, RuleDepth, RuleEmpty).
//
//	for more := d.Open(); more; more = d.Next() { switch d.Name() { … } }
func (d *Decoder) Open() bool {
	if !d.enter('{', "must be an object") {
		return false
	}
	if i := d.pos; peek(d.body, i) != '}' {
		return d.member(i)
	}
	return d.leave(d.pos + 1)
}

// Next moves to the next member of the object entered last, and returns false
// when the object is closed or the decode has stopped. The value of the member
// before it must have been decoded or refused.
func (d *Decoder) Next() bool {
	d.refused = false
	i := d.pos
	c := peek(d.body, i)
	if c <= ' ' {
		i = space(d.body, i)
		c = peek(d.body, i)
	}
	if c == ',' {
		return d.member(i + 1)
	}
	if c == '}' {
		return d.leave(i + 1)
	}
	d.malformed(i)
	return false
}

// Name returns the current member's name with its escapes resolved, so that two
// spellings of one name are one name. Ask before the value is decoded.
func (d *Decoder) Name() string { return d.name }

// member reads a name and its colon and stands on the value. A name that is not
// proper text is refused here with its value, and the next member is taken.
func (d *Decoder) member(i int) bool {
	s := d.body
	if peek(s, i) <= ' ' {
		i = space(s, i)
	}
	if peek(s, i) != '"' {
		d.malformed(i)
		return false
	}
	d.marks[d.depth] = i
	var bad string
	end := plain(s, i+1)
	if peek(s, end) == '"' {
		d.name = s[i+1 : end]
		end++
	} else {
		var ok bool
		if d.name, end, bad, ok = text(s, i+1); !ok {
			d.malformed(end)
			return false
		}
	}
	if peek(s, end) <= ' ' {
		end = space(s, end)
	}
	if peek(s, end) != ':' {
		d.malformed(end)
		return false
	}
	end++
	if peek(s, end) <= ' ' {
		end = space(s, end)
	}
	d.pos = end
	if bad != "" {
		d.refuse(RuleEncoding, bad)
		return d.Next() // no deeper than maxViolations
	}
	return true
}

// Field notes in seen that the current member is the known field of number bit,
// which must be below 64. A second one is refused (RuleDuplicate), whatever its value.
func (d *Decoder) Field(seen *uint64, bit uint) {
	if *seen>>bit&1 != 0 {
		d.Fail(RuleDuplicate, "must not be given twice")
	}
	*seen |= 1 << bit
}

// Unknown refuses the current member (RuleUnknown) and skips its value. If one of
// names, the known fields, differs from it only by case, the message proposes it.
func (d *Decoder) Unknown(names []string) {
	message := "is not a known field"
	for _, name := range names {
		if strings.EqualFold(name, d.name) {
			message += "; did you mean " + name
			break
		}
	}
	d.refuse(RuleUnknown, message)
}

// Require refuses the object closed last for each bit of required that is not in
// seen (RuleRequired); names holds the field names in the order of their bits.
func (d *Decoder) Require(seen, required uint64, names []string) {
	if missing := required &^ seen; missing != 0 {
		d.missing(missing, names)
	}
}

func (d *Decoder) missing(missing uint64, names []string) {
	if d.refused || d.dead {
		return // what is no object misses no fields
	}
	prefix := d.path()
	if prefix != "" {
		prefix += "."
	}
	for ; missing != 0; missing &= missing - 1 {
		d.add(prefix+names[bits.TrailingZeros64(missing)], RuleRequired, "is required")
	}
}

// AtLeastOne refuses the object closed last if seen is empty (RuleAtLeastOne).
func (d *Decoder) AtLeastOne(seen uint64) {
	if seen == 0 {
		d.Fail(RuleAtLeastOne, "must have at least one of its fields")
	}
}

// enter opens the container at pos and stands on what follows its bracket. A
// container whose member was already refused as a duplicate is not entered:
// nothing inside it is a fault of its own.
func (d *Decoder) enter(bracket byte, message string) bool {
	i := d.pos
	if peek(d.body, i) != bracket || d.depth == maxDepth || d.refused {
		d.refuseType(message)
		return false
	}
	i++
	if peek(d.body, i) <= ' ' {
		i = space(d.body, i)
	}
	d.depth++
	d.pos = i
	return true
}

// leave closes the container entered last; its closing bracket ends before i.
// The current value is now the container as a whole. It returns false: no more.
func (d *Decoder) leave(i int) bool {
	d.depth--
	d.pos = i
	d.refused = false
	return false
}
