package regex

import "regexp/syntax"

// Go returns the pattern for package regexp, in which ^ and $ already mean the
// ends of the text. A repeat beyond the 1,000 of RE2 is written as several, in a
// row or nested; ok is false when even that exceeds what RE2 accepts.
func (p *Pattern) Go() (pattern string, ok bool) {
	w := writer{target: goTarget}
	w.WriteByte('^')
	w.term(p.root)
	w.WriteByte('$')
	if w.Len() > maxGoText {
		return "", false
	}
	_, err := syntax.Parse(w.String(), syntax.Perl)
	return w.String(), err == nil
}

// JavaScript returns the pattern for new RegExp(…, "u"), for a literal between
// slashes, and for the pattern keyword of JSON Schema and OpenAPI.
func (p *Pattern) JavaScript() string {
	w := writer{target: javaScriptTarget}
	w.term(p.root)
	return "^" + w.String() + "$"
}

// HTML returns the pattern for the pattern attribute, which anchors by itself and
// compiles with the v flag. The caller escapes it as an attribute value.
func (p *Pattern) HTML() string {
	w := writer{target: htmlTarget}
	w.term(p.root)
	return w.String()
}

// Python returns the pattern for package re: \A…\Z, so that match, fullmatch and
// search all decide alike and none accepts a trailing newline.
func (p *Pattern) Python() string {
	w := writer{target: pythonTarget}
	w.term(p.root)
	return `\A` + w.String() + `\Z`
}
