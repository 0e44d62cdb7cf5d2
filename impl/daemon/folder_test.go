package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/daemon"
)

// TestFolder_OthersMustNotReachIt holds that a folder or a file that others can
// read is refused, by name, before anybody is called.
func TestFolder_OthersMustNotReachIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(m *machine) error
		says   []string
	}{
		"folder for all":   {func(m *machine) error { return os.Chmod(m.State, 0o755) }, []string{"mode 0755", "must be 0700"}},
		"folder for group": {func(m *machine) error { return os.Chmod(m.State, 0o750) }, []string{"mode 0750"}},
		"key":              {func(m *machine) error { return os.Chmod(filepath.Join(m.State, "key.pem"), 0o640) }, []string{"key.pem", "mode 0640"}},
		"state":            {func(m *machine) error { return os.Chmod(filepath.Join(m.State, "state.json"), 0o644) }, []string{"state.json", "mode 0644"}},
		"key is a link": {func(m *machine) error {
			key := filepath.Join(m.State, "key.pem")
			return firstOf(os.Rename(key, key+".moved"), os.Symlink(key+".moved", key))
		}, []string{"key.pem", "no regular file"}},
		"key is lost":      {func(m *machine) error { return os.Remove(filepath.Join(m.State, "key.pem")) }, []string{"has the certificate of nd_", "not its key"}},
		"key of another":   {func(m *machine) error { return os.WriteFile(filepath.Join(m.State, "key.pem"), []byte("x"), 0o600) }, []string{"not its key"}},
		"state is damaged": {func(m *machine) error { return os.Truncate(filepath.Join(m.State, "state.json"), 40) }, []string{"state.json is damaged"}},
		"state is newer": {func(m *machine) error {
			return os.WriteFile(filepath.Join(m.State, "state.json"), []byte(`{"version": 99}`), 0o600)
		}, []string{"newer bcd"}},
		"folder is a file": {func(m *machine) error { return firstOf(os.RemoveAll(m.State), os.WriteFile(m.State, nil, 0o600)) }, []string{"not a directory"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			m := newMachine(t, s)
			m.joined()
			if err := c.change(m); err != nil {
				t.Fatal(err)
			}
			calls := len(s.calls)
			_, err := m.join()
			wantSays(t, err, append(c.says, m.State)...)
			if err := daemon.Run(t.Context(), m.Config); err == nil || len(s.calls) > calls {
				t.Errorf("it runs: %v", err)
			}
			if _, err := daemon.ReadStatus(m.State, m.now()); err == nil {
				t.Error("status reads it")
			}
			if err := os.RemoveAll(m.State); err != nil { // so that it is not looked through
				t.Fatal(err)
			}
		})
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestFolder_OfAnotherUser holds that neither a folder nor a link to one that
// somebody else made is taken.
func TestFolder_OfAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	s := newServer(t)
	m := newMachine(t, s)
	if err := firstOf(os.Mkdir(m.State, 0o700), os.Chown(m.State, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	_, err := m.join()
	wantSays(t, err, m.State, "does not belong to the user that runs bcd")

	m = newMachine(t, s)
	real := m.State
	if err := os.Mkdir(real, 0o700); err != nil {
		t.Fatal(err)
	}
	m.State = filepath.Join(t.TempDir(), "link")
	if err := firstOf(os.Symlink(real, m.State), os.Lchown(m.State, 65534, 65534)); err != nil {
		t.Fatal(err)
	}
	_, err = m.join()
	wantSays(t, err, m.State, "symlink that belongs to another user")
	if err := os.Lchown(m.State, 0, 0); err != nil {
		t.Fatal(err)
	}
	m.joined() // one of our own will do
	m.State = real
}

// TestFolder_OneAtATime holds that two bcd do not work on one folder, and that
// status may look at any time.
func TestFolder_OneAtATime(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	d := m.open()
	_, err := m.join()
	wantSays(t, err, "another bcd works on the state folder", m.State)
	m.status()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	m.joined()
}

// TestFolder_ACrashBetweenTwoFilesIsHealed holds that the state decides which
// key is the identity's, in whichever file a crash has left it.
func TestFolder_ACrashBetweenTwoFilesIsHealed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	m.joined()
	path := func(name string) string { return filepath.Join(m.State, name) }
	key, cert := m.file("key.pem"), m.file("cert.pem")
	for _, left := range []string{"renew-key.pem", "join-key.pem"} {
		// As if it had crashed after the state was written, and before the rename.
		if err := firstOf(os.Rename(path("key.pem"), path(left)), os.WriteFile(path("key.pem"), []byte("the key before"), 0o600),
			os.WriteFile(path("cert.pem"), []byte("the certificate before"), 0o600), os.WriteFile(path("key.pem.new"), []byte("half a fi"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if !m.status().Valid {
			t.Error("status does not find the key")
		}
		if o := m.joined(); !o.Already {
			t.Errorf("%+v", o)
		}
		if string(m.file("key.pem")) != string(key) || string(m.file("cert.pem")) != string(cert) || m.has(left) || m.has("key.pem.new") {
			t.Error("the folder is not in order")
		}
	}
}

// TestFolder_TheKeyOfTheIdentityIsNotOverwritten holds that a renewal first
// puts away a key that could not get its name before.
func TestFolder_TheKeyOfTheIdentityIsNotOverwritten(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	m.joined()
	key := string(m.file("key.pem"))
	s.set(func() {
		s.sent = func(c call) {
			if c.method() == "nodes/renew" && (!m.has("key.pem") || string(m.file("key.pem")) != key) {
				t.Error("the key of the identity is gone, and there is no other yet")
			}
		}
	})
	d := m.open()
	if err := os.Rename(filepath.Join(m.State, "key.pem"), filepath.Join(m.State, "renew-key.pem")); err != nil {
		t.Fatal(err)
	}
	m.pass(s, renewLife)
	m.until(s, d, "renewed and confirmed", func() bool { return len(s.heard("nodes/confirm")) == 2 })
}

// TestFolder_AnAttemptWithoutItsKeyStartsAnew holds that a request is never
// sent whose certificate would be of no use.
func TestFolder_AnAttemptWithoutItsKeyStartsAnew(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	m.Timeout = 0
	s.answer = func(c call) any { return cut{} }
	if _, err := m.join(); err == nil {
		t.Fatal("joined")
	}
	if err := os.Remove(filepath.Join(m.State, "join-key.pem")); err != nil {
		t.Fatal(err)
	}
	s.set(func() { s.answer = nil })
	m.Timeout = time.Minute
	m.joined()
}

// TestStatus holds what is said of a machine that has not begun, and of one
// whose certificate has ended.
func TestStatus(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	if got := m.status(); got.Joined || got.Valid || !strings.Contains(got.Next, "bcd join") {
		t.Errorf("%+v", got)
	}
	m.joined()
	for after, next := range map[time.Duration]string{
		0: "reports every 30 seconds", renewLife + time.Second: "renews the certificate",
		certificateLife + time.Second: "renews the certificate", certificateLife + 7*24*time.Hour + time.Second: "join with a new token",
	} {
		got, err := daemon.ReadStatus(m.State, today.Add(after))
		if err != nil || !got.Joined || got.Valid != (after < certificateLife) || !strings.Contains(got.Next, next) {
			t.Errorf("after %v: %+v, %v", after, got, err)
		}
	}
}
