package regex

// class reads […].
func (p *parser) class() (*node, error) {
	start := p.pos
	p.pos++
	if p.peek() == '^' {
		return nil, refuse(start, `a negated class would admit control and non-ASCII characters: list the allowed characters, or write \^ for the character`)
	}
	var members []span
	for p.peek() != ']' {
		if p.pos == len(p.src) {
			return nil, refuse(start, `the class is never closed: add its ], or write \[ for the character`)
		}
		member, err := p.member(len(members) == 0)
		if err != nil {
			return nil, err
		}
		members = append(members, member)
	}
	if len(members) == 0 {
		return nil, refuse(start, `the class is empty: list its characters, a ] as \]`)
	}
	p.pos++
	return classNode(members...), nil
}

// member reads one character or range of a class. A bare hyphen is a
// character only at either end of the class.
func (p *parser) member(first bool) (span, error) {
	start := p.pos
	if p.peek() == '-' {
		rest := p.src[start+1:]
		last := rest == "" || rest[0] == ']'
		if !last && (!first || rest[0] == '-') {
			return span{}, refuse(start, `a hyphen inside a class looks like a range: write \- for the character`)
		}
		p.pos++
		return span{'-', '-'}, nil
	}
	low, err := p.endpoint()
	if err != nil {
		return span{}, err
	}
	rest := p.src[p.pos:]
	if len(rest) < 2 || rest[0] != '-' || rest[1] == ']' {
		return span{low, low}, nil
	}
	p.pos++
	if p.peek() == '-' {
		return span{}, refuse(p.pos, `a hyphen inside a class looks like a range: write \- for the character`)
	}
	high, err := p.endpoint()
	if err != nil {
		return span{}, err
	}
	if low > high {
		return span{}, refuse(start, "the range %s is reversed: write the lower character first", p.src[start:p.pos])
	}
	return span{low, high}, nil
}

// endpoint reads one character of a class.
func (p *parser) endpoint() (byte, error) {
	switch p.peek() {
	case '\\':
		return p.escape()
	case '[':
		return 0, refuse(p.pos, `[ inside a class: write \[ for the character, and ranges instead of names such as [:alpha:]`)
	}
	return p.character()
}

// escape reads a backslash and the punctuation that it makes literal.
func (p *parser) escape() (byte, error) {
	start := p.pos
	p.pos++
	if p.pos == len(p.src) {
		return 0, refuse(start, `the pattern ends in a lone \: write \\ for the character, then $`)
	}
	c, err := p.character()
	if err != nil {
		return 0, err
	}
	if !isPunctuation(c) {
		return 0, refuse(start, `\%c is not allowed: %s`, c, escapeAdvice(c))
	}
	return c, nil
}

// escapeAdvice says what to write instead of \c.
func escapeAdvice(c byte) string {
	switch c {
	case 'd':
		return "write [0-9]"
	case 'w':
		return "write [0-9A-Za-z_]"
	case 's':
		return "write the space itself"
	case 'D', 'W', 'S', 'p', 'P':
		return "list the allowed characters in a class"
	case 'b', 'B', 'A', 'z', 'Z', 'G':
		return "^ at the start and $ at the end are the only anchors"
	case 'k', 'g', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return "there are no back-references, write the group out again"
	case 'n', 'r', 't', 'f', 'v', 'a', 'e', 'c', '0':
		return "control characters cannot be part of a pattern"
	case 'x', 'u', 'U', 'o', 'N':
		return "write the printable character itself"
	}
	return "only punctuation is escaped, write the character itself"
}
