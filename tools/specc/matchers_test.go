package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/tools/specc/regex"
)

// matchedPatterns are patterns of every form that a matcher can take: of one
// length, with one place of variable length or more, and with every mark that
// means something between brackets.
var matchedPatterns = []string{
	`^a$`, `^ab?$`, `^[0-9]+$`, `^-?[0-9]+$`, `^[a-z]{2,}$`, `^[A-Z]{2}[0-9]{1,4}-[a-z]{3}$`, `^x[ab]*y$`, `^[ab]{3}c{2}$`,
	`^(?:ab|cd)$`, `^(?:a|b|c)x$`, `^(?:on|off|a[0-9]{1,3}z)$`, `^[a-z]+(?:\.[a-z]+)*$`, `^(?:[0-9a-f]{2}:){2}[0-9a-f]{2}$`,
	`^[]a]$`, `^[\]]{1,3}$`, `^\]$`, `^\[$`, `^\\$`, `^\^\$$`, `^[\\]x$`, `^[\\\]^]{1,2}-$`, `^[\[\]]{2}$`, `^[a^]$`,
	`^[-a]$`, `^[a-]$`, `^[+-]$`, `^[+\-/]$`, `^[)-~]$`, `^[,-.]$`, `^[!-,]$`, `^[--/]$`, `^[ -~]$`, `^[0-~]{1,2}$`, `^"[\\"]'$`, `^[a-c-]$`,
	`^[%-.]{0,2}_$`, `^a{0,2}b{0,2}$`, `^(?:a{2}b){2}c?$`, `^[a-z]{1,20}$`,
}

// TestMatchers compiles a matcher for each pattern and holds it against package
// regexp, for all texts that are one character away from a match or a near miss.
func TestMatchers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds a generated package")
	}
	e := newElsewhere(t)
	var types, fields, calls strings.Builder
	count := 0
	for _, text := range matchedPatterns {
		pattern, err := regex.Parse(text)
		if err != nil {
			continue // the subset has its own tests
		}
		fmt.Fprintf(&types, "| Text%d | string | at most 12 characters; matches `%s` | |\n", count, strings.ReplaceAll(text, "|", `\|`))
		fmt.Fprintf(&fields, "| texts.t%d | Text%[1]d | | |\n", count)
		fmt.Fprintf(&calls, "\tcheck(t, %q, wire.MatchText%d, %#v)\n", text, count, append(pattern.DFA().Accepts(), pattern.DFA().Rejects()...))
		count++
	}
	if count < len(matchedPatterns)-4 {
		t.Errorf("only %d of %d patterns are of the subset", count, len(matchedPatterns))
	}
	for page, insert := range map[string][2]string{
		"types.md": {"| Color | one of", types.String()},
		"yards.md": {"| idempotencyKey | Key", "| texts | object | | |\n" + fields.String()},
	} {
		text := read(t, filepath.Join(e.dir, "spec", page))
		e.write("spec/"+page, strings.Replace(text, insert[0], insert[1]+insert[0], 1))
	}
	e.specc()
	if err := os.Mkdir(filepath.Join(e.dir, "matchers"), 0o755); err != nil {
		t.Fatal(err)
	}
	body := strings.Replace(read(t, "testdata/elsewhere/matchers_test.go.txt"), "\t// calls\n", calls.String(), 1)
	e.write("matchers/matchers_test.go", body)
	if out, err := e.command("go", "test", "./matchers"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
