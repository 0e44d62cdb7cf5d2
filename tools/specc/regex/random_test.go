package regex_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/tools/specc/regex"
)

// source is a reproducible stream of patterns and of texts to try on them.
type source struct{ *rand.Rand }

func newSource(seed uint64) source { return source{rand.New(rand.NewPCG(seed, 1))} }

func (s source) pick(from ...string) string { return from[s.IntN(len(from))] }

// pattern returns a random pattern over the characters a, b and - whose groups
// nest to a depth.
func (s source) pattern(depth int) string {
	return "^" + s.sequence(depth) + "$"
}

func (s source) sequence(depth int) string {
	var b strings.Builder
	for range 1 + s.IntN(2+depth/2) {
		b.WriteString(s.atom(depth))
		b.WriteString(s.pick("", "", "", "", "", "?", "*", "+", "{2}", "{1,2}", "{0,3}", "{2,}"))
	}
	return b.String()
}

func (s source) atom(depth int) string {
	if depth == 0 || s.IntN(2) == 0 {
		return s.pick("a", "b", "-", `\-`, "[ab]", "[a-b]", "[b-]", `[\-a]`)
	}
	open := s.pick("(", "(?:")
	if s.IntN(2) == 0 {
		return open + s.sequence(depth-1) + ")"
	}
	return open + s.sequence(depth-1) + "|" + s.sequence(depth-1) + ")"
}

// punctuated returns a random pattern of literals and classes over all of printable
// ASCII, to be told apart by how it is escaped.
func (s source) punctuated() string {
	var b strings.Builder
	for range 1 + s.IntN(3) {
		if s.IntN(3) == 0 {
			b.WriteString(s.literal())
			continue
		}
		b.WriteString("[" + s.pick("", "", "-"))
		for range 1 + s.IntN(6) {
			low, high := s.literal(), s.literal()
			if s.IntN(4) == 0 {
				b.WriteString(low + low)
				continue
			}
			if low[len(low)-1] > high[len(high)-1] || s.IntN(3) > 0 {
				b.WriteString(low)
				continue
			}
			b.WriteString(low + "-" + high)
		}
		b.WriteString(s.pick("", "", "-") + "]" + s.pick("", "?", "{1,2}"))
	}
	return "^" + b.String() + "$"
}

// literal returns a printable character, escaped if it is punctuation.
func (s source) literal() string {
	c := string(rune(' ' + s.IntN(95)))
	if strings.ContainsAny(c, "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") {
		return `\` + c
	}
	return c
}

// parsed returns a random pattern that Parse accepts. It passes over the few
// whose automata are too large for the oracles.
func (s source) parsed(t *testing.T, depth int) *regex.Pattern {
	t.Helper()
	for {
		pattern := s.pattern(depth)
		p, err := regex.Parse(pattern)
		if err != nil && !strings.Contains(err.Error(), "automaton") {
			t.Fatalf("Parse(%q): %v", pattern, err)
		}
		if err == nil && p.DFA().States() < 500 {
			return p
		}
	}
}

// texts returns texts that are likely to be near a match of p: its own examples,
// random edits of them, and noise.
func (s source) texts(p *regex.Pattern, count int) []string {
	texts := append(p.DFA().Accepts(), p.DFA().Rejects()...)
	for len(texts) < count {
		text := []byte(texts[s.IntN(len(texts))])
		for range 1 + s.IntN(3) {
			at := s.IntN(len(text) + 1)
			switch s.IntN(4) {
			case 0:
				text = append(text[:at:at], text[min(at+1, len(text)):]...)
			case 1:
				text = append(text[:at:at], append([]byte{byte(s.IntN(256))}, text[at:]...)...)
			case 2:
				text = append(text[:at:at], append([]byte{byte(' ' + s.IntN(95))}, text[at:]...)...)
			case 3:
				text = append(text[:at:at], text[min(s.IntN(len(text)+1), len(text)):]...)
			}
		}
		texts = append(texts, string(text))
	}
	return texts
}

// allTexts returns every text over the letters up to a length, shortest first.
func allTexts(letters string, length int) []string {
	all := []string{""}
	for level := all; length > 0; length-- {
		var longer []string
		for _, text := range level {
			for _, letter := range letters {
				longer = append(longer, text+string(letter))
			}
		}
		all, level = append(all, longer...), longer
	}
	return all
}

func TestRandomPatternsAreAccepted(t *testing.T) {
	t.Parallel()
	s := newSource(1)
	seen := map[string]bool{}
	for range 200 {
		seen[fmt.Sprint(s.parsed(t, 2))] = true
	}
	if len(seen) < 150 {
		t.Errorf("only %d different patterns of 200", len(seen))
	}
}
