package strictjson

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestSkip(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		value string
		depth int
		end   int
		fault fault
	}{
		{`"a\"b" `, 0, 6, none},
		{"\"\xff\x01\\ud800\"", 0, 10, none},
		{`-1.5e+3,`, 0, 7, none},
		{`[{"a":[],"b":{}},[[ ]] , true,null,false,{"":1}]]`, 3, 48, none},
		{`[1,]`, 0, 3, badJSON},
		{`{"a"}`, 0, 4, badJSON},
		{`[}`, 0, 1, badJSON},
		{`{]`, 0, 1, badJSON},
		{`[{]}`, 0, 2, badJSON},
		{`[01]`, 0, 2, badJSON},
		{`["\u12"]`, 0, 2, badJSON},
		{``, 0, 0, badJSON},
		{`[[`, 0, 2, badJSON},
		{`[[`, 15, 1, tooDeep},
		{`[]`, 15, 2, none},
		{`[]`, 16, 0, tooDeep},
		{strings.Repeat("[", 1<<16), 0, 16, tooDeep},
	} {
		if end, fault := skip(test.value, 0, test.depth); end != test.end || fault != test.fault {
			t.Errorf("%.60q: got %d, %d; want %d, %d", test.value, end, fault, test.end, test.fault)
		}
	}
}

// FuzzSkip holds skip against the tokens another library reads. It allows raw
// control characters in strings, which that library does not; with those replaced
// by a space, which is legal wherever they are skipped, the two must agree.
func FuzzSkip(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e+3,true,false,null,"x\u0041\ud800"],"b":{}}`, `[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]`,
		`[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]`, `[1,]`, `[}`, `{]`, `{"a"`, `{"a":}`, `{"a":1,}`, `[01]`, `[-]`, `["\x"]`, `[tru]`,
		"[\"\xff\"]", "[\"\x01\"]", `[ 1 , 2 ]x`, `{"a":1,"a":2}`, `"\u12"`, ``} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = "[" + s // in an array, so that a number ends where it ends
		end, got := skip(s, 0, 0)
		want, wantEnd := tokens(s)
		if got == want && (got == badJSON || end == wantEnd) {
			return
		}
		tame := strings.Map(func(r rune) rune {
			if r < ' ' {
				return ' '
			}
			return r
		}, s)
		if want == badJSON && tame != s {
			if want, _ = tokens(tame); want == got {
				return
			}
		}
		t.Fatalf("%q: got %d, %d; want %d, %d", s, end, got, wantEnd, want)
	})
}

// tokens reads one value token by token.
func tokens(s string) (fault, int) {
	d := jsontext.NewDecoder(strings.NewReader(s), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		if _, err := d.ReadToken(); err != nil {
			return badJSON, 0
		}
		if d.StackDepth() > maxDepth {
			return tooDeep, int(d.InputOffset()) - 1
		}
		if d.StackDepth() == 0 {
			return none, int(d.InputOffset())
		}
	}
}
