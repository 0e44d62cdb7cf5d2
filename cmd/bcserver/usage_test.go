package main_test

import (
	"os"
	"strings"
	"testing"
)

func TestVersion_IsOneLine(t *testing.T) {
	t.Parallel()
	e := runWith(t, setting{}, "version")
	if e.code != 0 || !strings.HasPrefix(e.stdout, "bcserver ") || strings.Count(e.stdout, "\n") != 1 || e.stderr != "" {
		t.Errorf("version ended with %d, stdout %q, stderr %q", e.code, e.stdout, e.stderr)
	}
}

func TestHelp_IsOnStdoutWithCode0(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--help"}, {"help"}, {"serve", "--help"}, {"migrate", "-h"}, {"keys", "--help"}, {"help", "keys", "create"}, {"ca", "--help"}, {"ca", "show", "--help"}, {"seal", "rotate", "--help"}, {"seal", "new-key", "--help"}} {
		e := runWith(t, setting{}, args...)
		if e.code != 0 || !strings.Contains(e.stdout, "Usage:") || e.stderr != "" {
			t.Errorf("%v ended with %d, stdout %q, stderr %q", args, e.code, e.stdout, e.stderr)
		}
	}
}

// TestUsage_WrongCallEndsWith2 holds that what cannot be understood ends with 2,
// says what it was, and touches nothing.
func TestUsage_WrongCallEndsWith2(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		env  []string
		says []string
	}{
		"no command":                {args: nil, says: []string{"command", "--help"}},
		"unknown command":           {args: []string{"srve"}, says: []string{`"srve"`}},
		"no command of keys":        {args: []string{"keys"}, says: []string{"command", "keys"}},
		"unknown command of keys":   {args: []string{"keys", "delete"}, says: []string{`"delete"`}},
		"argument of serve":         {args: []string{"serve", "now"}, says: []string{`"now"`}},
		"argument of migrate":       {args: []string{"migrate", "now"}, says: []string{`"now"`}},
		"argument of keys create":   {args: []string{"keys", "create", "now"}, says: []string{`"now"`}},
		"argument of version":       {args: []string{"version", "now"}, says: []string{`"now"`}},
		"no command of ca":          {args: []string{"ca"}, says: []string{"command", "ca"}},
		"unknown command of seal":   {args: []string{"seal", "open"}, says: []string{`"open"`}},
		"argument of ca show":       {args: []string{"ca", "show", "now"}, says: []string{`"now"`}},
		"argument of seal new-key":  {args: []string{"seal", "new-key", "now"}, says: []string{`"now"`}},
		"unknown output":            {args: []string{"ca", "show", "--output", "xml"}, says: []string{"--output", `"xml"`, "table", "json"}},
		"the key as a flag":         {args: []string{"serve", "--seal-key", "x"}, says: []string{"--seal-key"}},
		"no CIDR":                   {args: []string{"serve", "--trusted-proxy", "10.0.0.1"}, says: []string{"--trusted-proxy", `"10.0.0.1"`, "CIDR", "/32"}},
		"no number":                 {args: []string{"serve", "--join-rate", "fast"}, says: []string{"--join-rate"}},
		"no CIDR of environment":    {args: []string{"serve"}, env: []string{"BC_TRUSTED_PROXY=all"}, says: []string{"BC_TRUSTED_PROXY", `"all"`}},
		"unknown flag":              {args: []string{"serve", "--port", "80"}, says: []string{"--port"}},
		"unknown short flag":        {args: []string{"serve", "-p", "80"}, says: []string{"-p"}},
		"flag of another command":   {args: []string{"migrate", "--listen", "127.0.0.1:0"}, says: []string{"--listen"}},
		"flag without its value":    {args: []string{"serve", "--data"}, says: []string{"--data"}},
		"unknown log level":         {args: []string{"serve", "--log-level", "loud"}, says: []string{"--log-level", `"loud"`, "trace, debug, info, warn"}},
		"log level in capitals":     {args: []string{"serve", "--log-level", "INFO"}, says: []string{"--log-level", `"INFO"`}},
		"empty log level":           {args: []string{"serve", "--log-level", ""}, says: []string{"--log-level", `""`}},
		"unknown log format":        {args: []string{"serve", "--log-format", "xml"}, says: []string{"--log-format", `"xml"`, "text", "json"}},
		"log level of environment":  {args: []string{"serve"}, env: []string{"BC_LOG_LEVEL=loud"}, says: []string{"--log-level", `"loud"`}},
		"log format of environment": {args: []string{"serve"}, env: []string{"BC_LOG_FORMAT=xml"}, says: []string{"--log-format", `"xml"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			runWith(t, setting{dir: dir, env: c.env}, c.args...).refused(t, 2, c.says...)
			wantEmpty(t, dir)
		})
	}
}

// wantEmpty checks that nothing was made in a folder.
func wantEmpty(t testing.TB, dir string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		t.Errorf("it left %s behind", f.Name())
	}
}
