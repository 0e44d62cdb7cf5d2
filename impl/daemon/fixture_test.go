package daemon_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/bearer"
	"github.com/bettercompute/bettercompute/impl/daemon"
	"github.com/bettercompute/bettercompute/impl/hardware"
)

const tokenID = "jt_0123456789abcdefghjkmnpqrs"

// A machine is where a daemon of a test runs: its clock, its folder, its log.
type machine struct {
	daemon.Config
	t   testing.TB
	log *lines

	mu     sync.Mutex
	clock  time.Time
	notes  []string
	tokens []string // all that it was given
}

// newMachine is one that trusts a server by its pin and has a token of it.
func newMachine(t testing.TB, s *server) *machine {
	t.Helper()
	m := &machine{t: t, log: &lines{}, clock: today}
	m.Config = daemon.Config{
		Server: s.URL, CASHA256: s.pin(), State: filepath.Join(t.TempDir(), "state"), Timeout: time.Minute, Version: "0.1.0",
		Roots:  hardware.Roots{Sys: t.TempDir(), Proc: t.TempDir(), Run: t.TempDir(), Hostname: func() (string, error) { return "rack7-u12", nil }, Permanent: func() (map[string]net.HardwareAddr, error) { return nil, nil }},
		Log:    slog.New(slog.NewTextHandler(m.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now:    m.now,
		Jitter: func(time.Duration) time.Duration { return 0 },
		Notify: m.note,
	}
	m.give(s.mint(tokenID, 1))
	t.Cleanup(func() {
		m.wantNoSecrets()
		if t.Failed() {
			t.Logf("log:\n%s", m.log)
		}
	})
	return m
}

// give writes the file of a token.
func (m *machine) give(b bearer.Bearer) {
	m.t.Helper()
	m.tokens = append(m.tokens, b.Reveal())
	m.TokenFile = filepath.Join(m.t.TempDir(), "token")
	if err := os.WriteFile(m.TokenFile, []byte(b.Reveal()+"\n"), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) now() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.clock
}

func (m *machine) set(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock = now
}

func (m *machine) note(state string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notes = append(m.notes, state)
}

func (m *machine) notified() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.notes
}

// join runs `bcd join`.
func (m *machine) join() (daemon.Outcome, error) { return daemon.Join(m.t.Context(), m.Config) }

// joined runs it where it must work.
func (m *machine) joined() daemon.Outcome {
	m.t.Helper()
	o, err := m.join()
	if err != nil || o.Pending != nil {
		m.t.Fatalf("%+v, %v", o, err)
	}
	return o
}

// open opens a daemon that the test moves on.
func (m *machine) open() daemon.Stepper {
	m.t.Helper()
	d, err := daemon.OpenStepper(m.Config)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { d.Close() })
	return d
}

// pass lets time go by, here and at the server.
func (m *machine) pass(s *server, d time.Duration) {
	m.set(m.now().Add(d))
	s.set(func() { s.now = s.now.Add(d) })
}

// until steps, and lets the time go by that there is nothing to do, until a
// condition holds.
func (m *machine) until(s *server, d daemon.Stepper, what string, holds func() bool) {
	m.t.Helper()
	for range 10_000 {
		if holds() {
			return
		}
		wait, err := d.Step(m.t.Context())
		if err != nil {
			m.t.Fatalf("until %s: %v", what, err)
		}
		m.pass(s, wait)
	}
	m.t.Fatalf("never %s", what)
}

// status is what `bcd status` reads.
func (m *machine) status() daemon.Status {
	m.t.Helper()
	s, err := daemon.ReadStatus(m.State, m.now())
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

// state is a field of state.json.
func (m *machine) state(field string) any {
	m.t.Helper()
	var all map[string]any
	if err := json.Unmarshal(m.file("state.json"), &all); err != nil {
		m.t.Fatal(err)
	}
	return all[field]
}

func (m *machine) file(name string) []byte {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.State, name))
	if err != nil {
		m.t.Fatal(err)
	}
	return text
}

func (m *machine) has(name string) bool {
	_, err := os.Lstat(filepath.Join(m.State, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.t.Fatal(err)
	}
	return err == nil
}

// wantNoSecrets checks that no token is in the state folder, the log, or what
// systemd was told, and that the folder is private.
func (m *machine) wantNoSecrets() {
	m.t.Helper()
	texts := map[string]string{"the log": m.log.String(), "systemd": strings.Join(m.notified(), "\n")}
	err := filepath.WalkDir(m.State, func(path string, entry fs.DirEntry, err error) error {
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
		for _, token := range m.tokens {
			if _, secret, _ := strings.Cut(token, "."); strings.Contains(text, secret[:20]) || strings.Contains(text, secret[20:]) {
				m.t.Errorf("%s has a token: %s", where, text)
			}
		}
		if strings.Contains(text, "PRIVATE KEY") && !strings.HasSuffix(where, "key.pem") {
			m.t.Errorf("%s has a key", where)
		}
	}
}

// lines is a log that many may write to.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns all of it.
func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// wantSays checks that an error is there and says all of the words.
func wantSays(t testing.TB, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; it should say %q", words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not say %q: %v", word, err)
		}
	}
}
