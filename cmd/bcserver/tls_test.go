package main_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// certificate makes a certificate for 127.0.0.1 that vouches for itself, and
// returns its files.
func certificate(t testing.TB, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bcserver test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	public, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePEM(t, cert, "CERTIFICATE", public)
	writePEM(t, key, "PRIVATE KEY", secret)
	return cert, key
}

func writePEM(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func roots(t testing.TB, cert string) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(cert)
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(text) {
		t.Fatalf("%s: %v", cert, err)
	}
	return pool
}

// trusting returns a client that trusts one certificate.
func trusting(t testing.TB, cert string) *http.Client {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots(t, cert)}}}
	t.Cleanup(client.CloseIdleConnections)
	return client
}

func serveTLS(t testing.TB, args ...string) (s *server, cert string) {
	t.Helper()
	cert, key := certificate(t, t.TempDir())
	data := t.TempDir()
	s = launchServer(t, setting{}, data, "sqlite:"+filepath.Join(data, "bc.db"), append(args, "--tls-cert", cert, "--tls-key", key)...)
	s.ready(t)
	s.client = trusting(t, cert)
	return s, cert
}

func TestTLS_Serves(t *testing.T) {
	t.Parallel()
	s, _ := serveTLS(t)
	if !strings.HasPrefix(s.url, "https://127.0.0.1:") {
		t.Errorf("it listens on %s", s.url)
	}
	ops := withLab(t, s, s.admin(t))
	if made := ok[minted](t, s.call(t, ops, "joinTokens.create", mint("one"))); made.Token == "" {
		t.Error("no token")
	}
}

// TestTLS_ListensBeyondLoopback holds that with a certificate any address will do.
func TestTLS_ListensBeyondLoopback(t *testing.T) {
	t.Parallel()
	s, cert := serveTLS(t, "--listen", "0.0.0.0:0")
	_, port, err := net.SplitHostPort(s.address())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{RootCAs: roots(t, cert)})
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

func TestTLS_1_1IsRefused(t *testing.T) {
	t.Parallel()
	s, cert := serveTLS(t)
	for version, works := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		conn, err := tls.Dial("tcp", s.address(), &tls.Config{RootCAs: roots(t, cert), MinVersion: version, MaxVersion: version})
		if err == nil {
			conn.Close()
		}
		if (err == nil) != works {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}
}

// TestTLS_PlainHTTPGetsNothing holds that a caller without TLS is told so, and
// gets no answer of the API.
func TestTLS_PlainHTTPGetsNothing(t *testing.T) {
	t.Parallel()
	s, _ := serveTLS(t)
	conn, err := net.Dial("tcp", s.address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	io.WriteString(conn, "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n")
	text, _ := io.ReadAll(conn)
	if strings.Contains(string(text), "openapi") || len(text) > 200 || strings.Contains(string(text), " 200 ") {
		t.Errorf("the answer is %q", text)
	}
}

func TestTLS_RefusesWrongFiles(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t, t.TempDir())
	_, other := certificate(t, t.TempDir())
	for name, c := range map[string]struct {
		args []string
		says []string
	}{
		"certificate alone":   {[]string{"--tls-cert", cert}, nil},
		"key alone":           {[]string{"--tls-key", key}, nil},
		"certificate missing": {[]string{"--tls-cert", "/dev/null/none", "--tls-key", key}, []string{"/dev/null/none"}},
		"key missing":         {[]string{"--tls-cert", cert, "--tls-key", "/dev/null/none"}, []string{"/dev/null/none"}},
		"empty":               {[]string{"--tls-cert", "/dev/null", "--tls-key", key}, []string{"PEM"}},
		"swapped":             {[]string{"--tls-cert", key, "--tls-key", cert}, []string{"certificate"}},
		"of two pairs":        {[]string{"--tls-cert", cert, "--tls-key", other}, []string{"match"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := append([]string{"serve", "--listen", "127.0.0.1:0"}, c.args...)
			runWith(t, setting{dir: dir}, args...).refused(t, 1, append(c.says, "--tls-cert", "--tls-key")...)
			wantEmpty(t, dir)
		})
	}
}

// TestTLS_RenewedFilesAreTaken holds that a running server takes a renewed
// certificate, and keeps the one that it has where the new one is broken.
func TestTLS_RenewedFilesAreTaken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := certificate(t, dir)
	s := launchServer(t, setting{}, t.TempDir(), "sqlite:"+filepath.Join(t.TempDir(), "bc.db"), "--tls-cert", cert, "--tls-key", key)
	s.ready(t)
	trusted := func() bool {
		conn, err := tls.Dial("tcp", s.address(), &tls.Config{RootCAs: roots(t, cert)})
		if err != nil {
			return false
		}
		return conn.Close() == nil
	}
	if !trusted() {
		t.Error("it does not show the first one")
	}
	right := string(readFile(t, key))
	writeFile(t, key, "no key\n")
	s.signal(t, syscall.SIGHUP)
	s.await(t, s.stderr, "the listener keeps its certificate")
	if !trusted() {
		t.Error("it does not show the first one any more")
	}
	writeFile(t, key, right)
	certificate(t, dir)
	s.signal(t, syscall.SIGHUP)
	eventually(t, "it shows the second one", trusted)
}
