package ctl

import (
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/cli"
)

func TestHelp(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := bench{}.run("join-tokens", "create", "--help")
	if code != 0 || stderr != "" {
		t.Errorf("exit %d: %s", code, stderr)
	}
	golden(t, "join-tokens-create.help", stdout)
	code, stdout, stderr = bench{}.run("--help")
	if code != 0 || stderr != "" || !strings.Contains(stdout, "BCCTL_KEY") || !strings.Contains(stdout, "join-tokens") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}

// The help of every command names every field with its limits and its values.
func TestHelpOfEveryCommand(t *testing.T) {
	t.Parallel()
	for _, g := range cli.Commands {
		if code, stdout, _ := (bench{}).run("help", g.Name); code != 0 || !strings.Contains(stdout, wrap(g.Long, helpWidth)) {
			t.Errorf("help %s: exit %d: %s", g.Name, code, stdout)
		}
		for _, m := range g.Methods {
			code, stdout, stderr := bench{}.run(g.Name, m.Name, "-h")
			if code != 0 || stderr != "" {
				t.Errorf("%s %s: exit %d: %s", g.Name, m.Name, code, stderr)
			}
			for _, f := range m.Fields {
				flag := "--" + f.Flag
				if f.Flag == "" {
					if flag += f.Path + ".*"; f.Limits == "" {
						continue // there is nothing to say of the object itself
					}
				}
				if !strings.Contains(stdout, flag+" ") || !strings.Contains(stdout, f.Limits) || !strings.Contains(f.Limits, strings.Join(f.Values, ", ")) {
					t.Errorf("%s %s does not say %s %s:\n%s", g.Name, m.Name, flag, f.Limits, stdout)
				}
			}
		}
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, stdout, stderr := (bench{}).run("completion", shell); code != 0 || len(stdout) < 1000 || !strings.Contains(stdout, "bcctl") {
			t.Errorf("%s: exit %d, %d bytes: %s", shell, code, len(stdout), stderr)
		}
	}
	offers := func(args ...string) string {
		_, stdout, _ := bench{}.run(append([]string{"__complete"}, args...)...)
		return stdout
	}
	for _, g := range cli.Commands {
		if !strings.Contains(offers(""), g.Name+"\t") {
			t.Errorf("%s is not offered", g.Name)
		}
		for _, m := range g.Methods {
			if !strings.Contains(offers(g.Name, ""), m.Name+"\t") {
				t.Errorf("%s %s is not offered", g.Name, m.Name)
			}
			for _, f := range m.Fields {
				if f.Flag == "" {
					continue
				}
				if got := offers(g.Name, m.Name, "--"+f.Flag); !strings.Contains(got, "--"+f.Flag) {
					t.Errorf("%s %s --%s is not offered: %q", g.Name, m.Name, f.Flag, got)
				}
				if len(f.Values) > 0 {
					if got, want := offers(g.Name, m.Name, "--"+f.Flag, ""), strings.Join(f.Values, "\n")+"\n:4\n"; got != want {
						t.Errorf("%s %s --%s offers %q, want %q", g.Name, m.Name, f.Flag, got, want)
					}
				}
			}
		}
	}
	if got := offers("-o", ""); got != "table\njson\nyaml\n:4\n" {
		t.Errorf("-o offers %q", got)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if code, stdout, _ := (bench{}).run("version"); code != 0 || !strings.HasPrefix(stdout, "bcctl ") || strings.Count(stdout, "\n") != 1 {
		t.Errorf("exit %d: %q", code, stdout)
	}
}

// The command line of an operator keeps what the pages say of names: no flag of
// a field hides one that bcctl has for itself.
func TestFlagsAreUnique(t *testing.T) {
	t.Parallel()
	for _, g := range cli.Commands {
		for _, m := range g.Methods {
			seen := map[string]bool{"server": true, "key-file": true, "output": true, "json": true, "all": true, "help": true}
			for _, f := range m.Fields {
				if f.Flag != "" && seen[f.Flag] {
					t.Errorf("%s %s has --%s twice", g.Name, m.Name, f.Flag)
				}
				seen[f.Flag] = true
			}
		}
	}
}

func TestPrintableAndQuoted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"a b": "a b", "é\"": "é\"", "a\x1b[2J": `a\x1b[2J`, "a\nb\t": `a\nb\t`, "\u202e\"": `\u202e"`, "\xff": `\xff`} {
		if got := printable(text); got != want {
			t.Errorf("printable(%q) is %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"": "''", "a:b": "a:b", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'"} {
		if got := quoted(text); got != want {
			t.Errorf("quoted(%q) is %q, want %q", text, got, want)
		}
	}
}
