package main_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bettercompute/bettercompute/impl/seal"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// autoTLS starts a server with TLS of its own CA, which its client trusts by
// <data>/ca.pem alone.
func autoTLS(t testing.TB, with setting, data, db string, args ...string) *server {
	t.Helper()
	s := launchServer(t, with, data, db, append(args, "--tls", "auto")...)
	s.ready(t)
	s.client = trusting(t, s.bundle())
	return s
}

func (s *server) bundle() string { return filepath.Join(s.data, "ca.pem") }

// issuer is who signed the listener's certificate.
func (s *server) issuer(t testing.TB) *x509.Certificate {
	t.Helper()
	conn, err := tls.Dial("tcp", s.address(), &tls.Config{RootCAs: roots(t, s.bundle())})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[1]
}

// TestCA_OfManyReplicasIsOne holds that of processes which start at once on one
// empty database one makes the CA, and that all use it.
func TestCA_OfManyReplicasIsOne(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		url := storetest.EmptyURL(t, kind)
		var all []*server
		for range 8 {
			all = append(all, launchServer(t, setting{}, t.TempDir(), url, "--tls", "auto"))
		}
		var bundle string
		for _, s := range all {
			s.ready(t)
			text := string(readFile(t, s.bundle()))
			if bundle != "" && text != bundle {
				t.Error("two servers trust different roots")
			}
			bundle = text
		}
		for _, s := range all {
			s.client = trusting(t, all[0].bundle())
			if served := string(s.get(t, "/ca.pem").body); served != bundle {
				t.Errorf("/ca.pem answers %q", served)
			}
		}
		db := connect(t, url)
		wantNumber(t, db, 4, "SELECT count(*) FROM ca_keys")
		wantNumber(t, db, 1, "SELECT count(*) FROM seal_keysets")
	})
}

// TestCA_OfManyReplicasInOneFolderIsOne is the same where they also make the seal key.
func TestCA_OfManyReplicasInOneFolderIsOne(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	var all []*server
	for range 8 {
		all = append(all, launchServer(t, bare, data, "sqlite:"+filepath.Join(data, "bc.db")))
	}
	for _, s := range all {
		s.ready(t)
	}
	wantNumber(t, connect(t, all[0].db), 4, "SELECT count(*) FROM ca_keys")
	if files, err := os.ReadDir(data); err != nil || len(files) > 6 { // database with -shm and -wal, two keys, ca.pem
		t.Errorf("the folder has %v, %v", files, err)
	}
}

// TestCA_Rotate holds that new issuers are used by a running server without a
// stop, that the root stays, and that what is sealed anew meanwhile hurts nobody.
func TestCA_Rotate(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		s := autoTLS(t, setting{}, t.TempDir(), storetest.EmptyURL(t, kind))
		ops := withLab(t, s, s.admin(t))
		positioned(t, connect(t, s.db))
		w := watch(t, s, ops)
		before := showCA(t, "--db", s.db)
		if len(before.Certificates) != 4 || before.RootSHA256[0] != rootSum(t, s.get(t, "/ca.pem").body) {
			t.Errorf("it shows %+v", before)
		}
		if !strings.Contains(s.stderr.String(), before.RootSHA256[0]) {
			t.Error("the log does not say the root's SHA-256")
		}
		for turn := range 3 {
			former := showCA(t, "--db", s.db)
			if serial := hex.EncodeToString(s.issuer(t).SerialNumber.Bytes()); serial != former.issuing(t, "server") {
				t.Errorf("the listener is certified by %s", serial)
			}
			for _, args := range [][]string{{"seal", "rotate"}, {"ca", "rotate"}} {
				if e := runWith(t, setting{}, append(args, "--db", s.db)...); e.code != 0 || e.stdout == "" || e.stderr != "" {
					t.Fatalf("%v ended with %d, stdout %q, stderr %q", args, e.code, e.stdout, e.stderr)
				}
			}
			now := showCA(t, "--db", s.db)
			if len(now.Certificates) != 4+3*(turn+1) || now.RootSHA256[0] != before.RootSHA256[0] {
				t.Errorf("it shows %+v", now)
			}
			for _, name := range []string{"node-platform", "node-tenant", "server"} {
				if now.issuing(t, name) == former.issuing(t, name) {
					t.Errorf("%s is issued by the same one", name)
				}
			}
			ok[minted](t, s.call(t, ops, "joinTokens.create", mint("meanwhile"))) // before it looks
			s.signal(t, syscall.SIGHUP)
			eventually(t, "the listener is certified by the new issuer", func() bool {
				return hex.EncodeToString(s.issuer(t).SerialNumber.Bytes()) == now.issuing(t, "server")
			})
			ok[minted](t, s.call(t, ops, "joinTokens.create", mint("meanwhile")))
		}
		w.next(t, "security.join-token.created")
		if log := s.stderr.String(); strings.Contains(log, "level=WARN") || strings.Contains(log, "level=ERROR") {
			t.Errorf("the log complains: %s", tail(log, 20))
		}
		other := autoTLS(t, setting{}, t.TempDir(), s.db)
		if string(readFile(t, other.bundle())) != string(readFile(t, s.bundle())) {
			t.Error("another server trusts another root")
		}
	})
}

// TestCA_RotateIsSeenWithoutASignal holds that a running server looks by itself.
func TestCA_RotateIsSeenWithoutASignal(t *testing.T) {
	t.Parallel()
	s := autoTLS(t, setting{}, t.TempDir(), storetest.EmptyURL(t, storetest.SQLite))
	if e := runWith(t, setting{}, "ca", "rotate", "--db", s.db); e.code != 0 {
		t.Fatal(e.stderr)
	}
	want := showCA(t, "--db", s.db).issuing(t, "server")
	eventually(t, "the listener is certified by the new issuer", func() bool {
		return hex.EncodeToString(s.issuer(t).SerialNumber.Bytes()) == want
	})
}

// TestSeal_NewKeyWithoutAStop holds how a seal key is replaced while servers
// run: the new one above the old one, a rotation, and the old one goes.
func TestSeal_NewKeyWithoutAStop(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		url, file := storetest.EmptyURL(t, kind), filepath.Join(t.TempDir(), "key")
		old, fresh := seal.NewKeyText(), seal.NewKeyText()
		writeFile(t, file, old)
		var servers []*server
		for range 2 {
			servers = append(servers, autoTLS(t, bare, t.TempDir(), url, "--seal-key-file", file))
		}
		ops := withLab(t, servers[0], servers[0].admin(t))
		writeFile(t, file, fresh+old)
		for _, args := range [][]string{{"seal", "rotate"}, {"ca", "rotate"}} {
			if e := runWith(t, bare, append(args, "--db", url, "--seal-key-file", file)...); e.code != 0 {
				t.Fatalf("%v: %s", args, e.stderr)
			}
		}
		writeFile(t, file, fresh)
		e := runWith(t, bare, "ca", "show", "--output", "json", "--db", url, "--seal-key-file", file)
		var now shownCA
		if e.code != 0 || json.Unmarshal([]byte(e.stdout), &now) != nil {
			t.Fatalf("the new key alone: %s", e.stderr)
		}
		for _, s := range servers {
			s.signal(t, syscall.SIGHUP)
			eventually(t, "the server has the new issuers", func() bool {
				return hex.EncodeToString(s.issuer(t).SerialNumber.Bytes()) == now.issuing(t, "server")
			})
			ok[object](t, s.call(t, ops, "joinTokens.list", object{"tenantId": "acme", "poolId": "lab"}))
		}
		writeFile(t, file, old)
		runWith(t, bare, "ca", "show", "--db", url, "--seal-key-file", file).refused(t, 1, "--seal-key-file", "not the one")
	})
}

// TestCA_OfFiles holds that an operator's own CA can be shown, and is rotated by its files alone.
func TestCA_OfFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeCA(t, dir)
	s := autoTLS(t, setting{}, t.TempDir(), storetest.EmptyURL(t, storetest.SQLite), "--ca-dir", dir)
	if c := showCA(t, "--ca-dir", dir); c.RootSHA256[0] != rootSum(t, readFile(t, s.bundle())) {
		t.Errorf("it shows %+v", c)
	}
	runWith(t, setting{}, "ca", "rotate", "--db", s.db, "--ca-dir", dir).refused(t, 1, "files", dir)
	wantNumber(t, connect(t, s.db), 0, "SELECT count(*) FROM ca_keys")
	writeCA(t, dir)
	s.signal(t, syscall.SIGHUP)
	root := readFile(t, filepath.Join(dir, "ca.pem"))
	eventually(t, "ca.pem is the new root", func() bool { return string(readFile(t, s.bundle())) == string(root) })
	s.client = trusting(t, s.bundle())
	if served := s.get(t, "/ca.pem").body; string(served) != string(root) {
		t.Errorf("/ca.pem answers %s", served)
	}
}

// TestTLS_AutoBeyondLoopback holds that no certificate is needed to listen on any address.
func TestTLS_AutoBeyondLoopback(t *testing.T) {
	t.Parallel()
	s := autoTLS(t, setting{}, t.TempDir(), storetest.EmptyURL(t, storetest.SQLite), "--listen", "0.0.0.0:0", "--tls-host", "bc.example.org", "--tls-host", "192.0.2.1")
	_, port, _ := strings.Cut(s.address(), "]:")
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "bc.example.org", "192.0.2.1"} {
		conn, err := tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{RootCAs: roots(t, s.bundle()), ServerName: host})
		if err != nil {
			t.Errorf("%s: %v", host, err)
			continue
		}
		conn.Close()
	}
	if _, err := tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{ServerName: "bc.example.org"}); err == nil {
		t.Error("who does not know the CA trusts it")
	}
}
