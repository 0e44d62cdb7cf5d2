package regex_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/tools/specc/regex"
)

// pagePatterns are the patterns of the reference page.
var pagePatterns = []string{
	`^[A-Za-z0-9._:-]{1,128}$`,
	`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`,
	`^[0-9A-Fa-f-]{8,64}$`,
	`^[A-Za-z0-9._:/+-]{1,128}$`,
	`^[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}$`,
	`^GPU-[0-9A-Fa-f-]{8,64}$`,
	`^[A-Za-z0-9._~:/+=-]{1,128}$`,
	`^jt_[0-9a-hjkmnp-tv-z]{26,52}$`,
}

// trickyPatterns use every corner of the subset.
var trickyPatterns = []string{
	`^a$`, `^ $`, `^a?$`, `^a*$`, `^a+$`, `^a{3}$`, `^a{3,}$`, `^a{0,2}$`, `^a{1}$`, `^a{0,}b$`,
	`^(a|b)$`, `^(?:a|bc)*d$`, `^((a|b)?c){2,3}$`, `^(?:(?:a?)*)+b$`, `^(?:a{2}){3}$`, `^(?:a|(?:b|c)d)e$`,
	`^\.\-\/\\\^\$\*\+\?\(\)\[\]\{\}\|$`, `^[\.\-\/\\\^\$\*\+\?\(\)\[\]\{\}\|]{1,3}$`,
	"^!\"#%&',\\-/:;<=>@_`~$", "^[!\"#%&',/:;<=>@_`~]+$", "^[ !-\\/:-@\\[-`\\{-~]{2}$", `^[ -~]{0,3}$`,
	`^[&&]$`, `^[!!##%%,,::;;<<==>>@@~~]$`, `^[$$**++..??||]$`, `^[+-++]$`, `^[""''__//  aa]$`, `^[\--\-\-]$`, `^[-a]+$`, `^[a-]+$`, `^[-]$`,
	`^[a^]$`, `^[\^a]$`, `^[.$*+?(){}|]$`, `^[+-\-a]+$`, `^[,-\-\-.]+$`, `^[a-f-]$`, `^[a-a]$`, `^[ab]-[0-9]$`,
	`^(?:GET|PUT|DELETE) /[a-z]*$`, `^[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)*$`,
	`^[a-z]{1,4096}$`, `^(?:[a-z]{2}-){1000,2000}$`, `^(?:[a-z]{1,1500}-){2}$`, `^a{1001,}$`,
}

func parse(t testing.TB, pattern string) *regex.Pattern {
	t.Helper()
	p, err := regex.Parse(pattern)
	if err != nil {
		t.Fatalf("Parse(%q): %v", pattern, err)
	}
	return p
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern string
		offset  int
		msg     string // what Msg must contain
	}{
		{``, 0, "begin it with ^"},
		{`a$`, 0, "begin it with ^"},
		{`(^a$)`, 0, "begin it with ^"},
		{`^a`, 2, "end it with $"},
		{`^`, 1, "end it with $"},
		{`^a\$`, 4, "end it with $"},
		{`^$`, 1, "pattern is empty"},
		{`^a^b$`, 2, `write \^`},
		{`^^a$`, 1, `write \^`},
		{`^a$b$`, 2, `write \$`},
		{`^a$$`, 2, `write \$`},
		{`^(a$|b)$`, 3, `write \$`},
		{`^a|b$`, 2, "write ^(?:…|…)$"},
		{`^|$`, 1, "write ^(?:…|…)$"},
		{`^a.b$`, 2, `write \.`},
		{`^\d$`, 1, "write [0-9]"},
		{`^\w$`, 1, "write [0-9A-Za-z_]"},
		{`^\s$`, 1, "write the space itself"},
		{`^\D$`, 1, "list the allowed characters"},
		{`^[\d]$`, 2, "write [0-9]"},
		{`^[a-\d]$`, 4, "write [0-9]"},
		{`^\pL$`, 1, "list the allowed characters"},
		{`^a\b$`, 2, "the only anchors"},
		{`^a\z$`, 2, "the only anchors"},
		{`^(a)\1$`, 4, "no back-references"},
		{`^(a)\k<x>$`, 4, "no back-references"},
		{`^\n$`, 1, "control characters"},
		{`^\0$`, 1, "control characters"},
		{`^\x41$`, 1, "write the printable character itself"},
		{`^\u0041$`, 1, "write the printable character itself"},
		{`^\Q$`, 1, "only punctuation is escaped"},
		{`^\ $`, 1, "only punctuation is escaped"},
		{`^a\`, 2, `write \\`},
		{"^\\é$", 2, "not printable ASCII"},
		{"^é$", 1, "not printable ASCII"},
		{"^[é]$", 2, "not printable ASCII"},
		{"^[a-é]$", 4, "not printable ASCII"},
		{"^a\n$", 2, "not printable ASCII"},
		{"^a\x00$", 2, "not printable ASCII"},
		{"^a\x7f$", 2, "not printable ASCII"},
		{"^\xff$", 1, "not printable ASCII"},
		{`^(?=a)$`, 1, "look-ahead"},
		{`^(?!a)$`, 1, "look-ahead"},
		{`^(?<=a)$`, 1, "look-behind"},
		{`^(?<!a)$`, 1, "look-behind"},
		{`^(?i)a$`, 1, "flags are not allowed"},
		{`^(?i:a)$`, 1, "flags are not allowed"},
		{`^(?P<n>a)$`, 1, "named groups"},
		{`^(?<n>a)$`, 1, "named groups"},
		{`^(?>a)$`, 1, "atomic groups"},
		{`^(?`, 1, "flags are not allowed"},
		{`^a*?$`, 3, "lazy"},
		{`^a??$`, 3, "lazy"},
		{`^a{1,2}?$`, 7, "lazy"},
		{`^a++$`, 3, "possessive"},
		{`^a{2}+$`, 5, "possessive"},
		{`^a**$`, 3, "repeat of a repeat"},
		{`^a+*$`, 3, "repeat of a repeat"},
		{`^a{2}{3}$`, 5, "repeat of a repeat"},
		{`^*$`, 1, "* repeats nothing"},
		{`^(+a)$`, 2, "+ repeats nothing"},
		{`^(a|?)$`, 4, "? repeats nothing"},
		{`^{2}$`, 1, "{ repeats nothing"},
		{`^a{5,2}$`, 2, "write {2,5}"},
		{`^a{0}$`, 2, "raise its upper bound"},
		{`^a{0,0}$`, 2, "raise its upper bound"},
		{`^a{,5}$`, 2, "write {0,5}"},
		{`^a{}$`, 2, "malformed repeat"},
		{`^a{x}$`, 2, "malformed repeat"},
		{`^a{1$`, 2, "malformed repeat"},
		{`^a{01}$`, 2, "malformed repeat"},
		{`^a{1,2,3}$`, 2, "malformed repeat"},
		{`^a{ 1}$`, 2, "malformed repeat"},
		{`^a{-1}$`, 2, "malformed repeat"},
		{`^a{65536}$`, 2, "counts beyond 65535"},
		{`^a{1,99999999999999999999999}$`, 2, "counts beyond 65535"},
		{`^(((a{1000}){1000}){1000})$`, 12, "multiply to more than 131072"},
		{`^a{65534}$`, 0, "more than 65,535 states"},
		{`^(?:a|b)*a(?:a|b){16}$`, 0, "more than 65,535 states"},
		{`^(?:a?){60000}$`, 0, "too many repeats that overlap"},
		{`^a{65535}a{65535}a{65535}$`, 0, "more than 131072 characters"},
		{`^[]$`, 1, "class is empty"},
		{`^[]a]$`, 1, "class is empty"},
		{`^[^a]$`, 1, "negated class"},
		{`^[z-a]$`, 2, "range z-a is reversed"},
		{`^[a$`, 1, "class is never closed"},
		{`^[a-`, 1, "class is never closed"},
		{`^[[:alpha:]]$`, 2, `write \[`},
		{`^[a-c-e]$`, 5, `write \-`},
		{`^[--a]$`, 2, `write \-`},
		{`^[+--]$`, 4, `write \-`},
		{`^(a$`, 1, "group is never closed"},
		{`^(`, 1, "group is never closed"},
		{`^((a)$`, 1, "group is never closed"},
		{`^a)$`, 2, ") closes no group"},
		{`^a]$`, 2, "] closes nothing"},
		{`^a}$`, 2, "} closes nothing"},
		{`^()$`, 2, "alternative is empty"},
		{`^(?:)a$`, 4, "alternative is empty"},
		{`^(a|)$`, 4, "alternative is empty"},
		{`^(|a)$`, 2, "alternative is empty"},
		{`^(a||b)$`, 4, "alternative is empty"},
		{"^" + strings.Repeat("(", 1<<20), 101, "nest deeper than 100"},
		{"^" + strings.Repeat("(", 101) + "a" + strings.Repeat(")", 101) + "$", 101, "nest deeper than 100"},
	} {
		p, err := regex.Parse(c.pattern)
		var refused *regex.SyntaxError
		if p != nil || !errors.As(err, &refused) {
			t.Errorf("Parse(%.40q) = %v, %v; want a refusal with %q", c.pattern, p, err, c.msg)
			continue
		}
		if refused.Offset != c.offset || !strings.Contains(refused.Msg, c.msg) {
			t.Errorf("Parse(%.40q): %v; want offset %d and %q", c.pattern, err, c.offset, c.msg)
		}
	}
}

func TestSyntaxErrorText(t *testing.T) {
	t.Parallel()
	_, err := regex.Parse(`^a.b$`)
	const want = `offset 2: . would match any character: list the allowed ones in a class, or write \. for the full stop`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestParseAccepts(t *testing.T) {
	t.Parallel()
	deep := "^" + strings.Repeat("(", 100) + "a" + strings.Repeat(")", 100) + "$"
	for _, pattern := range append(append([]string{deep, `^a{65533}$`}, pagePatterns...), trickyPatterns...) {
		if p := parse(t, pattern); p.String() != pattern {
			t.Errorf("String() = %q, want %q", p.String(), pattern)
		}
	}
}

func TestLengths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern  string
		min, max int
	}{
		{pagePatterns[0], 1, 128},
		{pagePatterns[1], 1, 128},
		{pagePatterns[4], 17, 17},
		{pagePatterns[5], 12, 68},
		{pagePatterns[7], 29, 55},
		{`^a*$`, 0, -1},
		{`^(?:ab|c)+d$`, 2, -1},
		{`^(?:ab|c)?d$`, 1, 3},
		{`^(?:a*|bc)$`, 0, -1},
		{`^(?:bc|a*)$`, 0, -1},
		{`^(?:a{2,3}b){4,5}$`, 12, 20},
		{`^(?:a+b){4,5}$`, 8, -1},
		{`^(?:a+b){2}c$`, 5, -1},
	} {
		if min, max := parse(t, c.pattern).Lengths(); min != c.min || max != c.max {
			t.Errorf("%s: Lengths() = %d, %d; want %d, %d", c.pattern, min, max, c.min, c.max)
		}
	}
}

// TestParseIsBounded feeds patterns that an unbounded construction would never
// finish. Whether they are accepted does not matter: the test's timeout judges.
func TestParseIsBounded(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{
		`^(?:a|b)*a(?:a|b){1000}$`,
		`^[a-z]{0,30000}[a-y]{0,30000}[a-x]{0,30000}$`,
		`^(?:(?:a?){300}){300}$`,
		"^" + strings.Repeat("(", 90) + "a" + strings.Repeat(")*", 90) + "$",
		"^(?:" + strings.Repeat("ab?|", 40000) + "c)$",
		"^[" + strings.Repeat("a-z", 100000) + "]$",
		"^" + strings.Repeat("[a-z][b-y]", 20000) + "$",
		"^" + strings.Repeat("a{", 1<<20),
	} {
		p, err := regex.Parse(pattern)
		if err != nil {
			continue
		}
		p.Go()
		p.Runs()
		checkExamples(t, pattern[:20], p.DFA())
	}
}
