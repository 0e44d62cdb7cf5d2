package regex_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bettercompute/bettercompute/tools/specc/regex"
)

func TestExamples(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern          string
		accepts, rejects []string
	}{
		{
			pagePatterns[4],
			[]string{"aa:aa:aa:aa:aa:aa", "09:AF:af:aa:aa:aa"},
			[]string{
				"", "aa:aa:aa:aa:aa:a", "aa:aa:aa:aa:aa:aaa", "09:AF:af:aa:aa:aa\n", "09:AF:af:aa:aa:aaé",
				"/9:AF:af:aa:aa:aa", "09:AF:af9aa:aa:aa", "09:AF:af:aa:aa:ag",
			},
		},
		{
			`^jt_[0-9a-hjkmnp-tv-z]{2,3}$`,
			[]string{"jt_aa", "jt_aaa", "jt_09a", "jt_hkm", "jt_nps", "jt_vz"},
			[]string{"", "jt_a", "jt_aaaa", "jt_09a\n", "jt_09aé", "it_09a", "jt_i9a", "jt_09{", "JT_09A"},
		},
		{
			`^[a-z]+$`,
			[]string{"a", "az"},
			[]string{"", "az\n", "azé", "`z", "a`", "a{", "AZ"},
		},
		{
			`^[A-Za-z]{0,2}$`,
			[]string{"", "aa", "AZ", "az"},
			[]string{"aaa", "AZ\n", "AZé", "@Z", "A[", "A{"},
		},
		{
			`^(?:GET|put)?$`,
			[]string{"", "put", "GET"},
			[]string{"GE", "putt", "GET\n", "GETé", "FET", "GDT", "GEU", "get"},
		},
	} {
		d := parse(t, c.pattern).DFA()
		if got := d.Accepts(); !slices.Equal(got, c.accepts) {
			t.Errorf("%s: Accepts() = %q", c.pattern, got)
		}
		if got := d.Rejects(); !slices.Equal(got, c.rejects) {
			t.Errorf("%s: Rejects() = %q", c.pattern, got)
		}
	}
}

// checkExamples checks what Accepts and Rejects promise for every automaton.
func checkExamples(t *testing.T, name string, d *regex.DFA) {
	t.Helper()
	accepts, rejects := d.Accepts(), d.Rejects()
	if len(accepts) > 8 || len(rejects) > 12 || len(rejects) == 0 || len(accepts) == 0 != d.Empty() {
		t.Errorf("%s: %d accepts, %d rejects", name, len(accepts), len(rejects))
	}
	for _, text := range accepts {
		if !d.Match(text) {
			t.Errorf("%s: Accepts has %.80q", name, text)
		}
	}
	for _, text := range rejects {
		if d.Match(text) || !utf8.ValidString(text) {
			t.Errorf("%s: Rejects has %.80q", name, text)
		}
	}
	all := append(slices.Clone(accepts), rejects...)
	slices.Sort(all)
	if len(slices.Compact(all)) != len(accepts)+len(rejects) {
		t.Errorf("%s: an example stands twice", name)
	}
	if !slices.Equal(accepts, d.Accepts()) || !slices.Equal(rejects, d.Rejects()) {
		t.Errorf("%s: examples change from call to call", name)
	}
}

// checkBounds checks that the shortest and the longest match are among the examples.
func checkBounds(t *testing.T, p *regex.Pattern) {
	t.Helper()
	min, max := p.Lengths()
	has := func(examples []string, length int) bool {
		return slices.ContainsFunc(examples, func(s string) bool { return len(s) == length })
	}
	if !has(p.DFA().Accepts(), min) || max >= 0 && !has(p.DFA().Accepts(), max) {
		t.Errorf("%s: no example of %d or of %d characters", p, min, max)
	}
	if min > 0 && !has(p.DFA().Rejects(), min-1) || max >= 0 && !has(p.DFA().Rejects(), max+1) {
		t.Errorf("%s: no near miss below %d or above %d characters", p, min, max)
	}
}

func TestExamplesAreWhatTheySay(t *testing.T) {
	t.Parallel()
	for _, pattern := range append(append([]string{}, pagePatterns...), trickyPatterns...) {
		p := parse(t, pattern)
		checkExamples(t, pattern, p.DFA())
		checkBounds(t, p)
	}
	s := newSource(7)
	for range 200 {
		p := s.parsed(t, 2)
		checkExamples(t, p.String(), p.DFA())
		checkBounds(t, p)
	}
	for _, max := range []int{-1, 0, 1, 5} {
		checkExamples(t, "LengthDFA", regex.LengthDFA(max))
	}
}

// TestExamplesTouchEdges removes one character from a class of each page pattern,
// at an edge, and expects an example to notice.
func TestExamplesTouchEdges(t *testing.T) {
	t.Parallel()
	for _, pattern := range pagePatterns {
		accepts := strings.Join(parse(t, pattern).DFA().Accepts(), " ")
		for _, edge := range []string{"0", "A", "Z", "a", "z", "h", "9", "F", "f", ":", "_", "~"} {
			narrow := strings.NewReplacer("A-Z", "B-Y", "a-z", "b-y", "0-9A", "1-8A", "a-h", "b-g").Replace(pattern)
			if strings.Contains(narrow, edge) || !strings.Contains(pattern, edge) {
				continue
			}
			if !strings.Contains(accepts, edge) {
				t.Errorf("%s: no example passes %s: %s", pattern, edge, accepts)
			}
		}
	}
}
