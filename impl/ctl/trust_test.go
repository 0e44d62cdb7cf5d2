package ctl

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// otherRoot is a CA certificate that has signed nothing.
func otherRoot(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestCAFile holds that a server is trusted by its file, given as a flag or in
// the environment, and that then nothing else is.
func TestCAFile(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"site":{}}`))
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	right := write(t, 0o644, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	other := write(t, 0o644, otherRoot(t))
	empty := write(t, 0o644, "no certificate\n")
	missing := filepath.Join(t.TempDir(), "none")
	for name, c := range map[string]struct {
		env, flag string
		code      int
		says      string
	}{
		"the system":        {"", "", 3, "certificate"},
		"flag":              {"", right, 0, ""},
		"environment":       {right, "", 0, ""},
		"the flag wins":     {other, right, 0, ""},
		"another root":      {"", other, 3, "certificate"},
		"another, flag":     {right, other, 3, "certificate"},
		"no certificate":    {"", empty, 2, "--ca-file: " + empty},
		"no file":           {"", missing, 2, "--ca-file: open " + missing},
		"no file, variable": {missing, "", 2, "BCCTL_CA_FILE: open " + missing},
	} {
		args := []string{"sites", "get", "--tenant-id", "a", "--site-id", "b", "--server", s.URL}
		if c.flag != "" {
			args = append(args, "--ca-file", c.flag)
		}
		code, _, stderr := bench{env: map[string]string{"BCCTL_CA_FILE": c.env}}.run(args...)
		if code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit %d: %s", name, code, stderr)
		}
	}
}

// TestCAFile_IsInTheCommandThatRevokes holds that the command which ends a
// record whose answer was lost trusts the same file.
func TestCAFile_IsInTheCommandThatRevokes(t *testing.T) {
	t.Parallel()
	s := serve(t, ok(`{"joinToken":{"id":"jt_1"}}`))
	file := write(t, 0o644, otherRoot(t))
	code, _, stderr := on(s, "join-tokens create --tenant-id a --pool-id b --ttl-seconds 60", "--ca-file", file)
	if code != 1 || !strings.Contains(stderr, "--ca-file "+file) {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
