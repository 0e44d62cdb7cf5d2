package strictjson

import (
	"math/bits"
	"strings"
	"unicode/utf8"
)

// What makes a string unfit to be text. It still ends where its closing quote
// is, so that the scan can go on behind it.
const (
	badUTF8      = "must be valid UTF-8"
	badSurrogate = "must not contain a lone surrogate"
	badNUL       = "must not contain NUL"
	badControl   = "must not contain a raw control character"
)

// String decodes a string. It refuses any other value (RuleType, RuleNull) and
// text that is not clean (RuleEncoding), and then returns "". The result is a slice
// of the body unless it holds an escape.
func (d *Decoder) String() string {
	s, i := d.body, d.pos
	if peek(s, i) != '"' {
		d.refuseType("must be a string")
		return ""
	}
	end := plain(s, i+1)
	if peek(s, end) == '"' {
		d.pos = end + 1
		return s[i+1 : end]
	}
	value, end, bad, ok := text(s, i+1)
	if !ok {
		d.malformed(end)
		return ""
	}
	d.pos = end
	if bad != "" {
		d.Fail(RuleEncoding, bad)
		return ""
	}
	return value
}

// OneOf decodes a string that must be one of values (RuleEnum), and returns that
// element. It returns "" for a value that is refused.
func (d *Decoder) OneOf(values []string) string {
	s := d.String()
	for _, value := range values {
		if s == value {
			return value
		}
	}
	if !d.refused && !d.dead {
		d.Fail(RuleEnum, "must be one of "+strings.Join(values, ", "))
	}
	return ""
}

const (
	ones    = 0x0101010101010101
	highs   = 0x80 * ones
	spaces  = ' ' * ones
	quotes  = '"' * ones
	slashes = '\\' * ones
)

// plain returns the offset of the first byte from i on that a string cannot hold
// as it is, or that needs a closer look: a quote, a backslash, a control character
// or anything beyond ASCII. Eight bytes are tested at once; a borrow can flag a
// wrong byte only above a right one, so the lowest flag is exact.
func plain(s string, i int) int {
	for i+8 <= len(s) {
		w := s[i : i+8]
		x := uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
			uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
		if m := (((x ^ quotes) - ones) | ((x ^ slashes) - ones) | (x - spaces) | x) & highs; m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
	for i < len(s) && s[i] != '"' && s[i] != '\\' && s[i] >= ' ' && s[i] < utf8.RuneSelf {
		i++
	}
	return i
}

// text reads a string whose opening quote ends before i. It returns its value,
// the offset behind its closing quote, and what makes it bad, if anything; or ok
// false and the offset at which it is malformed.
func text(s string, i int) (value string, end int, bad string, ok bool) {
	end, escaped, bad, ok := quoted(s, i)
	if !ok {
		return "", end, "", false
	}
	value = s[i : end-1]
	if escaped {
		value = unescape(value)
	}
	return value, end, bad, true
}

// quoted finds the end of a string and judges it without building its value.
func quoted(s string, i int) (end int, escaped bool, bad string, ok bool) {
	for {
		i = plain(s, i)
		if i >= len(s) {
			return i, escaped, bad, false
		}
		size, why := 1, ""
		switch c := s[i]; {
		case c == '"':
			return i + 1, escaped, bad, true
		case c == '\\':
			escaped = true
			if size, why = escape(s[i:]); size == 0 {
				return i, escaped, bad, false
			}
		case c == 0:
			why = badNUL
		case c < ' ':
			why = badControl
		default:
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); r == utf8.RuneError && size == 1 {
				why = badUTF8
			}
		}
		if bad == "" {
			bad = why
		}
		i += size
	}
}

// escape measures the escape, or the pair of escapes, that s starts with and says
// what is bad about it. Size 0 means that it is malformed.
func escape(s string) (size int, bad string) {
	switch peek(s, 1) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, ""
	case 'u':
		switch r := hex(s); {
		case r < 0:
			return 0, ""
		case r == 0:
			return 6, badNUL
		case r < 0xD800 || r > 0xDFFF:
			return 6, ""
		case r < 0xDC00:
			if low := hex(s[6:]); low >= 0xDC00 && low <= 0xDFFF {
				return 12, ""
			}
		}
		return 6, badSurrogate
	}
	return 0, ""
}

// unescape resolves the escapes of a string that quoted found well formed. A lone
// surrogate becomes U+FFFD; such a string is refused and only its name is shown.
func unescape(s string) string {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			out = append(out, s[i])
			i++
			continue
		}
		size, _ := escape(s[i:])
		switch c := s[i+1]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hex(s[i:])
			if size == 12 {
				r = 0x10000 + (r-0xD800)<<10 + (hex(s[i+6:]) - 0xDC00)
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
		i += size
	}
	return string(out)
}

// hex returns the code unit of the \uXXXX that s starts with, or -1.
func hex(s string) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range []byte(s[2:6]) {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}
