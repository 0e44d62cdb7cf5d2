package regex_test

import (
	"errors"
	"regexp"
	"testing"

	"github.com/bettercompute/bettercompute/tools/specc/regex"
)

// FuzzParse holds an accepted pattern to package regexp, as written where RE2
// reads it and as translated, and its parts to each other.
func FuzzParse(f *testing.F) {
	for _, pattern := range append(append([]string{}, pagePatterns...), trickyPatterns...) {
		f.Add(pattern, "a")
	}
	for _, pattern := range []string{
		`^a{2}{3}$`, `^(?=a)$`, `^[z-a]$`, `^a|b$`, `^((((`, `^(((a{1000}){1000}){1000})$`, `^\d$`, `^é$`, `^a{,3}$`, `^[^a]$`,
	} {
		f.Add(pattern, "a\n")
	}
	for s, i := newSource(12), 0; i < 20; i++ {
		f.Add(s.pattern(1), "ab-")
		f.Add(s.punctuated(), "-")
	}
	f.Fuzz(func(t *testing.T, pattern, subject string) {
		p, err := regex.Parse(pattern)
		if err != nil {
			var refused *regex.SyntaxError
			if p != nil || !errors.As(err, &refused) || refused.Offset < 0 || refused.Offset > len(pattern) || refused.Msg == "" {
				t.Fatalf("Parse(%q) = %v, %#v", pattern, p, err)
			}
			return
		}
		d := p.DFA()
		if d.States() > 3000 {
			return // too slow for the oracles
		}
		checkExamples(t, pattern, d)
		checkBounds(t, p)
		checkReadBack(t, p)
		if runs, ok := p.Runs(); ok && matchRuns(runs, subject) != d.Match(subject) {
			t.Errorf("%s: the runs %s decide otherwise on %q", p, render(runs), subject)
		}
		subjects := append(append(d.Accepts(), d.Rejects()...), subject)
		if text, ok := p.Go(); ok {
			compare(t, p, regexp.MustCompile(text), subjects)
		}
		if re, err := regexp.Compile(pattern); err == nil {
			compare(t, p, re, subjects)
		}
	})
}

func compare(t *testing.T, p *regex.Pattern, re *regexp.Regexp, subjects []string) {
	t.Helper()
	for _, subject := range subjects {
		if got, want := p.DFA().Match(subject), re.MatchString(subject); got != want {
			t.Errorf("%s: Match(%.80q) = %v, %s says %v", p, subject, got, re, want)
		}
	}
}
