package regex_test

import (
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/tools/specc/regex"
)

func TestSubset(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b    string
		witness string
		ok      bool
	}{
		{pagePatterns[0], pagePatterns[3], "", true},
		{pagePatterns[3], pagePatterns[0], "+", false},
		{pagePatterns[3], pagePatterns[6], "", true},
		{pagePatterns[6], pagePatterns[3], "=", false},
		{pagePatterns[1], pagePatterns[0], "", true},
		{pagePatterns[0], pagePatterns[1], "-", false},
		{pagePatterns[0], `^[A-Za-z0-9._:-]{1,64}$`, strings.Repeat("a", 65), false},
		{`^[A-Za-z0-9._:-]{1,64}$`, pagePatterns[0], "", true},
		{pagePatterns[4], pagePatterns[0], "", true},
		{pagePatterns[7], pagePatterns[0], "", true},
		{`^[0-9]+$`, `^[0-9]*$`, "", true},
		{`^[0-9]*$`, `^[0-9]+$`, "", false},
		{`^(?:aa)*$`, `^(?:aaa)*$`, "aa", false},
		{`^(?:a{6})*$`, `^(?:aa)*$`, "", true},
		{`^(?:ab)+$`, `^a[ab]*b$`, "", true},
		{`^a+$`, `^a{1,300}$`, strings.Repeat("a", 301), false},
	} {
		witness, ok := regex.Subset(parse(t, c.a).DFA(), parse(t, c.b).DFA())
		if witness != c.witness || ok != c.ok {
			t.Errorf("Subset(%s, %s) = %q, %v; want %q, %v", c.a, c.b, witness, ok, c.witness, c.ok)
		}
	}
}

// TestSubsetOfLength asks whether a pattern implies its length limit.
func TestSubsetOfLength(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern string
		max     int
		ok      bool
	}{
		{pagePatterns[0], 128, true},
		{pagePatterns[0], 127, false},
		{pagePatterns[4], 17, true},
		{pagePatterns[4], 16, false},
		{pagePatterns[7], 55, true},
		{pagePatterns[7], -1, false},
		{`^a*$`, 1 << 20, false},
		{`^a{65533}$`, 1 << 20, true},
		{`^a{65533}$`, 65532, false},
	} {
		p := parse(t, c.pattern)
		witness, ok := regex.Subset(p.DFA(), regex.LengthDFA(c.max))
		if ok != c.ok {
			t.Errorf("%s within %d characters: %v", c.pattern, c.max, ok)
		}
		if !ok && !p.DFA().Match(witness) {
			t.Errorf("%s within %d characters: witness %.40q does not match", c.pattern, c.max, witness)
		}
		if _, max := p.Lengths(); (max >= 0 && max <= c.max) != c.ok {
			t.Errorf("%s within %d characters: Lengths disagrees", c.pattern, c.max)
		}
	}
}

func TestEmptyIsSubsetOfAll(t *testing.T) {
	t.Parallel()
	empty, all := regex.LengthDFA(-1), regex.LengthDFA(3)
	if _, ok := regex.Subset(empty, all); !ok {
		t.Error("nothing is not within everything")
	}
	if _, ok := regex.Subset(empty, empty); !ok {
		t.Error("nothing is not within nothing")
	}
	if witness, ok := regex.Subset(all, empty); ok || witness != "" {
		t.Errorf("witness %q, %v", witness, ok)
	}
}

// TestRandomSubset compares the verdict with all short texts.
func TestRandomSubset(t *testing.T) {
	t.Parallel()
	const length = 6
	s := newSource(6)
	texts := allTexts("ab-", length)
	verdicts := map[bool]int{}
	for range 300 {
		p, q := s.parsed(t, 1), s.parsed(t, 2)
		a, b := p.DFA(), q.DFA()
		witness, ok := regex.Subset(a, b)
		verdicts[ok]++
		if !ok && (!a.Match(witness) || b.Match(witness)) {
			t.Errorf("Subset(%s, %s): %q is no witness", p, q, witness)
		}
		for _, text := range texts {
			if a.Match(text) && !b.Match(text) {
				if ok || len(text) != len(witness) {
					t.Errorf("Subset(%s, %s) = %q, %v; %q is a shortest", p, q, witness, ok, text)
				}
				break
			}
			if !ok && len(witness) < len(text) {
				t.Errorf("Subset(%s, %s): nothing as short as %q", p, q, witness)
				break
			}
		}
	}
	if verdicts[true] < 10 || verdicts[false] < 10 {
		t.Errorf("one-sided sample: %v", verdicts)
	}
}
