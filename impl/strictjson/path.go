package strictjson

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A member name is shown whole up to maxLabel code points; of a longer one, which
// is no name anyone chose, only cutLabel are. The bearer form of a token is longer
// than maxLabel and has its secret behind cutLabel, so that a token which a confused
// caller sent as a name is not echoed, not even half of it.
const (
	maxLabel = 64
	cutLabel = 32
)

// path writes where the current value stands. The names are read from the body
// again, because most bodies are accepted and need no path.
func (d *Decoder) path() string {
	if d.depth == 1 && d.marks[1] >= 0 {
		return d.label(d.marks[1])
	}
	b := make([]byte, 0, 64) // on the stack
	for _, mark := range d.marks[1 : d.depth+1] {
		if mark < 0 {
			b = append(strconv.AppendInt(append(b, '['), int64(^mark), 10), ']')
			continue
		}
		if len(b) > 0 {
			b = append(b, '.')
		}
		b = append(b, d.label(mark)...)
	}
	return string(b)
}

// label returns the member name at offset i of the body in a form fit to be shown.
func (d *Decoder) label(i int) string {
	end := plain(d.body, i+1)
	name := d.body[i+1 : end]
	if peek(d.body, end) != '"' {
		name, _, _, _ = text(d.body, i+1)
	} else if 0 < len(name) && len(name) <= maxLabel && strings.IndexByte(name, 0x7F) < 0 {
		return name // printable as it stands
	}
	if name == "" {
		return `""` // else its path would be that of the object around it
	}
	limit := maxLabel
	if utf8.RuneCountInString(name) > maxLabel {
		limit = cutLabel
	}
	var out []byte
	for _, r := range name {
		if limit == 0 {
			return string(append(out, "…"...))
		}
		limit--
		if !unicode.IsPrint(r) {
			r = utf8.RuneError
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out)
}
