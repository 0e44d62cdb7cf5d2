package regex_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/tools/specc/regex"
)

// oracle compiles the pattern as written, or as translated when RE2 refuses that.
func oracle(t testing.TB, p *regex.Pattern) *regexp.Regexp {
	t.Helper()
	if re, err := regexp.Compile(p.String()); err == nil {
		return re
	}
	pattern, ok := p.Go()
	if !ok {
		t.Fatalf("%s: Go() cannot express it", p)
	}
	return regexp.MustCompile(pattern)
}

func TestMatchAgainstRegexp(t *testing.T) {
	t.Parallel()
	s := newSource(2)
	for _, pattern := range append(append([]string{}, pagePatterns...), trickyPatterns...) {
		p := parse(t, pattern)
		re := oracle(t, p)
		for _, text := range s.texts(p, 400) {
			if got, want := p.DFA().Match(text), re.MatchString(text); got != want {
				t.Errorf("%s: Match(%.80q) = %v, regexp says %v", pattern, text, got, want)
			}
		}
	}
}

func TestRandomMatchAgainstRegexp(t *testing.T) {
	t.Parallel()
	s := newSource(3)
	texts := allTexts("ab-", 6)
	for range 200 {
		p := s.parsed(t, 2)
		re := oracle(t, p)
		for _, text := range texts {
			if got, want := p.DFA().Match(text), re.MatchString(text); got != want {
				t.Fatalf("%s: Match(%q) = %v, regexp says %v", p, text, got, want)
			}
		}
	}
}

func TestMatchRefusesAllButASCII(t *testing.T) {
	t.Parallel()
	d := parse(t, `^[ -~]$`).DFA()
	for b := range 256 {
		if got, want := d.Match(string([]byte{byte(b)})), ' ' <= b && b <= '~'; got != want {
			t.Errorf("Match(%#x) = %v", b, got)
		}
	}
}

// TestTable runs the published parts as a generated matcher would.
func TestTable(t *testing.T) {
	t.Parallel()
	s := newSource(4)
	for _, pattern := range pagePatterns {
		p := parse(t, pattern)
		d := p.DFA()
		classOf, n := d.Classes()
		table, accepting := d.Table(), d.Accepting()
		if len(table) != d.States()*n || len(accepting) != d.States() || d.Start() != 1 {
			t.Fatalf("%s: %d states, %d classes, table of %d, start %d", pattern, d.States(), n, len(table), d.Start())
		}
		for _, text := range s.texts(p, 100) {
			state := d.Start()
			for i := range len(text) {
				state = int(table[state*n+int(classOf[text[i]])])
			}
			if accepting[state] != d.Match(text) {
				t.Errorf("%s: table and Match differ on %q", pattern, text)
			}
		}
		for class := range n {
			if table[class] != 0 {
				t.Errorf("%s: class %d leads out of the dead state", pattern, class)
			}
		}
	}
}

func TestSizesOfPagePatterns(t *testing.T) {
	t.Parallel()
	want := [][2]int{{130, 2}, {130, 3}, {66, 2}, {130, 2}, {19, 3}, {70, 6}, {130, 2}, {57, 5}}
	for i, pattern := range pagePatterns {
		d := parse(t, pattern).DFA()
		if _, n := d.Classes(); d.States() != want[i][0] || n != want[i][1] {
			t.Errorf("%s: %d states and %d classes, want %v", pattern, d.States(), n, want[i])
		}
	}
}

// TestMinimal checks with the plain quadratic algorithm that no two states and no
// two classes of bytes could be one.
func TestMinimal(t *testing.T) {
	t.Parallel()
	s := newSource(5)
	for range 200 {
		p := s.parsed(t, 2)
		d := p.DFA()
		if distinct := distinctStates(d); distinct != d.States() {
			t.Errorf("%s: %d states, %d would do", p, d.States(), distinct)
		}
		_, n := d.Classes()
		columns := map[string]bool{}
		for class := range n {
			var column strings.Builder
			for i := class; i < len(d.Table()); i += n {
				column.WriteRune(rune(d.Table()[i]))
			}
			columns[column.String()] = true
		}
		if len(columns) != n {
			t.Errorf("%s: %d classes, %d would do", p, n, len(columns))
		}
	}
}

// distinctStates counts the states that some text tells apart.
func distinctStates(d *regex.DFA) int {
	table, accepting := d.Table(), d.Accepting()
	_, n := d.Classes()
	group := make([]int, d.States())
	for count := 0; ; {
		numbers := map[string]int{}
		refined := make([]int, d.States())
		for state := range group {
			key := []rune{rune(group[state])}
			if accepting[state] {
				key = append(key, 'y')
			}
			for _, next := range table[state*n:][:n] {
				key = append(key, rune(group[next]), ',')
			}
			if _, known := numbers[string(key)]; !known {
				numbers[string(key)] = len(numbers)
			}
			refined[state] = numbers[string(key)]
		}
		if len(numbers) == count {
			return count
		}
		group, count = refined, len(numbers)
	}
}

func TestEqualLanguagesHaveEqualAutomata(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{`^(?:a|b)*$`, `^[ab]*$`},
		{`^(?:a*b*)*$`, `^[ab]*$`},
		{`^a(?:ba)*$`, `^(?:ab)*a$`},
		{`^[a-c]{1,3}$`, `^[abc](?:[abc](?:[abc])?)?$`},
		{`^(?:ab|ac|ad)$`, `^a[b-d]$`},
		{`^[!-~]$`, `^(?:[a-~]|[!-\/]|[0-9]|[:-@]|[A-` + "`])$"},
	} {
		a, b := parse(t, c[0]).DFA(), parse(t, c[1]).DFA()
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s and %s have different automata", c[0], c[1])
		}
	}
}

func TestLengthDFA(t *testing.T) {
	t.Parallel()
	for _, max := range []int{0, 1, 2, 7} {
		d := regex.LengthDFA(max)
		for length := range 10 {
			for _, fill := range []string{"a", "\x00", "\n", "\x7f"} {
				if got, want := d.Match(strings.Repeat(fill, length)), length <= max; got != want {
					t.Errorf("LengthDFA(%d).Match(%d × %q) = %v", max, length, fill, got)
				}
			}
		}
		if d.Match("é") || d.Match("\x80") || d.Empty() {
			t.Errorf("LengthDFA(%d) accepts more or less than ASCII", max)
		}
	}
	if d := regex.LengthDFA(-1); !d.Empty() || d.Match("") || d.Start() != 0 || d.States() != 1 {
		t.Errorf("LengthDFA(-1) is not empty")
	}
	if got := regex.LengthDFA(1 << 30).States(); got != 65535 {
		t.Errorf("LengthDFA(1<<30) has %d states", got)
	}
}

func BenchmarkParse(b *testing.B) {
	for _, pattern := range []string{pagePatterns[0], pagePatterns[7], `^[a-z]{1,4096}$`, `^a{65533}$`} {
		b.Run(pattern, func(b *testing.B) {
			for b.Loop() {
				parse(b, pattern)
			}
		})
	}
}
