package regex

import (
	"strconv"
	"strings"
)

// target says what differs between the dialects.
type target struct {
	outside    string // escaped outside a class
	inside     string // escaped inside a class, besides the hyphen
	hyphen     bool   // a hyphen at the end of a class is escaped too
	doubled    string // escaped inside a class behind the same character
	maxProduct int    // bound of a repeat times the repeats inside it; 0 for none
}

const meta = `\^$.*+?()[]{}|`

var (
	goTarget         = target{outside: meta, inside: `\[]^`, maxProduct: 1000}
	javaScriptTarget = target{outside: meta + `/`, inside: `\[]^`}
	htmlTarget       = target{outside: meta + `/`, inside: `\^()[]{}|/`, hyphen: true, doubled: "!#$%&*+,.:;<=>?@`~"}
	pythonTarget     = target{outside: meta, inside: `\[]^`, doubled: `&|~`}
)

// maxGoText bounds the text that splitting repeats may grow to.
const maxGoText = 1 << 16

// writer renders nodes for one target.
type writer struct {
	strings.Builder
	target
}

// term writes n as part of a concatenation, or alone between the anchors.
func (w *writer) term(n *node) {
	if n.op == opAlternate {
		w.group(n)
		return
	}
	w.node(n)
}

// atom writes n so that a repeat may follow it.
func (w *writer) atom(n *node) {
	if n.op == opClass {
		w.node(n)
		return
	}
	w.group(n)
}

func (w *writer) group(n *node) {
	w.WriteString("(?:")
	w.node(n)
	w.WriteString(")")
}

func (w *writer) node(n *node) {
	switch n.op {
	case opClass:
		w.class(n.members)
	case opConcat:
		for _, sub := range n.subs {
			w.term(sub)
		}
	case opAlternate:
		for i, sub := range n.subs {
			if i > 0 {
				w.WriteByte('|')
			}
			w.node(sub)
		}
	case opRepeat:
		w.repeat(n)
	}
}

// repeat writes a repeat, as several in a row when its bounds exceed the target's.
func (w *writer) repeat(n *node) {
	sub := n.subs[0]
	most := max(n.min, n.max)
	if w.maxProduct > 0 {
		most = w.maxProduct / w.product(sub)
	}
	if n.min <= most && n.max <= most {
		w.repeated(sub, n.min, n.max)
		return
	}
	for left := n.min; left > 0 && w.Len() <= maxGoText; left -= most {
		w.repeated(sub, min(left, most), min(left, most))
	}
	if n.max == unbounded {
		w.repeated(sub, 0, unbounded)
		return
	}
	w.optional(sub, n.max-n.min, most)
}

// optional writes up to count copies of sub in repeats of at most most, nested so
// that a text can be read in few ways: first most copies and then the rest, or fewer.
func (w *writer) optional(sub *node, count, most int) {
	if count == 0 || w.Len() > maxGoText {
		return
	}
	if count <= most {
		w.repeated(sub, 0, count)
		return
	}
	w.WriteString("(?:")
	w.repeated(sub, most, most)
	w.optional(sub, count-most, most)
	if most == 1 {
		w.WriteString(")?")
		return
	}
	w.WriteByte('|')
	w.repeated(sub, 0, most-1)
	w.WriteByte(')')
}

// product returns how often the innermost part of n is counted, as RE2 limits it.
func (w *writer) product(n *node) int {
	product := 1
	for _, sub := range n.subs {
		product = max(product, w.product(sub))
	}
	if n.op == opRepeat {
		product *= min(max(n.min, n.max, 1), w.maxProduct/product)
	}
	return product
}

// repeated writes one repeat with its shortest quantifier.
func (w *writer) repeated(sub *node, low, high int) {
	w.atom(sub)
	switch {
	case low == 1 && high == 1:
	case low == 0 && high == 1:
		w.WriteByte('?')
	case low == 0 && high == unbounded:
		w.WriteByte('*')
	case low == 1 && high == unbounded:
		w.WriteByte('+')
	case low == high:
		w.WriteString("{" + strconv.Itoa(low) + "}")
	case high == unbounded:
		w.WriteString("{" + strconv.Itoa(low) + ",}")
	default:
		w.WriteString("{" + strconv.Itoa(low) + "," + strconv.Itoa(high) + "}")
	}
}

// class writes […], or a class of one as a literal.
func (w *writer) class(members []span) {
	if first := members[0]; len(members) == 1 && first.lo == first.hi {
		w.escaped(first.lo, strings.IndexByte(w.outside, first.lo) >= 0)
		return
	}
	w.WriteByte('[')
	w.spans(members)
	w.WriteByte(']')
}

// spans writes the members of a class without its brackets.
func (w *writer) spans(members []span) {
	var before byte // the character before, 0 for none
	for i, m := range members {
		if m == (span{'-', '-'}) && i == len(members)-1 && !w.hyphen {
			w.WriteByte('-')
			return
		}
		w.member(m.lo, before)
		before = m.lo
		if m.lo != m.hi {
			w.WriteByte('-')
			w.member(m.hi, '-')
			before = m.hi
		}
	}
}

// member writes one character of a class after the character before.
func (w *writer) member(c, before byte) {
	special := c == '-' || strings.IndexByte(w.inside, c) >= 0
	twice := c == before && strings.IndexByte(w.doubled, c) >= 0
	w.escaped(c, special || twice)
}

// escaped writes c, behind a backslash if escape is true.
func (w *writer) escaped(c byte, escape bool) {
	if escape {
		w.WriteByte('\\')
	}
	w.WriteByte(c)
}
