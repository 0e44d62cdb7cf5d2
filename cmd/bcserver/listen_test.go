package main_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestServe_PrintsWhereItListensOnce(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"127.0.0.1:0", "localhost:0", "[::1]:0"} {
		t.Run(listen, func(t *testing.T) {
			t.Parallel()
			if listen == "[::1]:0" && !hasIPv6() {
				t.Skip("this machine has no IPv6")
			}
			s := &server{process: launch(t, setting{}, "serve", "--listen", listen)}
			s.ready(t)
			if a := s.get(t, "/readyz"); a.status != 200 || string(a.body) != "ready\n" {
				t.Errorf("/readyz answers %d %q", a.status, a.body)
			}
			s.signal(t, syscall.SIGTERM)
			if code := s.exit(t); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if out := s.stdout.String(); out != "listening on "+s.url+"\n" {
				t.Errorf("stdout is %q", out)
			}
		})
	}
}

func hasIPv6() bool {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// TestServe_KeepsDataInItsFolder holds the defaults: without flags the data is
// in ./bettercompute-data, for its owner alone.
func TestServe_KeepsDataInItsFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := &server{process: launch(t, setting{dir: dir, bare: true}, "serve", "--listen", "127.0.0.1:0")}
	s.ready(t)
	for name, want := range map[string]os.FileMode{
		"":                 os.ModeDir | 0o700,
		"admin.key":        0o600,
		"seal.key":         0o600,
		"ca.pem":           0o644,
		"bettercompute.db": 0o600,
	} {
		info, err := os.Stat(filepath.Join(dir, "bettercompute-data", name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", info.Name(), info.Mode(), want)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("the working directory has %v, %v", files, err)
	}
}

// TestServe_RefusesToListen holds that a wrong address is refused with a message
// that names the flag, before anything is made.
func TestServe_RefusesToListen(t *testing.T) {
	t.Parallel()
	for listen, says := range map[string][]string{
		"0.0.0.0:0":         {"loopback", "--tls auto", "--tls-cert"},
		"[::]:0":            {"loopback", "--tls auto", "--tls-cert"},
		":8080":             {"loopback", "--tls auto", "--tls-cert"},
		"bc.example.org:0":  {"loopback", "--tls auto", "--tls-cert"},
		"localhost.evil:0":  {"loopback", "--tls auto", "--tls-cert"},
		"192.0.2.1:8080":    {"loopback", "--tls auto", "--tls-cert"},
		"127.0.0.1":         {"host:port"},
		"8080":              {"host:port"},
		"::1:8080":          {"host:port"},
		"":                  {"host:port"},
		"127.0.0.1:99999":   {"port"},
		"127.0.0.1:-1":      {"port"},
		"127.0.0.1:web-ish": {"port"},
	} {
		t.Run(listen, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			runWith(t, setting{dir: dir}, "serve", "--listen", listen).refused(t, 1, append(says, "--listen", `"`+listen+`"`)...)
			wantEmpty(t, dir)
		})
	}
}

func TestServe_RefusesAPortInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	e := runWith(t, setting{}, "serve", "--listen", taken.Addr().String())
	e.refused(t, 1, "--listen", taken.Addr().String(), "address already in use")
	if strings.Contains(e.stdout, "listening") {
		t.Errorf("stdout is %q", e.stdout)
	}
}
