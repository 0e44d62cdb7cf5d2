package strictjson

import "strings"

// fault is why a value cannot be skipped.
type fault uint8

const (
	none fault = iota
	badJSON
	tooDeep
)

// skip returns the offset behind the value at i, which stands below depth open
// containers; or a fault, and the offset at which it was met. Only refused values
// are skipped, so it tolerates bad text and duplicate names, which would be a second
// complaint about the same value. It does not recurse: the kinds of the open
// containers are bits, which is enough for maxDepth of them.
func skip(s string, i, depth int) (end int, f fault) {
	var objects uint32 // bit k: the container k levels up from the innermost is an object
	open := 0
	for {
		// A value stands at i.
		switch c := peek(s, i); c {
		case '{', '[':
			if depth+open == maxDepth {
				return i, tooDeep
			}
			open++
			objects <<= 1
			if c == '{' {
				objects |= 1
			}
			i = space(s, i+1)
			if peek(s, i) != c+2 { // the closing bracket is two above the opening one
				if c == '{' {
					if i, f = skipName(s, i); f != none {
						return i, f
					}
				}
				continue
			}
			open--
			objects >>= 1
			i++
		default:
			if i, f = skipScalar(s, i); f != none {
				return i, f
			}
		}
		// A value ended before i: close what it ends, and move to its neighbour.
		for {
			if open == 0 {
				return i, none
			}
			i = space(s, i)
			c := peek(s, i)
			if objects&1 != 0 && c == '}' || objects&1 == 0 && c == ']' {
				open--
				objects >>= 1
				i++
				continue
			}
			if c != ',' {
				return i, badJSON
			}
			i = space(s, i+1)
			if objects&1 != 0 {
				if i, f = skipName(s, i); f != none {
					return i, f
				}
			}
			break
		}
	}
}

// skipName reads over a member name, its colon and the space around it.
func skipName(s string, i int) (int, fault) {
	if peek(s, i) != '"' {
		return i, badJSON
	}
	i, _, _, ok := quoted(s, i+1)
	if !ok {
		return i, badJSON
	}
	if i = space(s, i); peek(s, i) != ':' {
		return i, badJSON
	}
	return space(s, i+1), none
}

// skipScalar reads over a string, number or literal.
func skipScalar(s string, i int) (int, fault) {
	ok := false
	switch c := peek(s, i); c {
	case '"':
		i, _, _, ok = quoted(s, i+1)
	case 't', 'f', 'n':
		for _, word := range [...]string{"true", "false", "null"} {
			if strings.HasPrefix(s[i:], word) {
				return i + len(word), none
			}
		}
	default:
		var n number
		n, i = scanNumber(s, i)
		ok = n.ok
	}
	if !ok {
		return i, badJSON
	}
	return i, none
}
