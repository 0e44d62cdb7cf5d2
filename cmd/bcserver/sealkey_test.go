package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bettercompute/bettercompute/impl/seal"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// bare has no seal key in its environment.
var bare = setting{bare: true}

// TestSealKey_SQLiteMakesItsOwn holds that an embedded database gets a key, in a
// file for its owner alone, and that a restart keeps it and the CA.
func TestSealKey_SQLiteMakesItsOwn(t *testing.T) {
	t.Parallel()
	url, data := storetest.EmptyURL(t, storetest.SQLite), filepath.Join(t.TempDir(), "data")
	file := filepath.Join(data, "seal.key")
	first := launchServer(t, bare, data, url)
	first.ready(t)
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("seal.key has mode %v, %v", info.Mode(), err)
	}
	if !strings.Contains(first.stderr.String(), file) {
		t.Error("the path of the key is not told")
	}
	key, bundle := string(readFile(t, file)), string(first.get(t, "/ca.pem").body)
	if _, err := seal.ParseKeys(key); err != nil {
		t.Error(err)
	}
	first.stops(t, syscall.SIGTERM)

	second := launchServer(t, bare, data, url)
	second.ready(t)
	if string(readFile(t, file)) != key || string(second.get(t, "/ca.pem").body) != bundle {
		t.Error("the second start made another key or CA")
	}
	isPlatformAdmin(t, second, second.admin(t))
	wantNumber(t, connect(t, url), 4, "SELECT count(*) FROM ca_keys")
	second.stops(t, syscall.SIGTERM)

	// The same key, given otherwise.
	for name, with := range map[string]setting{
		"file":        {bare: true, env: []string{"BC_SEAL_KEY_FILE=" + file}},
		"environment": {bare: true, env: []string{"BC_SEAL_KEY=" + strings.TrimSpace(key)}},
	} {
		s := launchServer(t, with, t.TempDir(), url)
		s.ready(t)
		if string(s.get(t, "/ca.pem").body) != bundle {
			t.Errorf("%s: another CA", name)
		}
		if _, err := os.Stat(filepath.Join(s.data, "seal.key")); err == nil {
			t.Errorf("%s: another key", name)
		}
		s.stops(t, syscall.SIGTERM)
	}
}

// TestSealKey_PostgresNeedsOne holds that no command begins without a key there,
// and that the message says how to get one, which works.
func TestSealKey_PostgresNeedsOne(t *testing.T) {
	t.Parallel()
	url := storetest.EmptyURL(t, storetest.Postgres)
	for _, args := range onDatabase(url) {
		dir := t.TempDir()
		runWith(t, setting{dir: dir, bare: true}, args...).refused(t, 1, "Postgres", "bcserver seal new-key", "--seal-key-file", "BC_SEAL_KEY")
		wantEmpty(t, dir)
	}
	wantNumber(t, connect(t, url), 0, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")

	made := runWith(t, bare, "seal", "new-key")
	if made.code != 0 || made.stderr != "" || strings.Count(made.stdout, "\n") != 1 {
		t.Fatalf("seal new-key ended with %d, stdout %q, stderr %q", made.code, made.stdout, made.stderr)
	}
	file := filepath.Join(t.TempDir(), "key")
	writeFile(t, file, made.stdout)
	s := launchServer(t, bare, t.TempDir(), url, "--seal-key-file", file)
	s.ready(t)
	isPlatformAdmin(t, s, s.admin(t))
	if _, err := os.Stat(filepath.Join(s.data, "seal.key")); err == nil {
		t.Error("it made a key of its own")
	}
}

// TestSealKey_WrongOneIsRefused holds that with another key no command begins,
// and that nothing is changed by trying.
func TestSealKey_WrongOneIsRefused(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		s := serve(t, storetest.EmptyURL(t, kind))
		db := connect(t, s.db)
		state := func() string {
			var all string
			if err := db.QueryRow("SELECT CAST(updated_at AS TEXT) || (SELECT count(*) FROM ca_keys) || (SELECT max(position) FROM events) FROM seal_keysets").Scan(&all); err != nil {
				t.Fatal(err)
			}
			return all
		}
		positioned(t, db)
		before := state()
		wrong := strings.TrimSpace(seal.NewKeyText())
		for _, args := range onDatabase(s.db) {
			dir := t.TempDir()
			e := runWith(t, setting{bare: true, env: []string{"BC_SEAL_KEY=" + wrong}}, append(args, "--data", dir)...)
			e.refused(t, 1, "BC_SEAL_KEY", "seal key", "not the one")
			if strings.Contains(e.stderr, wrong[:20]) || strings.Contains(e.stderr, wrong[20:]) {
				t.Error("the key is told")
			}
			wantEmpty(t, dir)
		}
		file := filepath.Join(t.TempDir(), "key")
		writeFile(t, file, wrong+"\n"+strings.TrimSpace(seal.NewKeyText())+"\n")
		runWith(t, bare, "migrate", "--db", s.db, "--seal-key-file", file).refused(t, 1, "--seal-key-file "+file, "not the one")
		if after := state(); after != before {
			t.Errorf("the database became %s from %s", after, before)
		}
		// A second line that is the right one is enough.
		writeFile(t, file, wrong+"\n# the former one\n"+sealKey+"\n")
		other := launchServer(t, bare, t.TempDir(), s.db, "--seal-key-file", file)
		other.ready(t)
	})
}

// TestSealKey_MissingOneIsNotMade holds that a database with secrets gets no
// other key in place of one that is gone.
func TestSealKey_MissingOneIsNotMade(t *testing.T) {
	t.Parallel()
	url, data := storetest.EmptyURL(t, storetest.SQLite), t.TempDir()
	file := filepath.Join(data, "seal.key")
	if e := runWith(t, bare, "migrate", "--db", url, "--data", data); e.code != 0 {
		t.Fatal(e.stderr)
	}
	key := readFile(t, file)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for _, args := range onDatabase(url) {
		runWith(t, bare, append(args, "--data", data)...).refused(t, 1, file)
		if _, err := os.Lstat(file); err == nil {
			t.Fatalf("%v made a key", args)
		}
	}
	runWith(t, bare, "migrate", "--db", url, "--data", data).refused(t, 1, file, "missing", "put it back", "--seal-key-file", "BC_SEAL_KEY")
	writeFile(t, file, string(key))
	s := launchServer(t, bare, data, url)
	s.ready(t)
	isPlatformAdmin(t, s, s.admin(t))
}

// TestSealKey_TakesUpTheKeyOfAStartThatBroke holds that a start which was killed
// between the files and the commit is completed by the next one.
func TestSealKey_TakesUpTheKeyOfAStartThatBroke(t *testing.T) {
	t.Parallel()
	url, data := storetest.EmptyURL(t, storetest.SQLite), t.TempDir()
	file, key := filepath.Join(data, "seal.key"), seal.NewKeyText()
	writeFile(t, file, key)
	s := launchServer(t, bare, data, url)
	s.ready(t)
	if string(readFile(t, file)) != key {
		t.Error("the file was changed")
	}
	if e := runWith(t, setting{bare: true, env: []string{"BC_SEAL_KEY=" + strings.TrimSpace(key)}}, "ca", "show", "--db", url); e.code != 0 {
		t.Errorf("it is not the key of the database: %s", e.stderr)
	}
}

// TestSealKey_WrongFilesAreRefused holds that a file which others may read, or
// which is no key, is not used, and that nothing is made.
func TestSealKey_WrongFilesAreRefused(t *testing.T) {
	t.Parallel()
	key := seal.NewKeyText()
	text := func(text string, mode os.FileMode) func(testing.TB, string) {
		return func(t testing.TB, file string) {
			writeFile(t, file, text)
			if err := os.Chmod(file, mode); err != nil { // whatever the umask is
				t.Fatal(err)
			}
		}
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	writeFile(t, elsewhere, key)
	for name, c := range map[string]struct {
		make           func(t testing.TB, file string)
		given, asOwn   bool // whether it is refused as --seal-key-file, as <data>/seal.key
		saysGiven, own string
	}{
		"right":              {text(key, 0o600), false, false, "", ""},
		"right, read-only":   {text(key, 0o400), false, false, "", ""},
		"right, for a group": {text(key, 0o640), false, true, "", "only its owner"},
		"group may write":    {text(key, 0o660), true, true, "0660", "only its owner"},
		"others may read":    {text(key, 0o604), true, true, "0604", "only its owner"},
		"others may write":   {text(key, 0o602), true, true, "0602", "only its owner"},
		"empty":              {text("", 0o600), true, true, "no key", "no key"},
		"a text":             {text("correct horse battery staple\n", 0o600), true, true, "line 1", "line 1"},
		"two, one broken":    {text(key+key[:20]+"\n", 0o600), true, true, "line 2", "line 2"},
		"twice the same":     {text(key+key, 0o600), true, true, "line 2", "line 2"},
		"too short":          {text(key[:36]+"\n", 0o600), true, true, "line 1", "line 1"},
		"too long":           {text(strings.Repeat("#\n", 40<<10)+key, 0o600), true, true, "too long", "too long"},
		"a folder":           {func(t testing.TB, file string) { mustBeNil(t, os.Mkdir(file, 0o700)) }, true, true, "regular", "only its owner"},
		"a pipe":             {func(t testing.TB, file string) { mustBeNil(t, syscall.Mkfifo(file, 0o600)) }, true, true, "regular", "only its owner"},
		"a link to a key":    {func(t testing.TB, file string) { mustBeNil(t, os.Symlink(elsewhere, file)) }, false, true, "", "only its owner"},
		"a link to nowhere":  {func(t testing.TB, file string) { mustBeNil(t, os.Symlink(file+"x", file)) }, true, true, "no such file", "only its owner"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, dir := filepath.Join(t.TempDir(), "key"), filepath.Join(t.TempDir(), "data")
			c.make(t, file)
			e := runWith(t, bare, "migrate", "--seal-key-file", file, "--data", dir)
			if !c.given && e.code != 0 {
				t.Errorf("as --seal-key-file: %s", e.stderr)
			}
			if c.given {
				e.refused(t, 1, "--seal-key-file "+file, c.saysGiven)
				if _, err := os.Stat(dir); err == nil {
					t.Error("a folder was made")
				}
			}
			data := t.TempDir()
			file = filepath.Join(data, "seal.key")
			c.make(t, file)
			e = runWith(t, bare, "migrate", "--data", data)
			if !c.asOwn && e.code != 0 {
				t.Errorf("as seal.key: %s", e.stderr)
			}
			if c.asOwn {
				e.refused(t, 1, "the seal key "+file, c.own)
				if _, err := os.Stat(filepath.Join(data, "admin.key")); err == nil {
					t.Error("an admin key was made")
				}
				wantNumber(t, connect(t, "sqlite:"+filepath.Join(data, "bettercompute.db")), 0, "SELECT count(*) FROM sqlite_master WHERE name = 'seal_keysets'")
			}
		})
	}
	both := runWith(t, setting{}, "migrate", "--seal-key-file", elsewhere)
	both.refused(t, 1, "--seal-key-file", "BC_SEAL_KEY", "one of them")
	runWith(t, setting{bare: true, env: []string{"BC_SEAL_KEY=hunter2Xq9sesame"}}, "migrate").refused(t, 1, "BC_SEAL_KEY", "line 1")
}

func mustBeNil(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestSealKey_OfAnotherUserIsRefused holds that a server does not take a key
// that somebody else has put into its folder.
func TestSealKey_OfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to somebody else")
	}
	data := t.TempDir()
	file := filepath.Join(data, "seal.key")
	writeFile(t, file, seal.NewKeyText())
	nobody := unprivileged(t)
	mustBeNil(t, os.Chown(file, int(nobody.Uid), int(nobody.Gid)))
	runWith(t, bare, "migrate", "--data", data).refused(t, 1, file, "only its owner")
}

// TestSealKey_WhatWasMadeGoes holds that a first start which fails after it has
// made the seal key leaves none behind.
func TestSealKey_WhatWasMadeGoes(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	writeFile(t, filepath.Join(data, "admin.key"), "no key\n")
	runWith(t, bare, "migrate", "--data", data).refused(t, 1, "admin.key", "no API key")
	if _, err := os.Lstat(filepath.Join(data, "seal.key")); err == nil {
		t.Error("seal.key is left")
	}
}
