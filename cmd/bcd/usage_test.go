package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestUsage_WrongCallsEndWith2 holds that a call which cannot work is told so,
// with 2, before anything is made.
func TestUsage_WrongCallsEndWith2(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	for _, c := range []struct {
		args []string
		says []string
	}{
		{nil, []string{"name a command"}},
		{[]string{"jion"}, []string{`no command "jion"`}},
		{[]string{"join"}, []string{"--server is missing"}},
		{[]string{"join", "--server", "https://localhost"}, []string{"--token-file is missing"}},
		{[]string{"run", "--server", "https://localhost"}, []string{"--token-file is missing", "has not joined"}},
		{[]string{"join", "--server", "http://localhost", "--token-file", "x"}, []string{"https only"}},
		{[]string{"run", "--server", "localhost:8080", "--token-file", "x"}, []string{"https://host:port"}},
		{[]string{"join", "--server", "https://localhost", "--token-file", "x", "--ca-sha256", "ab"}, []string{"64 digits"}},
		{[]string{"join", "--server", "https://localhost", "--token-file", "x", "--ca-sha256", strings.Repeat("ab", 32), "--ca-file", "y"}, []string{"exclude each other"}},
		{[]string{"join", "--log-level", "loud"}, []string{"--log-level", "loud"}},
		{[]string{"join", "--timeout", "soon"}, []string{"--timeout", "soon"}},
		{[]string{"join", "--no-such-flag"}, []string{"--no-such-flag"}},
		{[]string{"join", "--metrics-listen", ":0"}, []string{"--metrics-listen"}},
		{[]string{"run", "--server", "https://localhost", "--metrics-listen", "nowhere"}, []string{"--metrics-listen", "host:port"}},
		{[]string{"run", "--state", ""}, []string{"--state"}},
		{[]string{"status", "--output", "xml"}, []string{"neither text nor json"}},
	} {
		args := c.args
		if len(args) > 1 && !strings.Contains(strings.Join(args, " "), "--state") {
			args = append(args, "--state", state)
		}
		runWith(t, setting{}, args...).refused(t, 2, c.says...)
	}
	secret := "bcjt_jt_0123456789abcdefghjkmnpqrs.secret"
	if e := runWith(t, setting{}, "join", "--state", state, secret); e.code != 2 || strings.Contains(e.stderr, "secret") {
		t.Errorf("%+v", e)
	}
	if entries, err := os.ReadDir(state); err == nil && len(entries) > 0 {
		t.Errorf("the state folder has %v", entries)
	}
}

// TestUsage_Environment holds that every flag can be given as BCD_…, and that a
// flag wins.
func TestUsage_Environment(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	env := []string{"BCD_SERVER=http://localhost", "BCD_STATE=" + state, "BCD_TOKEN_FILE=/dev/null"}
	runWith(t, setting{env: env}, "join").refused(t, 2, "https only")
	runWith(t, setting{env: env}, "join", "--server", "https://localhost").refused(t, 1, "/dev/null", "is empty")
	runWith(t, setting{env: append(env, "BCD_TIMEOUT=soon")}, "join").refused(t, 2, "BCD_TIMEOUT")
	if e := runWith(t, setting{env: env}, "status"); e.code != 1 || !strings.Contains(e.stdout, "not joined") || !strings.Contains(e.stdout, "--ca-sha256") {
		t.Errorf("%+v", e)
	}
}

// TestUsage_HelpAndVersion holds that both work without anything else.
func TestUsage_HelpAndVersion(t *testing.T) {
	t.Parallel()
	if e := runWith(t, setting{}, "version"); e.code != 0 || !regexp.MustCompile(`^bcd \S+\n$`).MatchString(e.stdout) {
		t.Errorf("%+v", e)
	}
	for _, args := range [][]string{{"--help"}, {"join", "--help"}, {"run", "--help"}, {"status", "--help"}} {
		if e := runWith(t, setting{}, args...); e.code != 0 || !strings.Contains(e.stdout, "Usage:") || e.stderr != "" {
			t.Errorf("%v: %+v", args, e)
		}
	}
}

// TestUsage_StatusOfNothing holds what is said of a machine that has not joined.
func TestUsage_StatusOfNothing(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	e := runWith(t, setting{}, "status", "--state", state, "--output", "json")
	if e.code != 1 || !strings.Contains(e.stdout, `"joined": false`) {
		t.Errorf("%+v", e)
	}
	if err := os.Mkdir(state, 0o755); err != nil {
		t.Fatal(err)
	}
	runWith(t, setting{}, "status", "--state", state).refused(t, 1, state, "0755", "0700")
}
