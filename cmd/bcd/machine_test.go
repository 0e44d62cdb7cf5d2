package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/client"
	"github.com/bettercompute/bettercompute/impl/daemon"
)

// A machine has a state folder, claims, and a token.
type machine struct {
	t     testing.TB
	s     *server
	url   string // through which it reaches the server
	state string
	flags []string
	token string
	said  []string // all that was printed and logged
}

// newMachine is one with a real identity, of a number, and a token.
func newMachine(t testing.TB, s *server, number int, token string) *machine {
	t.Helper()
	m := &machine{t: t, s: s, url: s.url, state: filepath.Join(t.TempDir(), "state"), token: token}
	m.flags = []string{"--ca-sha256", s.pin, "--token-file", m.file("token", token+"\n")}
	m.claim(fmt.Sprintf(`{"serial": "CZ2D1X%04d", "macs": ["3c:ec:ef:12:%02x:%02x"], "hostname": "rack7-u%d", "environment": "host"}`, number, number>>8, number&255, number))
	t.Cleanup(m.wantNoSecrets)
	return m
}

// file writes a file that only we can read, and returns its name.
func (m *machine) file(name, text string) string {
	m.t.Helper()
	file := filepath.Join(m.t.TempDir(), name)
	must(m.t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func (m *machine) claim(claims string) {
	m.t.Helper()
	m.flags = append(m.flags, "--claims", m.file("claims.json", claims))
}

func (m *machine) args(command string, more ...string) []string {
	return append(append([]string{command, "--server", m.url, "--state", m.state}, m.flags...), more...)
}

// join runs bcd join to its end.
func (m *machine) join(more ...string) ended {
	m.t.Helper()
	e := runWith(m.t, setting{}, m.args("join", more...)...)
	m.said = append(m.said, e.stdout, e.stderr)
	return e
}

// joins runs it where it must work.
func (m *machine) joins(more ...string) {
	m.t.Helper()
	if e := m.join(more...); e.code != 0 || !strings.Contains(e.stdout, "node nd_") {
		m.t.Fatalf("%+v", e)
	}
}

// run starts bcd run.
func (m *machine) run(with setting, more ...string) *process {
	m.t.Helper()
	p := launch(m.t, bcd, with, m.args("run", more...)...)
	m.t.Cleanup(func() { m.said = append(m.said, p.stdout.String(), p.stderr.String()) })
	return p
}

// status is what bcd status says, and whether it says that all is well.
func (m *machine) status() (s daemon.Status, well bool) {
	m.t.Helper()
	cmd := exec.Command(bcd, "status", "--state", m.state, "--output", "json") // often: not worth a log of its own
	text, err := cmd.Output()
	if wrong := json.Unmarshal(text, &s); wrong != nil || cmd.ProcessState.ExitCode() > 1 {
		m.t.Fatalf("%s: %v: %v", text, wrong, err)
	}
	return s, err == nil
}

// says checks the state and what comes next, as bcd status prints them, and
// that it ends with 0 where the machine has joined, and with 1 otherwise.
func (m *machine) says(state, next string) {
	m.t.Helper()
	code := 1
	if state == "joined" {
		code = 0
	}
	e := runWith(m.t, setting{}, "status", "--state", m.state)
	m.said = append(m.said, e.stdout, e.stderr)
	if e.code != code || !regexp.MustCompile(`(?m)^state +`+regexp.QuoteMeta(state)+`$`).MatchString(e.stdout) ||
		!regexp.MustCompile(`(?m)^next +.*`+regexp.QuoteMeta(next)).MatchString(e.stdout) {
		m.t.Errorf("%+v", e)
	}
}

// text is a file of the state folder; "" where it is not there.
func (m *machine) text(name string) string {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.state, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.t.Fatal(err)
	}
	return string(text)
}

// wantNoSecrets checks that the token is nowhere, the key in its file alone,
// and that nobody else can read any of the files.
func (m *machine) wantNoSecrets() {
	texts := map[string]string{"what it said": strings.Join(m.said, "\n")}
	err := filepath.WalkDir(m.state, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			m.t.Errorf("others can read %s: %v", path, info.Mode())
		}
		if entry.IsDir() {
			return nil
		}
		text, err := os.ReadFile(path)
		texts[path] = string(text)
		return err
	})
	if err != nil {
		m.t.Error(err)
	}
	for where, text := range texts {
		wantNoToken(m.t, where, text, m.token)
		if strings.Contains(text, "PRIVATE KEY") && !strings.HasSuffix(where, "key.pem") {
			m.t.Errorf("%s has a key", where)
		}
	}
}

// wantNoToken checks that a text has no part of a token's secret.
func wantNoToken(t testing.TB, where, text, token string) {
	t.Helper()
	_, secret, _ := strings.Cut(token, ".")
	if strings.Contains(text, secret[:20]) || strings.Contains(text, secret[20:]) {
		t.Errorf("%s has the token", where)
	}
}

// active says whether a machine is an active node of the server.
func (m *machine) active(nodeID string) bool {
	m.t.Helper()
	out, err := m.s.admin.Nodes.Get(m.t.Context(), client.NodesGetInput{TenantID: platform, PoolID: lab, NodeID: nodeID})
	must(m.t, err)
	return out.Node.Status == client.NodeStatusActive
}
