package placeholder

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"
)

const addition = `
rules:
  - id: site-42-loaner
    kind: serial
    exact: [LOANER]
    why: Our loan pool has one sticker.
  - id: site-42-rig
    kind: mac
    pattern: '^02:aa:00:.*$'
    why: The test rig hands these out.
    unless: virtual-machines
`

func TestLoadAdds(t *testing.T) {
	t.Parallel()
	l, err := Load(strings.NewReader(addition))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind        Kind
		value, rule string
		opts        []Option
	}{
		{Serial, " 'loaner' ", "site-42-loaner", nil},
		{Serial, "Default string", "serial-default", nil},
		{Serial, "LOANER-1", "", nil},
		{MAC, "02-AA-00-00-00-01", "mac-local", nil}, // defaults come first
		{MAC, "02-AA-00-00-00-01", "", []Option{VirtualMachines}},
	} {
		if rule, bogus := l.Match(c.kind, c.value, c.opts...); rule != c.rule || bogus != (c.rule != "") {
			t.Errorf("%s %q: Match = %q, %t; want %q", c.kind, c.value, rule, bogus, c.rule)
		}
	}
	if why := l.Why("site-42-loaner"); why != "Our loan pool has one sticker." {
		t.Errorf("Why = %q", why)
	}
	if rule, _ := Default().Match(Serial, "LOANER"); rule != "" {
		t.Errorf("an addition leaked into the defaults: %q", rule)
	}
}

func TestLoadNothing(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"", "# no rules yet\n", "rules:\n", "rules: []\n"} {
		if _, err := Load(strings.NewReader(file)); err != nil {
			t.Errorf("%q: %v", file, err)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	one := func(lines string) string { return "rules:\n- {id: x-1, why: because, " + lines + "}\n" }
	for _, c := range []struct{ name, file, want string }{
		{"no YAML", "rules: [", "placeholder rules"},
		{"no mapping", "- a\n", "not a mapping"},
		{"no rules", "{}", `"rules" is missing`},
		{"rules no list", "rules: {}", `"rules" is not a list`},
		{"key beside rules", "rules: []\nversion: 2\n", `unknown key "version"`},
		{"two documents", "rules: []\n---\nrules: []\n", "more than one document"},
		{"rule no mapping", "rules: [x]", "rule number 1 (line 1): not a mapping"},
		{"no id", "rules:\n- {kind: serial, exact: [a], why: because}", `rule number 1 (line 2): "id" is missing`},
		{"empty id", `rules: [{id: "", kind: serial, exact: [a], why: because}]`, `"id" is empty`},
		{"odd id", "rules: [{id: X_1, kind: serial, exact: [a], why: because}]", `rule "X_1" (line 1): an id has only`},
		{"numeric id", "rules: [{id: 7, kind: serial, exact: [a], why: because}]", `rule "7" (line 1): "id": put quotes around 7`},
		{"no kind", one("exact: [a]"), `rule "x-1" (line 2): "kind" is missing`},
		{"unknown kind", one("kind: asset, exact: [a]"), `rule "x-1" (line 2): unknown kind "asset"`},
		{"no why", "rules: [{id: x-1, kind: serial, exact: [a]}]", `rule "x-1" (line 1): "why" is missing`},
		{"blank why", "rules: [{id: x-1, kind: serial, exact: [a], why: ' '}]", `rule "x-1" (line 1): "why" is empty`},
		{"unknown key", one("kind: serial, exakt: [a]"), `rule "x-1" (line 2): unknown key "exakt"`},
		{"merge key", one("kind: serial, exact: [a], <<: {a: b}"), `rule "x-1" (line 2): unknown key "<<"`},
		{"key twice", one("kind: serial, exact: [a], kind: mac"), `rule "x-1" (line 2): key "kind" given twice`},
		{"neither", one("kind: serial"), `rule "x-1" (line 2): a rule has either`},
		{"both", one("kind: serial, exact: [a], pattern: '^a$'"), `rule "x-1" (line 2): a rule has either`},
		{"exact no list", one("kind: serial, exact: a"), `rule "x-1" (line 2): "exact" takes a list`},
		{"exact empty", one("kind: serial, exact: []"), `rule "x-1" (line 2): "exact" takes a list`},
		{"exact nested", one("kind: serial, exact: [[a]]"), `rule "x-1" (line 2): "exact" takes plain text`},
		{"exact number", one("kind: serial, exact: [0123]"), `rule "x-1" (line 2): "exact": put quotes around 0123`},
		{"exact null", one("kind: serial, exact: [null]"), `rule "x-1" (line 2): "exact": put quotes around null`},
		{"pattern open", one("kind: serial, pattern: abc"), `rule "x-1" (line 2): "pattern": abc is not anchored`},
		{"pattern open at the end", one("kind: serial, pattern: '^abc'"), "is not anchored"},
		{"pattern open at the start", one("kind: serial, pattern: 'abc$'"), "is not anchored"},
		{"pattern open between", one("kind: serial, pattern: '^a|b$'"), "is not anchored"},
		{"pattern open in a branch", one("kind: serial, pattern: '^a|^b$'"), "is not anchored"},
		{"pattern with a literal $", one(`kind: serial, pattern: '^abc\$'`), "is not anchored"},
		{"pattern by lines", one("kind: serial, pattern: '(?m)^abc$'"), "is not anchored"},
		{"pattern empty", one("kind: serial, pattern: ''"), "is not anchored"},
		{"pattern broken", one("kind: serial, pattern: '^(abc$'"), `rule "x-1" (line 2): "pattern": error parsing regexp`},
		{"pattern no text", one("kind: serial, pattern: [a]"), `rule "x-1" (line 2): "pattern" takes plain text`},
		{"unknown option", one("kind: mac, exact: [a], unless: containers"), `rule "x-1" (line 2): unknown option "containers"`},
		{"id of a default", "rules: [{id: mac-local, kind: mac, exact: [a], why: because}]", `rule "mac-local": the id is taken`},
		{"id twice", addition + "  - {id: site-42-rig, kind: mac, exact: [a], why: because}\n", `rule "site-42-rig": the id is taken`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, err := Load(strings.NewReader(c.file))
			if err == nil || l != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want it to say %s", err, c.want)
			}
		})
	}
}

func TestLoadPassesOnReadErrors(t *testing.T) {
	t.Parallel()
	gone := errors.New("disk gone")
	if _, err := Load(iotest.ErrReader(gone)); err == nil || !strings.Contains(err.Error(), gone.Error()) {
		t.Errorf("error is %v", err)
	}
}
