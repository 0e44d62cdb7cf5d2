// Package regex reads the regular expressions of the spec: one small anchored ASCII dialect, turned into exact automata, boundary examples, flat matchers and the dialects of Go, JavaScript, HTML and Python.
package regex

import "fmt"

// Pattern is an accepted pattern. It is immutable and safe for concurrent use.
type Pattern struct {
	text string
	root *node
	dfa  *DFA
}

// SyntaxError says why a pattern was refused.
type SyntaxError struct {
	Offset int    // byte offset in the pattern of what is wrong
	Msg    string // what is wrong, and what would be right
}

// Error renders the offset and the message on one line.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("offset %d: %s", e.Offset, e.Msg)
}

// Parse reads a pattern of the subset: ^…$ around printable ASCII characters,
// escaped punctuation, classes, groups, alternation and greedy repeats, whose
// minimal automaton has at most 65,535 states. Its error is always a
// *SyntaxError. Work and memory are bounded for every input.
func Parse(pattern string) (*Pattern, error) {
	p := parser{src: pattern}
	root, err := p.pattern()
	if err != nil {
		return nil, err
	}
	dfa, ok := build(root)
	if !ok {
		return nil, &SyntaxError{0, "the pattern needs an automaton of more than 65,535 states, or too many repeats that overlap: use smaller bounds, or make neighbours differ in their characters"}
	}
	return &Pattern{text: pattern, root: root, dfa: dfa}, nil
}

// String returns the pattern as it was written.
func (p *Pattern) String() string { return p.text }

// Lengths returns the shortest and the longest length that can match, in
// characters, which are bytes here; max is -1 when there is no longest.
func (p *Pattern) Lengths() (min, max int) { return p.root.lengths() }

// DFA returns the minimal automaton of the pattern.
func (p *Pattern) DFA() *DFA { return p.dfa }
