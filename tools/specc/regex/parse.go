package regex

import (
	"fmt"
	"unicode/utf8"
)

// maxDepth bounds the nesting of groups, and with it every recursion over a pattern.
const maxDepth = 100

// parser reads src from pos onward.
type parser struct {
	src  string
	pos  int
	open []int // offsets of the groups that are not closed yet
}

// refuse makes the error for what stands at offset.
func refuse(offset int, format string, args ...any) error {
	return &SyntaxError{offset, fmt.Sprintf(format, args...)}
}

// peek returns the next byte, or 0 at the end.
func (p *parser) peek() byte {
	if p.pos == len(p.src) {
		return 0
	}
	return p.src[p.pos]
}

// pattern reads the whole source.
func (p *parser) pattern() (*node, error) {
	if p.peek() != '^' {
		return nil, refuse(0, "the pattern is not anchored at its start: begin it with ^")
	}
	p.pos++
	root, err := p.sequence()
	if err != nil {
		return nil, err
	}
	if root.size > maxSize {
		return nil, refuse(0, "the pattern has more than %d characters with its repeats written out: use smaller bounds", maxSize)
	}
	return root, nil
}

// alternation reads the inside of a group.
func (p *parser) alternation() (*node, error) {
	var subs []*node
	for {
		sub, err := p.sequence()
		if err != nil {
			return nil, err
		}
		subs = append(subs, sub)
		if p.peek() != '|' {
			return join(opAlternate, subs), nil
		}
		p.pos++
	}
}

// sequence reads items up to the end of an alternative.
func (p *parser) sequence() (*node, error) {
	var items []*node
	for !p.atEnd() {
		item, err := p.item()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	if err := p.checkEnd(len(items) == 0); err != nil {
		return nil, err
	}
	return join(opConcat, items), nil
}

// atEnd reports whether no further item of an alternative can follow.
func (p *parser) atEnd() bool {
	if p.pos == len(p.src) {
		return true
	}
	c := p.peek()
	return c == '|' || c == ')' || c == '$'
}

// checkEnd refuses an alternative that is empty or ends where it may not.
func (p *parser) checkEnd(empty bool) error {
	grouped := len(p.open) > 0
	last := p.pos == len(p.src)-1
	c := p.peek()
	switch {
	case c == '$' && !last:
		return refuse(p.pos, `$ stands before the end: write \$ for the character`)
	case grouped && (c == 0 || c == '$'):
		return refuse(p.open[len(p.open)-1], `the group is never closed: add its ), or write \( for the character`)
	case c == 0:
		return refuse(p.pos, "the pattern is not anchored at its end: end it with $")
	case c == ')' && !grouped:
		return refuse(p.pos, `) closes no group: remove it, or write \) for the character`)
	case c == '|' && !grouped:
		return refuse(p.pos, "| outside a group tears the anchors apart: write ^(?:…|…)$")
	case empty && grouped:
		return refuse(p.pos, "an alternative is empty: say what it matches, or make the group optional with ?")
	case empty:
		return refuse(p.pos, "the pattern is empty: say between ^ and $ what it matches")
	}
	return nil
}

// item reads one atom and its repeat.
func (p *parser) item() (*node, error) {
	atom, err := p.atom()
	if err != nil {
		return nil, err
	}
	return p.repeat(atom)
}

// atom reads a literal, a class or a group.
func (p *parser) atom() (*node, error) {
	switch c := p.peek(); c {
	case '(':
		return p.group()
	case '[':
		return p.class()
	case '\\':
		b, err := p.escape()
		return classNode(span{b, b}), err
	case '*', '+', '?', '{':
		return nil, refuse(p.pos, `%c repeats nothing: put a character, class or group before it, or write \%[1]c for the character`, c)
	case ']', '}':
		return nil, refuse(p.pos, `%c closes nothing: remove it, or write \%[1]c for the character`, c)
	case '^':
		return nil, refuse(p.pos, `^ stands after the start: write \^ for the character`)
	case '.':
		return nil, refuse(p.pos, `. would match any character: list the allowed ones in a class, or write \. for the full stop`)
	}
	b, err := p.character()
	return classNode(span{b, b}), err
}

// character reads one byte that stands for itself.
func (p *parser) character() (byte, error) {
	c := p.src[p.pos]
	if !isPrintable(c) {
		r, _ := utf8.DecodeRuneInString(p.src[p.pos:])
		return 0, refuse(p.pos, "%q is not printable ASCII: use only the characters from space to ~", r)
	}
	p.pos++
	return c, nil
}

// group reads (…) or (?:…).
func (p *parser) group() (*node, error) {
	start := p.pos
	if len(p.open) == maxDepth {
		return nil, refuse(start, "groups nest deeper than %d: flatten the pattern", maxDepth)
	}
	p.pos++
	if p.peek() == '?' {
		p.pos++
		if p.peek() != ':' {
			return nil, refuse(start, "%s", groupAdvice(p.src[p.pos:]))
		}
		p.pos++
	}
	p.open = append(p.open, start)
	inside, err := p.alternation()
	if err != nil {
		return nil, err
	}
	p.open = p.open[:len(p.open)-1]
	p.pos++ // the ) that checkEnd has seen
	return inside, nil
}

// groupAdvice names the kind of group that starts with (? and rest.
func groupAdvice(rest string) string {
	var first, second byte
	if len(rest) > 0 {
		first = rest[0]
	}
	if len(rest) > 1 {
		second = rest[1]
	}
	switch {
	case first == '=' || first == '!':
		return "look-ahead is not allowed: describe the text itself, with alternatives where it differs"
	case first == '<' && (second == '=' || second == '!'):
		return "look-behind is not allowed: describe the text itself, with alternatives where it differs"
	case first == '<' || first == 'P' || first == '\'':
		return "named groups are not allowed: write (?:…)"
	case first == '>':
		return "atomic groups are not allowed: write (?:…)"
	}
	return `flags are not allowed: write (?:…), and both cases of a letter in a class such as [Aa]`
}
