package main_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A cluster is a Postgres of one test, which may stop and restart it.
type cluster struct {
	bin  string // folder of its programs
	dir  string
	port int
	user *syscall.Credential // nil: the user of the test
}

// sealed is a user of a cluster who must say the password.
const sealed = "sealed"

// newCluster makes and starts one. Unlike that of .ci/with-postgres it keeps
// what it has confirmed when it is stopped without warning.
func newCluster(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{}
	var err error
	if c.bin, err = postgresPrograms(); err != nil {
		if os.Getenv("BC_TEST_POSTGRES") == "" && os.Getenv("CI") == "" {
			t.Skipf("\n*** NO POSTGRES: this test is left out (%v). Run it as .ci/with-postgres go test ./cmd/bcserver ***", err)
		}
		t.Fatal(err)
	}
	if c.dir, err = os.MkdirTemp("", "bcserver-postgres-"); err != nil { // t.TempDir lets nobody else in
		t.Fatal(err)
	}
	running.Store(c, c.abandon)
	t.Cleanup(func() {
		running.Delete(c)
		c.stop(t)
		if err := os.RemoveAll(c.dir); err != nil {
			t.Error(err)
		}
	})
	if os.Geteuid() == 0 {
		c.user = postgresUser(t)
		if err := os.Chown(c.dir, int(c.user.Uid), int(c.user.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	c.must(t, "initdb", "-D", c.data(), "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--auth=trust")
	writeFile(t, filepath.Join(c.data(), "pg_hba.conf"), "host all "+sealed+" 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n")
	if c.user != nil {
		if err := os.Chown(filepath.Join(c.data(), "pg_hba.conf"), int(c.user.Uid), int(c.user.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		c.port = 20000 + rand.IntN(12000) // below the ports that the kernel hands out, so that it is free again after a stop
		if err = c.startErr(t); err == nil {
			return c
		}
	}
	t.Fatal(err)
	return nil
}

// postgresPrograms finds initdb and the others as .ci/with-postgres does.
func postgresPrograms() (string, error) {
	var folders []string
	if found, err := exec.LookPath("initdb"); err == nil {
		if found, err = filepath.EvalSymlinks(found); err == nil {
			folders = append(folders, filepath.Dir(found))
		}
	}
	debian, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	slices.Reverse(debian)
	for _, folder := range append(folders, debian...) {
		if _, err := os.Stat(filepath.Join(folder, "postgres")); err == nil {
			return folder, nil
		}
	}
	return "", errors.New("neither PATH nor /usr/lib/postgresql has initdb and postgres")
}

// postgresUser is who runs it where the test is root, as Postgres does not.
func postgresUser(t testing.TB) *syscall.Credential {
	t.Helper()
	who, err := user.Lookup("postgres")
	if err != nil {
		return unprivileged(t)
	}
	return credential(t, who)
}

func credential(t testing.TB, who *user.User) *syscall.Credential {
	t.Helper()
	uid, err := strconv.ParseUint(who.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(who.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func (c *cluster) data() string { return filepath.Join(c.dir, "data") }

// url is that of the database postgres, for its owner.
func (c *cluster) url() string { return c.urlOf("postgres", "") }

func (c *cluster) urlOf(who, password string) string {
	if password != "" {
		who += ":" + password
	}
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/postgres?sslmode=disable", who, c.port)
}

func (c *cluster) run(t testing.TB, name string, args ...string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	if c.user != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.user}
	}
	said, err := os.Create(filepath.Join(c.dir, name+".out")) // a file, as Postgres keeps it open
	if err != nil {
		return err
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(said.Name())
		return fmt.Errorf("%s: %w: %s", name, err, text)
	}
	return nil
}

func (c *cluster) must(t testing.TB, name string, args ...string) {
	t.Helper()
	if err := c.run(t, name, args...); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) startErr(t testing.TB) error {
	t.Helper()
	options := fmt.Sprintf("-c listen_addresses=127.0.0.1 -c port=%d -c unix_socket_directories= -c fsync=off", c.port)
	return c.run(t, "pg_ctl", "-D", c.data(), "-l", filepath.Join(c.dir, "log"), "-o", options, "-w", "-t", "60", "-s", "start")
}

// start starts it again, on the same port.
func (c *cluster) start(t testing.TB) {
	t.Helper()
	if err := c.startErr(t); err != nil {
		t.Fatal(err)
	}
}

// stop stops it as a crash would: no connection is told more than that.
func (c *cluster) stop(t testing.TB) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(c.data(), "postmaster.pid")); err != nil {
		return
	}
	if err := c.run(t, "pg_ctl", "-D", c.data(), "-m", "immediate", "-w", "-t", "60", "-s", "stop"); err != nil {
		t.Error(err)
	}
}

// postmaster is the process that its folder names.
func (c *cluster) postmaster() (pid int, err error) {
	text, err := os.ReadFile(filepath.Join(c.data(), "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
}

// abandon ends it, frozen or not, without waiting.
func (c *cluster) abandon() {
	if pid, err := c.postmaster(); err == nil {
		_ = syscall.Kill(pid, syscall.SIGQUIT)
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	_ = os.RemoveAll(c.dir)
}

// freeze keeps all its processes from running, until it is thawed or the test
// ends: connections stay, and nobody answers.
func (c *cluster) freeze(t testing.TB) (thaw func()) {
	t.Helper()
	postmaster, err := c.postmaster()
	if err != nil {
		t.Fatal(err)
	}
	pids := []int{postmaster} // first, so that it starts no others
	thaw = func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT) // it may have ended
		}
	}
	t.Cleanup(thaw)
	if err := syscall.Kill(postmaster, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	proc := fmt.Sprintf("/proc/%d", postmaster)
	eventually(t, "the postmaster has stopped", func() bool {
		status, err := os.ReadFile(proc + "/stat")
		return err == nil && strings.Contains(string(status), ") T ")
	})
	children, err := os.ReadFile(fmt.Sprintf("%s/task/%d/children", proc, postmaster))
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.FieldsSeq(string(children)) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
		_ = syscall.Kill(pid, syscall.SIGSTOP) // it may have ended
	}
	return thaw
}
