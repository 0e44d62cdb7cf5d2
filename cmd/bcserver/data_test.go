package main_test

import (
	"os"
	"os/user"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// unprivileged is a user who may not write everywhere; nil: the user of the test.
func unprivileged(t testing.TB) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	return credential(t, nobody)
}

// readOnly makes a folder that an unprivileged user can enter and not write.
func readOnly(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "bcserver-read-only-") // t.TempDir lets nobody else in
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestData_WithoutPermissionIsRefused holds that a folder that cannot be written
// is refused with a message that names it and the flag.
func TestData_WithoutPermissionIsRefused(t *testing.T) {
	t.Parallel()
	with := setting{dir: "/", user: unprivileged(t)}
	folder := readOnly(t)
	within := filepath.Join(folder, "data")
	for _, command := range [][]string{{"serve", "--listen", "127.0.0.1:0"}, {"migrate"}} {
		runWith(t, with, append(command, "--data", folder)...).refused(t, 1, "--db", folder, "cannot be written", "permission denied")
		runWith(t, with, append(command, "--data", within)...).refused(t, 1, "--data", within, "permission denied")
	}
	wantEmpty(t, folder)
}

// TestData_WithoutPermissionThereIsNoFirstStart holds that where the admin key
// cannot be kept, there is none: the database stays without a schema.
func TestData_WithoutPermissionThereIsNoFirstStart(t *testing.T) {
	t.Parallel()
	url := storetest.EmptyURL(t, storetest.Postgres)
	folder := readOnly(t)
	e := runWith(t, setting{dir: "/", user: unprivileged(t)}, "serve", "--listen", "127.0.0.1:0", "--data", folder, "--db", url)
	e.refused(t, 1, "--data", filepath.Join(folder, "admin.key"), "permission denied")
	wantNumber(t, connect(t, url), 0, "SELECT count(*) FROM pg_tables WHERE tablename = 'api_keys'")
}

func TestData_NoFolderIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for folder, says := range map[string][]string{
		"":                          {"must name a folder"},
		file:                        {file, "not a directory"},
		filepath.Join(file, "data"): {file, "not a directory"},
	} {
		runWith(t, setting{}, "serve", "--listen", "127.0.0.1:0", "--data", folder).refused(t, 1, append(says, "--data")...)
	}
}

// TestData_FolderMayHaveAnyName holds that no character of a path means anything
// to the database, and that a relative path starts at the working directory.
func TestData_FolderMayHaveAnyName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"my data", "50%41", "what?mode=memory", "a#b", "ü:;&=", "..data"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, args := range [][]string{{"migrate", "--data", name}, {"migrate", "--data", name, "--db", "sqlite:" + name + "/another.db"}} {
				if e := runWith(t, setting{dir: dir}, args...); e.code != 0 {
					t.Fatalf("ended with %d: %s", e.code, e.stderr)
				}
			}
			for _, file := range []string{"admin.key", "bettercompute.db", "another.db"} {
				if _, err := os.Stat(filepath.Join(dir, name, file)); err != nil {
					t.Error(err)
				}
			}
			if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
				t.Errorf("the working directory has %v, %v", files, err)
			}
		})
	}
}
