package regex

// Class is a set of printable ASCII characters. The zero Class is empty.
type Class struct {
	bits [2]uint64
}

// span is the inclusive range lo to hi as a member of a class.
type span struct {
	lo, hi byte
}

// classOf returns the union of the spans.
func classOf(spans []span) Class {
	var c Class
	for _, s := range spans {
		for b := s.lo; b <= s.hi; b++ {
			c.bits[b/64] |= 1 << (b % 64)
		}
	}
	return c
}

// Contains reports whether b is a member; no byte outside ASCII ever is.
func (c Class) Contains(b byte) bool {
	return b < 128 && c.bits[b/64]&(1<<(b%64)) != 0
}

// Equal reports whether both classes have the same members.
func (c Class) Equal(other Class) bool { return c == other }

// String renders the canonical ranges as they would stand between [ and ],
// for example 0-9A-Fa-f-: digits and letters, then punctuation, the hyphen last.
// Equal classes render alike.
func (c Class) String() string {
	w := writer{target: goTarget}
	w.spans(c.spans())
	return w.String()
}

// union returns the members of either class.
func (c Class) union(other Class) Class {
	return Class{[2]uint64{c.bits[0] | other.bits[0], c.bits[1] | other.bits[1]}}
}

// spans returns the canonical ranges in the order in which String shows them.
func (c Class) spans() []span {
	var words, punctuation, hyphen []span
	for b := byte(' '); b <= '~'; b++ {
		if !c.Contains(b) {
			continue
		}
		s := span{b, b}
		for c.Contains(s.hi+1) && c.kind(s.hi+1) == c.kind(b) {
			s.hi++
		}
		b = s.hi
		switch {
		case s == span{'-', '-'}:
			hyphen = append(hyphen, s)
		case isWord(s.lo):
			words = append(words, shorten(s)...)
		default:
			punctuation = append(punctuation, shorten(s)...)
		}
	}
	return append(append(words, punctuation...), hyphen...)
}

// kind says which neighbours may share a range with b, so that a range does not
// run from punctuation into digits; only a class with everything between 0 and z
// reads better whole.
func (c Class) kind(b byte) string {
	all := classOf([]span{{'0', 'z'}})
	switch {
	case c.union(all) == c:
		return "any"
	case '0' <= b && b <= '9':
		return "digit"
	case 'A' <= b && b <= 'Z':
		return "upper"
	case 'a' <= b && b <= 'z':
		return "lower"
	case b == '-':
		return "hyphen"
	}
	return "punctuation"
}

// shorten writes a range of two as its two members.
func shorten(s span) []span {
	if s.hi == s.lo+1 {
		return []span{{s.lo, s.lo}, {s.hi, s.hi}}
	}
	return []span{s}
}

func isWord(b byte) bool {
	return '0' <= b && b <= '9' || 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z'
}

func isPrintable(b byte) bool { return ' ' <= b && b <= '~' }

func isPunctuation(b byte) bool { return isPrintable(b) && b != ' ' && !isWord(b) }
