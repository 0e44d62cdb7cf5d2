package strictjson

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. What is not valid UTF-8 becomes
// U+FFFD, as with encoding/json; <, > and & stand as they are.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += size
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			b = append(b, s[start:i]...)
			b = appendEscaped(b, c)
			start = i + 1
		}
		i++
	}
	return append(append(b, s[start:]...), '"')
}

func appendEscaped(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	default:
		return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
	}
}

// AppendTime appends t as RFC 3339 in UTC, with as many digits as it needs.
func AppendTime(b []byte, t time.Time) []byte {
	b = append(b, '"')
	return append(t.UTC().AppendFormat(b, time.RFC3339Nano), '"')
}

// AppendRaw appends JSON that is there already, on one line. Nothing is null.
func AppendRaw(b []byte, raw json.RawMessage) []byte {
	out := bytes.NewBuffer(b)
	if len(raw) == 0 || json.Compact(out, raw) != nil {
		return append(b, "null"...)
	}
	return out.Bytes()
}

// AppendEnd closes an object whose members each end in a comma.
func AppendEnd(b []byte) []byte {
	if b[len(b)-1] == ',' {
		b[len(b)-1] = '}'
		return b
	}
	return append(b, '}')
}
