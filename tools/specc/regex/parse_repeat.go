package regex

import "strings"

// maxCount bounds a number in a repeat; a longer text has no automaton of 65,535 states.
const maxCount = 65535

// repeat reads the repeat that may follow an atom.
func (p *parser) repeat(atom *node) (*node, error) {
	start := p.pos
	var low, high int
	switch p.peek() {
	case '?':
		low, high = 0, 1
		p.pos++
	case '*':
		low, high = 0, unbounded
		p.pos++
	case '+':
		low, high = 1, unbounded
		p.pos++
	case '{':
		var err error
		if low, high, err = p.counts(); err != nil {
			return nil, err
		}
	default:
		return atom, nil
	}
	switch p.peek() {
	case '?':
		return nil, refuse(p.pos, "a lazy repeat is not allowed: remove the ?, an anchored pattern matches the same texts without it")
	case '+':
		return nil, refuse(p.pos, "a possessive repeat, or a repeat of a repeat, is not allowed: remove the +, or write (?:…)+")
	case '*', '{':
		return nil, refuse(p.pos, "a repeat of a repeat is not allowed: write one repeat, or a group around the first")
	}
	n := repeatNode(atom, low, high)
	if n.size > maxSize {
		return nil, refuse(start, "the repeats multiply to more than %d characters: use smaller bounds", maxSize)
	}
	return n, nil
}

// counts reads {n}, {n,} or {n,m}.
func (p *parser) counts() (low, high int, err error) {
	start := p.pos
	text, _, closed := strings.Cut(p.src[start+1:], "}")
	first, second, comma := strings.Cut(text, ",")
	if closed && first == "" && comma && isNumber(second) {
		return 0, 0, refuse(start, "a repeat lacks its lower bound: write {0,%s}", second)
	}
	if !closed || !isNumber(first) || second != "" && !isNumber(second) {
		return 0, 0, refuse(start, `a malformed repeat: write {n}, {n,} or {n,m} in plain decimals, or \{ for the character`)
	}
	low, high = number(first), unbounded
	if !comma {
		high = low
	} else if second != "" {
		high = number(second)
	}
	switch {
	case low > maxCount || high > maxCount:
		return 0, 0, refuse(start, "a repeat counts beyond %d: use a smaller bound", maxCount)
	case high == 0:
		return 0, 0, refuse(start, "{%s} matches only nothing: remove it with what it repeats, or raise its upper bound", text)
	case high != unbounded && low > high:
		return 0, 0, refuse(start, "the repeat {%s} has its bounds reversed: write {%d,%d}", text, high, low)
	}
	p.pos += len("{") + len(text) + len("}")
	return low, high, nil
}

// isNumber reports whether s is a decimal number without leading zeros.
func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == "" && (s == "0" || s[0] != '0')
}

// number returns the value of the digits, or something beyond maxCount.
func number(digits string) int {
	value := 0
	for i := 0; i < len(digits) && value <= maxCount; i++ {
		value = value*10 + int(digits[i]-'0')
	}
	return value
}
