package ctl

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/cli"
)

// A sample is a value on the command line, and what it is in JSON.
type sample struct {
	args []string
	json string
}

// samples are values of every kind that a field can have.
func samples(f cli.Field) []sample {
	flag := "--" + f.Flag
	switch f.Type {
	case cli.Integer:
		return []sample{
			{[]string{flag, "7"}, "7"}, {[]string{flag + "=-1"}, "-1"}, {[]string{flag, "-0"}, "0"}, {[]string{flag, "007"}, "7"},
			{[]string{flag, "18446744073709551617"}, "18446744073709551617"}, {[]string{flag, "0"}, "0"},
		}
	case cli.Boolean:
		return []sample{{[]string{flag}, "true"}, {[]string{flag + "=true"}, "true"}, {[]string{flag + "=false"}, "false"}}
	case cli.Array:
		if f.Element == cli.Object {
			return []sample{{[]string{flag, `{"a":1}`, flag, "{ }"}, `[{"a":1},{}]`}}
		}
		return []sample{{[]string{flag, "a", flag, "b,c"}, `["a","b,c"]`}, {[]string{flag, ""}, `[""]`}}
	case cli.JSON:
		return []sample{{[]string{flag, `{"a":[1]}`}, `{"a":[1]}`}}
	}
	list := []sample{
		{[]string{flag, "x"}, `"x"`}, {[]string{flag, ""}, `""`}, {[]string{flag, "-x"}, `"-x"`}, {[]string{flag, "@x"}, `"@x"`},
		{[]string{flag, "true"}, `"true"`}, {[]string{flag, "12"}, `"12"`}, {[]string{flag, "a=b c\"\n\té"}, `"a=b c\"\n\té"`},
	}
	for _, v := range f.Values {
		list = append(list, sample{[]string{flag, v}, `"` + v + `"`})
	}
	return list
}

// base are values for what a method cannot do without, apart from one field.
func base(m cli.Method, apart string) (args []string, body map[string]any) {
	body = map[string]any{}
	for _, f := range m.Fields {
		if !f.Required || f.Path == apart || f.Path == idempotencyPath || strings.HasPrefix(apart, f.Path+".") {
			continue
		}
		if f.Flag == "" { // the first field of the object stands for it
			i := slices.IndexFunc(m.Fields, func(inner cli.Field) bool { return inner.Flag != "" && strings.HasPrefix(inner.Path, f.Path+".") })
			f = m.Fields[i]
		}
		s := samples(f)[0]
		args = append(args, s.args...)
		put(body, f.Path, json.RawMessage(s.json))
	}
	return args, body
}

func put(body map[string]any, path string, value any) {
	name, rest, nested := strings.Cut(path, ".")
	if !nested {
		body[name] = value
		return
	}
	inner, ok := body[name].(map[string]any)
	if !ok {
		inner = map[string]any{}
		body[name] = inner
	}
	put(inner, rest, value)
}

// Every flag of every command, with every kind of value, arrives where it
// belongs, beside what the command cannot do without and nothing else.
func TestEveryFlagOfEveryCommand(t *testing.T) {
	t.Parallel()
	commands, flags := 0, 0
	for _, g := range cli.Commands {
		for _, m := range g.Methods {
			commands++
			s := serve(t, ok(`{}`))
			if m.Stream {
				s = serve(t, problem(404, `{"code":"NOT_FOUND"}`))
			}
			for _, f := range m.Fields {
				if f.Flag == "" {
					continue
				}
				flags++
				for _, sample := range samples(f) {
					args, want := base(m, f.Path)
					put(want, f.Path, json.RawMessage(sample.json))
					code, _, stderr := on(s, g.Name+" "+m.Name+" -o json", append(args, sample.args...)...)
					if m.Once == nil && !m.Stream && code != 0 || code > 1 {
						t.Fatalf("%s %s %q: exit %d: %s", g.Name, m.Name, sample.args, code, stderr)
					}
					path, body, _ := s.last()
					var got map[string]any
					if err := json.Unmarshal([]byte(body), &got); err != nil {
						t.Fatal(err)
					}
					if m.Retry == cli.RetryKey && f.Path != idempotencyPath {
						if key, _ := got[idempotencyPath].(string); len(key) < 20 {
							t.Errorf("%s %s makes the idempotency key %q", g.Name, m.Name, key)
						}
						want[idempotencyPath] = got[idempotencyPath]
					}
					expected, err := json.Marshal(want)
					if err != nil {
						t.Fatal(err)
					}
					if path != "POST "+m.Path || !sameBody(body, string(expected)) {
						t.Errorf("%s %s %q sends %s %s, want %s", g.Name, m.Name, sample.args, path, body, expected)
					}
				}
			}
		}
	}
	if commands < 10 || flags < 40 {
		t.Errorf("%d commands and %d flags were tried", commands, flags)
	}
}

// sameBody compares without losing digits of large numbers.
func sameBody(a, b string) bool {
	x, err := parseJSON([]byte(a))
	y, wrong := parseJSON([]byte(b))
	return err == nil && wrong == nil && sorted(x) == sorted(y)
}

func sorted(n *node) string {
	if n.kind != objectNode {
		if n.isString() {
			return fmt.Sprintf("%q", n.plain())
		}
		var items []string
		for _, item := range n.items {
			items = append(items, sorted(item))
		}
		return n.text + fmt.Sprint(items)
	}
	var list []string
	for _, m := range n.members {
		list = append(list, m.name+":"+sorted(m.value))
	}
	slices.Sort(list)
	return fmt.Sprint(list)
}

// The example of every page, written as flags, is sent as the page has it.
func TestEveryExampleAsFlags(t *testing.T) {
	t.Parallel()
	for _, g := range cli.Commands {
		for _, m := range g.Methods {
			example, err := parseJSON([]byte(m.Example))
			if err != nil {
				t.Fatal(err)
			}
			s := serve(t, problem(404, `{"code":"NOT_FOUND"}`))
			for _, args := range [][]string{argumentsOf(m, example), {"--json", m.Example}} {
				if code, _, stderr := on(s, g.Name+" "+m.Name, args...); code != 1 {
					t.Fatalf("%s %s %q: exit %d: %s", g.Name, m.Name, args, code, stderr)
				}
				if _, body, _ := s.last(); body != string(example.bytes()) {
					t.Errorf("%s %s %q sends %s, want %s", g.Name, m.Name, args, body, example.bytes())
				}
			}
		}
	}
}

// A required field that is missing, and a value of another type, is usage; the
// message names the flag and what it takes, and nothing is sent.
func TestEveryFlagRefusesOtherTypes(t *testing.T) {
	t.Parallel()
	s := serve(t, ok(`{}`))
	for _, g := range cli.Commands {
		for _, m := range g.Methods {
			for _, f := range m.Fields {
				args, _ := base(m, f.Path)
				if f.Required && f.Path != idempotencyPath {
					if !strings.Contains(f.Path, ".") {
						misused(t, s, g, m, f, args)
					}
				}
				var wrong []string
				switch f.Type {
				case cli.Integer:
					wrong = []string{"abc", "1.5", "1e3", "", " 1", "0x10", "1_0", "--"}
				case cli.Boolean:
					wrong = []string{"yes", "1", "", "TRUE"}
				case cli.String:
					wrong = []string{"\xff"}
				case cli.Array:
					if f.Element == cli.Object {
						wrong = []string{"", "a", "[]", "null", "{", "{}{}"}
					}
				}
				for _, text := range wrong {
					misused(t, s, g, m, f, append(args, "--"+f.Flag+"="+text))
				}
			}
		}
	}
	if len(s.paths) != 0 {
		t.Errorf("%d calls were sent", len(s.paths))
	}
}

func misused(t *testing.T, s *raw, g cli.Group, m cli.Method, f cli.Field, args []string) {
	t.Helper()
	code, stdout, stderr := on(s, g.Name+" "+m.Name, args...)
	first := strings.Split(stderr, "\n")[0]
	flag := "--" + f.Flag
	if f.Flag == "" {
		flag += f.Path + "."
	}
	if code != 2 || stdout != "" || !strings.Contains(first, flag) || f.Flag != "" && !strings.Contains(first, f.Limits) || !strings.Contains(stderr, "\nusage: bcctl "+g.Name+" "+m.Name) {
		t.Errorf("%s %s %q: exit %d, %q %q", g.Name, m.Name, args, code, stdout, stderr)
	}
}
