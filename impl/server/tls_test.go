package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/keyring"
	"github.com/bettercompute/bettercompute/impl/seal"
	"github.com/bettercompute/bettercompute/impl/server"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// withAuto gives a server a certificate of its own CA.
func withAuto(s *setup) { s.config.TLS = server.TLSAuto }

// startTLS runs a server with TLS of its own, which its client trusts by <data>/ca.pem alone.
func startTLS(t testing.TB, kind storetest.Kind, changes ...func(*setup)) *running {
	t.Helper()
	s := start(t, kind, append([]func(*setup){withAuto}, changes...)...)
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: s.trusting(t), DisableCompression: true}}
	return s
}

func (s *running) trusting(t testing.TB) *tls.Config {
	t.Helper()
	pool := x509.NewCertPool()
	if text, err := os.ReadFile(filepath.Join(s.data, "ca.pem")); err != nil || !pool.AppendCertsFromPEM(text) {
		t.Fatalf("ca.pem: %v", err)
	}
	return &tls.Config{RootCAs: pool, Time: s.clock.Now}
}

// handshake returns what the listener shows.
func (s *running) handshake(t testing.TB, config *tls.Config) *tls.ConnectionState {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: bc\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil { // so that a ticket would have come
		t.Fatal(err)
	}
	state := conn.ConnectionState()
	return &state
}

// hangup makes the server look for changes and returns when it has.
func (s *running) hangup() {
	s.reload <- syscall.SIGHUP
	s.reload <- syscall.SIGHUP // taken when the first is done
}

func (s *running) serial(t testing.TB) string {
	t.Helper()
	return ca.FormatSerial(s.handshake(t, s.trusting(t)).PeerCertificates[0].SerialNumber)
}

// TestTLS_Auto holds that a listener with a certificate of its own CA is trusted
// by whoever has <data>/ca.pem, under each of its names, and that /ca.pem is that file.
func TestTLS_Auto(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		s := startTLS(t, kind, func(s *setup) { s.config.TLSHosts = []string{"bc.example.org", "*.lab.example.org", "192.0.2.1"} })
		name, err := os.Hostname()
		if err != nil {
			t.Fatal(err)
		}
		for host, works := range map[string]bool{
			"localhost": true, "127.0.0.1": true, "::1": true, name: true, "bc.example.org": true, "a.lab.example.org": true, "192.0.2.1": true,
			"example.org": false, "192.0.2.2": false,
		} {
			config := s.trusting(t)
			config.ServerName = host
			conn, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), config)
			if err == nil {
				conn.Close()
			}
			if (err == nil) != works {
				t.Errorf("%s: %v", host, err)
			}
		}
		leaf := s.handshake(t, s.trusting(t)).PeerCertificates[0]
		if leaf.Subject.CommonName != "bc.example.org" || !slices.Equal(leaf.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) {
			t.Errorf("the certificate is %v for %v", leaf.Subject, leaf.ExtKeyUsage)
		}
		a := s.get(t, "/ca.pem")
		file := filepath.Join(s.data, "ca.pem")
		text, err := os.ReadFile(file)
		if err != nil || a.status != 200 || a.header.Get("Content-Type") != "application/x-pem-file" || string(a.body) != string(text) {
			t.Errorf("/ca.pem answers %d %q (error: %v)", a.status, a.body, err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o644 {
			t.Errorf("ca.pem has mode %v (error: %v)", info.Mode(), err)
		}
		if files, err := filepath.Glob(file + "*"); err != nil || len(files) != 1 {
			t.Errorf("there are %v (error: %v)", files, err)
		}
		block, _ := pem.Decode(text)
		if sum := sha256.Sum256(block.Bytes); !strings.Contains(s.log.text(t), hex.EncodeToString(sum[:])) {
			t.Error("the log does not say the root's SHA-256")
		}
	})
}

// TestTLS_AutoRenews holds that the listener's certificate is another one after
// half its life, and after new issuers, with no stop.
func TestTLS_AutoRenews(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		s := startTLS(t, kind)
		s.clock.Set(time.Now())
		first := s.serial(t)
		s.clock.Advance(14 * 24 * time.Hour)
		if now := s.serial(t); now != first {
			t.Error("it was renewed before half its life")
		}
		s.clock.Advance(24 * time.Hour)
		second := s.serial(t)
		if second == first {
			t.Error("it was not renewed")
		}
		if now := s.serial(t); now != second {
			t.Error("it is renewed for each handshake")
		}
		s.clock.Advance(time.Hour)
		if _, err := keyring.RotateCA(t.Context(), s.db, keyring.Config{SealKeys: func() (seal.Keys, error) { return sealKeys(t), nil }}); err != nil {
			t.Fatal(err)
		}
		if now := s.serial(t); now != second {
			t.Error("it changed before the server looked")
		}
		s.hangup()
		state := s.handshake(t, s.trusting(t))
		if serial := ca.FormatSerial(state.PeerCertificates[0].SerialNumber); serial == second {
			t.Error("it is still of the former issuer")
		}
		if issuer := state.PeerCertificates[1]; issuer.NotBefore.Before(s.clock.Now().Add(-2 * time.Hour)) {
			t.Errorf("the issuer is of %v", issuer.NotBefore)
		}
	})
}

// TestTLS_NoResumption holds that a session cannot be taken up again, so that
// who calls is looked at on each connection (NJ-6).
func TestTLS_NoResumption(t *testing.T) {
	t.Parallel()
	s := startTLS(t, storetest.SQLite)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		config := s.trusting(t)
		config.MinVersion, config.MaxVersion, config.ClientSessionCache = version, version, tls.NewLRUClientSessionCache(8)
		for range 3 {
			if state := s.handshake(t, config); state.DidResume || state.Version != version || state.NegotiatedProtocol == "h2" {
				t.Errorf("%s: %+v", tls.VersionName(version), state)
			}
		}
	}
}

// TestTLS_TakesAnyClientCertificate holds that TLS asks for a certificate and
// judges none: that is for each request (NJ-6).
func TestTLS_TakesAnyClientCertificate(t *testing.T) {
	t.Parallel()
	s := startTLS(t, storetest.SQLite)
	asked := false
	config := s.trusting(t)
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asked = true
		pair := selfSigned(t)
		return &pair, nil
	}
	s.handshake(t, config)
	if !asked {
		t.Error("no certificate was asked for")
	}
	s.handshake(t, s.trusting(t)) // nor is one needed
}

func selfSigned(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := ca.ParseSerial(ca.NewSerial())
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// writePair writes a certificate and its key, as another one each time.
func writePair(t testing.TB, cert, key string) (serial string) {
	t.Helper()
	pair := selfSigned(t)
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]pem.Block{cert: {Type: "CERTIFICATE", Bytes: leaf.Raw}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(&block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return ca.FormatSerial(leaf.SerialNumber)
}

// TestTLS_FilesAreReadAgain holds that changed files are taken without a stop: a
// minute after they were read last, or at once when asked; and that broken ones are not.
func TestTLS_FilesAreReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first := writePair(t, cert, key)
	s := start(t, storetest.SQLite, func(s *setup) { s.config.TLSCert, s.config.TLSKey = cert, key })
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	shows := func(want, when string) {
		t.Helper()
		state := s.handshake(t, &tls.Config{InsecureSkipVerify: true})
		if serial := ca.FormatSerial(state.PeerCertificates[0].SerialNumber); serial != want {
			t.Errorf("%s it shows another certificate", when)
		}
	}
	s.clock.Set(time.Now().Add(time.Hour))
	shows(first, "at first")

	second := writePair(t, cert, key)
	shows(first, "within the minute")
	s.clock.Advance(time.Minute)
	shows(second, "after a minute")

	writePair(t, cert, filepath.Join(dir, "other.pem")) // of which the key has not come yet
	s.clock.Advance(time.Minute)
	shows(second, "with half of a pair")
	if !strings.Contains(s.log.text(t), "the listener keeps its certificate") {
		t.Error("the log does not say that the pair is broken")
	}
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	s.clock.Advance(time.Minute)
	shows(second, "without a file")

	third := writePair(t, cert, key)
	s.hangup()
	shows(third, "after SIGHUP")
}

// TestTLS_Together lets many connections renew one certificate.
func TestTLS_Together(t *testing.T) {
	t.Parallel()
	s := startTLS(t, storetest.SQLite)
	s.clock.Set(time.Now())
	for range 5 {
		s.clock.Advance(16 * 24 * time.Hour)
		together(8, func(int) { s.get(t, "/healthz"); s.handshake(t, s.trusting(t)) })
		s.hangup()
	}
}
