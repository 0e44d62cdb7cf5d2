package regex_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/tools/specc/regex"
)

// render writes runs as one line, such as [0-9]{2} [:]{1}.
func render(runs []regex.Run) string {
	var parts []string
	for _, r := range runs {
		switch {
		case r.Max < 0:
			parts = append(parts, fmt.Sprintf("[%s]{%d,}", r.Class, r.Min))
		case r.Min == r.Max:
			parts = append(parts, fmt.Sprintf("[%s]{%d}", r.Class, r.Min))
		default:
			parts = append(parts, fmt.Sprintf("[%s]{%d,%d}", r.Class, r.Min, r.Max))
		}
	}
	return strings.Join(parts, " ")
}

func TestRuns(t *testing.T) {
	t.Parallel()
	const hex = "[0-9A-Fa-f]{2}"
	for _, c := range []struct{ pattern, want string }{
		{pagePatterns[0], "[0-9A-Za-z.:_-]{1,128}"},
		{pagePatterns[1], "[0-9A-Za-z]{1} [0-9A-Za-z.:_-]{0,127}"},
		{pagePatterns[2], "[0-9A-Fa-f-]{8,64}"},
		{pagePatterns[3], "[0-9A-Za-z+./:_-]{1,128}"},
		{pagePatterns[4], hex + strings.Repeat(" [:]{1} "+hex, 5)},
		{pagePatterns[5], "[G]{1} [P]{1} [U]{1} [-]{1} [0-9A-Fa-f-]{8,64}"},
		{pagePatterns[6], "[0-9A-Za-z+./:=_~-]{1,128}"},
		{pagePatterns[7], "[j]{1} [t]{1} [_]{1} [0-9a-hjkmnp-tv-z]{26,52}"},
		{`^a*$`, "[a]{0,}"},
		{`^aa[a]a{2,}$`, "[a]{5,}"},
		{`^[ab](?:a|b)[a-b]{1,3}$`, "[ab]{3,5}"},
		{`^(?:a{1,3}){2}$`, "[a]{2,6}"},
		{`^(?:ab+c)$`, "[a]{1} [b]{1,} [c]{1}"},
		{`^(?:a|(?:b|[c-e]))x?$`, "[a-e]{1} [x]{0,1}"},
		{`^(?:(?:ab){2}c){2}$`, "[a]{1} [b]{1} [a]{1} [b]{1} [c]{1} [a]{1} [b]{1} [a]{1} [b]{1} [c]{1}"},
		{`^(?:a+){2,3}$`, ""},
		{`^a+b+$`, ""},
		{`^(?:ab)?$`, ""},
		{`^(?:ab|c)$`, ""},
		{`^(?:a?b){2}$`, ""},
		{`^(?:a|b+)$`, ""},
	} {
		runs, ok := parse(t, c.pattern).Runs()
		if got := render(runs); got != c.want || ok != (c.want != "") {
			t.Errorf("%s: Runs() = %s, %v; want %s", c.pattern, got, ok, c.want)
		}
	}
}

// TestRunsEqualAutomaton reads the runs back as a pattern and compares languages.
func TestRunsEqualAutomaton(t *testing.T) {
	t.Parallel()
	s := newSource(8)
	flat := 0
	for i := range 600 {
		p := s.parsed(t, 1)
		if i < len(pagePatterns) {
			p = parse(t, pagePatterns[i])
		}
		runs, ok := p.Runs()
		if !ok {
			continue
		}
		flat++
		back := parse(t, "^"+strings.ReplaceAll(render(runs), " ", "")+"$")
		sameLanguage(t, p, back)
		for _, text := range s.texts(p, 40) {
			if matchRuns(runs, text) != p.DFA().Match(text) {
				t.Errorf("%s: the runs %s decide otherwise on %q", p, render(runs), text)
			}
		}
	}
	if flat < 100 {
		t.Errorf("only %d of 600 patterns are flat", flat)
	}
}

// matchRuns is the matcher that the generator is meant to write: the length
// settles the one variable run, and then every byte has its class.
func matchRuns(runs []regex.Run, s string) bool {
	spare := len(s)
	for _, r := range runs {
		spare -= r.Min
	}
	if spare < 0 {
		return false
	}
	for _, r := range runs {
		count := r.Min
		if r.Max != r.Min {
			count += spare
			spare = 0
		}
		if r.Max >= 0 && count > r.Max {
			return false
		}
		for _, b := range []byte(s[:count]) {
			if !r.Class.Contains(b) {
				return false
			}
		}
		s = s[count:]
	}
	return s == ""
}

// sameLanguage checks that both patterns accept the same texts.
func sameLanguage(t *testing.T, a, b *regex.Pattern) {
	t.Helper()
	if witness, ok := regex.Subset(a.DFA(), b.DFA()); !ok {
		t.Errorf("%s accepts %.80q, %s does not", a, witness, b)
	}
	if witness, ok := regex.Subset(b.DFA(), a.DFA()); !ok {
		t.Errorf("%s accepts %.80q, %s does not", b, witness, a)
	}
}

func TestClass(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ written, want string }{
		{`f-fA-FA-Ca-f0-9-`, `0-9A-Fa-f-`},
		{`zyx`, `x-z`},
		{`ba`, `ab`},
		{`\-+*`, `*+-`},
		{`\]\^\\\[`, `\[-\^`},
		{`!-~`, `!-~`},
		{` -~`, ` -~`},
		{`+-:`, `0-9+,./:-`},
		{`A-z`, "A-Za-z\\[-`"},
	} {
		runs, ok := parse(t, "^["+c.written+"]$").Runs()
		if !ok {
			t.Fatalf("[%s] is not flat", c.written)
		}
		class := runs[0].Class
		if class.String() != c.want {
			t.Errorf("[%s] is written %s, want %s", c.written, class, c.want)
		}
		again, _ := parse(t, "^["+class.String()+"]$").Runs()
		if !class.Equal(again[0].Class) {
			t.Errorf("[%s] read back from %s is another class", c.written, class)
		}
		for b := range 256 {
			text := string([]byte{byte(b)})
			if class.Contains(byte(b)) != parse(t, "^["+c.written+"]$").DFA().Match(text) {
				t.Errorf("[%s]: Contains(%#x) is wrong", c.written, b)
			}
		}
	}
	var none regex.Class
	if none.String() != "" || none.Contains(0) {
		t.Error("the zero class is not empty")
	}
}
