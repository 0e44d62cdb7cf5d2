package regex

import (
	"slices"
	"strings"
)

const (
	maxAccepts = 8
	maxRejects = 12
)

// Accepts returns at most 8 texts that match, always the same: a shortest one, a
// longest one if there is a bound, and as many as are left that pass through the
// first and last byte of every range that the automaton tells apart.
func (d *DFA) Accepts() []string {
	if d.Empty() {
		return nil
	}
	examples := []string{d.shortest()}
	if longest, ok := d.longest(); ok && longest != examples[0] {
		examples = append(examples, longest)
	}
	for _, tour := range d.tours(maxAccepts - len(examples)) {
		if !slices.Contains(examples, tour) {
			examples = append(examples, tour)
		}
	}
	return examples
}

// Rejects returns at most 12 texts that do not match, always the same, each as
// near a match as it can be: the empty text, one character too few or too many, a
// match with a newline or an é after it, with its first, middle or last byte just
// outside what may stand there, or with a letter in the other case.
func (d *DFA) Rejects() []string {
	var examples []string
	add := func(s string) {
		if !d.Match(s) && !slices.Contains(examples, s) && len(examples) < maxRejects {
			examples = append(examples, s)
		}
	}
	add("")
	if d.Empty() {
		return examples
	}
	shortest, match := d.shortest(), d.shortest()
	if tours := d.tours(1); len(tours) > 0 {
		match = tours[0]
	}
	if shortest == "" {
		shortest = match
	}
	add(strings.TrimSuffix(shortest, last(shortest)))
	if longest, ok := d.longest(); ok {
		add(longest + last("a"+longest))
	}
	add(match + "\n")
	add(match + "é")
	for i, at := range []int{0, len(match) / 2, len(match) - 1} {
		if wrong := d.neighbours(match, at); len(wrong) > 0 {
			add(match[:at] + string(wrong[i*(len(wrong)-1)/2]) + match[at+1:])
		}
	}
	if flipped, ok := d.flipCase(match); ok {
		add(flipped)
	}
	return examples
}

// last returns the last character of s, if any.
func last(s string) string { return s[max(len(s)-1, 0):] }

// neighbours returns the ASCII bytes that may not stand at an index of a match
// but lie beside one that may, in byte order.
func (d *DFA) neighbours(match string, at int) []byte {
	if at < 0 || at >= len(match) {
		return nil
	}
	state := d.after(match[:at])
	allowed := func(b int) bool { return 0 <= b && b < 256 && d.step(state, byte(b)) != dead }
	var wrong []byte
	for b := range 128 {
		if !allowed(b) && (allowed(b-1) || allowed(b+1)) {
			wrong = append(wrong, byte(b))
		}
	}
	return wrong
}

// flipCase changes the case of all letters of a match, or if that still matches
// of the first letter whose other case may not stand there.
func (d *DFA) flipCase(match string) (string, bool) {
	all := []byte(match)
	for i := range all {
		all[i] = otherCase(all[i])
	}
	if !d.Match(string(all)) {
		return string(all), true
	}
	state := uint16(d.start)
	for i := range len(match) {
		if d.step(state, all[i]) == dead {
			return match[:i] + string(all[i]) + match[i+1:], true
		}
		state = d.step(state, match[i])
	}
	return "", false
}

func otherCase(b byte) byte {
	if isWord(b) && b >= 'A' {
		return b ^ ('a' ^ 'A')
	}
	return b
}

// after returns the state after s.
func (d *DFA) after(s string) uint16 {
	state := uint16(d.start)
	for i := range len(s) {
		state = d.step(state, s[i])
	}
	return state
}
