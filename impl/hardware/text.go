package hardware

import (
	"slices"
	"sort"
	"strings"
)

// printable drops what is not printable ASCII, and the blanks around the rest.
// Firmware pads text with NULs and worse.
func printable(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, text))
}

// fit cuts a text until the API takes it in a field of the claims: the limit
// itself is in the spec alone. What is not taken at all is left out.
func fit(text string, in func(string) Claims) string {
	n := sort.Search(len(text), func(n int) bool { return !in(text[:n+1]).taken() })
	return strings.TrimSpace(text[:n])
}

// fitList leaves out elements that the API does not take, and then the last
// ones, until the list is short enough.
func fitList(list []string, in func([]string) Claims) []string {
	list = slices.DeleteFunc(list, func(v string) bool { return !in([]string{v}).taken() })
	n := sort.Search(len(list), func(n int) bool { return !in(list[:n+1]).taken() })
	return list[:n]
}
