package daemon_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/bettercompute/bettercompute/gen/client"
)

// TestTLS_PlainHTTPIsRefused holds that no token goes in the clear, and that
// what is wrong with a URL is said.
func TestTLS_PlainHTTPIsRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for server, says := range map[string]string{
		"http://127.0.0.1:8080":          "is not encrypted",
		"ftp://127.0.0.1":                "is no https URL",
		"127.0.0.1:8080":                 "https://host:port",
		"https://":                       "https://host:port",
		"https://u:hunter2@127.0.0.1":    "credentials",
		"https://127.0.0.1/?token=x":     "query",
		"https://127.0.0.1:port":         "https://host:port",
		"":                               "--server is missing",
		"https://127.0.0.1/#bcjt_secret": "fragment",
	} {
		m := newMachine(t, s)
		m.Server = server
		_, err := m.join()
		wantSays(t, err, says)
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error tells the password: %v", err)
		}
	}
	if len(s.calls) > 0 {
		t.Errorf("%d calls", len(s.calls))
	}
}

// TestTLS_AWrongPinSendsNoToken holds that whoever answers with other
// certificates than the pinned one gets one request, without a credential.
func TestTLS_AWrongPinSendsNoToken(t *testing.T) {
	t.Parallel()
	s, evil := newServer(t), newServer(t)
	m := newMachine(t, s)
	m.Server = evil.URL
	_, err := m.join()
	wantSays(t, err, "--ca-sha256 does not match", "no token was sent", "bcserver ca show")
	evil.wantNoCredential(t, "/ca.pem")
}

// wantNoCredential checks that only some paths were asked for, and that none
// of the calls had a token or a certificate.
func (s *server) wantNoCredential(t testing.TB, paths ...string) {
	t.Helper()
	var got []string
	for _, c := range s.calls {
		got = append(got, c.Path)
		if c.Authorization != "" || len(c.Certificates) > 0 || strings.Contains(string(c.Body), "bcjt_") {
			t.Errorf("%s was called with a credential", c.Path)
		}
	}
	if strings.Join(got, " ") != strings.Join(paths, " ") {
		t.Errorf("calls of %v, want %v", got, paths)
	}
}

// TestTLS_APinThatIsShownButNotHeldSendsNoToken holds that it is not enough to
// hand out the pinned certificate: the connection must be verified by it.
func TestTLS_APinThatIsShownButNotHeldSendsNoToken(t *testing.T) {
	t.Parallel()
	s, evil := newServer(t), newServer(t)
	evil.authority, s.authority = s.authority, evil.authority // its /ca.pem is the right one, its certificate is not
	m := newMachine(t, s)
	m.CASHA256, m.Server = evil.pin(), evil.URL
	_, err := m.join()
	wantSays(t, err, "certificate")
	evil.wantNoCredential(t, "/ca.pem")
}

// TestTLS_PinFormsAndMistakes holds what a pin may look like.
func TestTLS_PinFormsAndMistakes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	pin := strings.ToUpper(s.pin())
	var colons []string
	for i := 0; i < len(pin); i += 2 {
		colons = append(colons, pin[i:i+2])
	}
	m.CASHA256 = strings.Join(colons, ":")
	m.joined()
	for _, wrong := range []string{"ab", strings.Repeat("x", 64), s.pin() + "00", "sha256:" + s.pin()} {
		m := newMachine(t, s)
		m.CASHA256 = wrong
		_, err := m.join()
		wantSays(t, err, "--ca-sha256", "64 digits")
	}
	m = newMachine(t, s)
	m.CAFile = "x"
	_, err := m.join()
	wantSays(t, err, "--ca-file and --ca-sha256 exclude each other")
}

// TestTLS_CAFileIsTrustedAlone holds that it is enough, and nothing beside it.
func TestTLS_CAFileIsTrustedAlone(t *testing.T) {
	t.Parallel()
	s, other := newServer(t), newServer(t)
	m := newMachine(t, s)
	m.CASHA256, m.CAFile = "", filepath.Join(t.TempDir(), "ca.pem")
	write := func(text string) {
		if err := os.WriteFile(m.CAFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(other.authority.Bundle())
	_, err := m.join()
	wantSays(t, err, "unknown authority")
	for text, says := range map[string]string{"": "holds no certificate in PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n": "x509"} {
		write(text)
		_, err := m.join()
		wantSays(t, err, "--ca-file", m.CAFile, says)
	}
	if calls := s.heard("nodes/join"); len(calls) > 0 {
		t.Errorf("%d calls", len(calls))
	}
	write(s.authority.Bundle())
	m.joined()

	write(other.authority.Bundle()) // what was stored with the identity does not count beside it
	d := m.open()
	if _, err := d.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if problem := m.status().Problem; !strings.Contains(problem, "unknown authority") {
		t.Errorf("the problem is %q", problem)
	}
	write(s.authority.Bundle()) // and once it is right again, the daemon goes on
	m.until(s, d, "reported", func() bool { return len(s.heard("nodes/report")) > 0 })
}

// TestTLS_WithoutAFlagTheSystemIsAsked holds that the own CA of a server is
// then unknown, before the first join; after it, what came with the identity is enough.
func TestTLS_WithoutAFlagTheSystemIsAsked(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	pin := m.CASHA256
	m.CASHA256 = ""
	_, err := m.join()
	wantSays(t, err, "unknown authority", "--ca-sha256", "bcserver ca show", "--ca-file")
	m.CASHA256 = pin
	m.joined()
	m.CASHA256, m.Server, m.TokenFile = "", "", ""
	d := m.open()
	m.until(s, d, "reported", func() bool { return len(s.heard("nodes/report")) > 0 })
}

// TestTLS_TheNameIsChecked holds that another server of the same CA is not this one.
func TestTLS_TheNameIsChecked(t *testing.T) {
	t.Parallel()
	s := newServerAt(t, today, "elsewhere.example")
	m := newMachine(t, s)
	_, err := m.join()
	wantSays(t, err, "elsewhere.example", "--tls-host 127.0.0.1")
	s.wantNoCredential(t, "/ca.pem")
}

// TestTLS_ANodeIsNoServer holds that the certificate of a node, which the same
// root vouches for, does not make its holder the server.
func TestTLS_ANodeIsNoServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	node := newMachine(t, s)
	node.joined()
	pair, err := tls.X509KeyPair(node.file("cert.pem"), node.file("key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	evil := newServer(t)
	evil.TLS.Certificates = []tls.Certificate{pair}
	evil.authority, s.authority = s.authority, evil.authority
	m := newMachine(t, evil)
	_, err = m.join()
	wantSays(t, err, "certificate")
	evil.wantNoCredential(t, "/ca.pem")
}

// TestTLS_1_3AndNothingElse holds that an old protocol is not spoken, and that
// no session is resumed.
func TestTLS_1_3AndNothingElse(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.TLS.MaxVersion = tls.VersionTLS12
	m := newMachine(t, s)
	m.Timeout = 0
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, []byte(s.authority.Bundle()), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := m.join(); err == nil || len(s.calls) > 0 {
			t.Errorf("%v, %d calls", err, len(s.calls))
		}
		m.CASHA256, m.CAFile = "", file
	}

	s = newServer(t)
	var mu sync.Mutex
	resumed := 0
	s.TLS.VerifyConnection = func(c tls.ConnectionState) error {
		mu.Lock()
		defer mu.Unlock()
		if c.DidResume || c.Version != tls.VersionTLS13 {
			resumed++
		}
		return nil
	}
	m = newMachine(t, s)
	m.joined()
	d := m.open()
	for n := range 3 {
		m.pass(s, renewLife)
		m.until(s, d, "renewed and confirmed", func() bool { return len(s.heard("nodes/confirm")) == n+2 })
	}
	mu.Lock()
	defer mu.Unlock()
	if resumed > 0 {
		t.Errorf("%d connections were resumed, or older", resumed)
	}
}

// TestTLS_ARedirectIsNotFollowed holds that a token goes to the server that was
// meant, and the pinned certificate is taken from it.
func TestTLS_ARedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := s.authority.SignServer(t.Context(), []string{"127.0.0.1"}, key.Public(), today)
	if err != nil {
		t.Fatal(err)
	}
	redirects := 0
	elsewhere := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		redirects++
		http.Redirect(w, r, s.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	elsewhere.Config.ErrorLog = log.New(io.Discard, "", 0)
	elsewhere.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: chain, PrivateKey: key}}}
	elsewhere.StartTLS()
	t.Cleanup(elsewhere.Close)
	m := newMachine(t, s)
	m.Server, m.Timeout = elsewhere.URL, 0
	if _, err := m.join(); err == nil {
		t.Error("joined")
	}
	m.CASHA256, m.CAFile = "", filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(m.CAFile, []byte(s.authority.Bundle()), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := m.join(); err == nil {
		t.Error("joined")
	}
	if redirects == 0 || len(s.calls) > 0 {
		t.Errorf("%d redirects, %d calls", redirects, len(s.calls))
	}
}

// TestTLS_ASavedBundleMustVerifyTheServer holds that roots which would lock the
// machine out are not taken over.
func TestTLS_ASavedBundleMustVerifyTheServer(t *testing.T) {
	t.Parallel()
	s, other := newServer(t), newServer(t)
	m := newMachine(t, s)
	m.joined()
	before := string(m.file("ca.pem"))
	s.set(func() {
		s.answer = func(c call) any {
			if c.method() != "nodes/renew" {
				return nil
			}
			answer, ok := s.byTheRules(t.Context(), c).(client.NodesRenewOutput)
			if ok {
				answer.Admitted.CaBundle = other.authority.Bundle()
			}
			return answer
		}
	})
	d := m.open()
	m.pass(s, renewLife)
	m.until(s, d, "renewed and confirmed", func() bool { return len(s.heard("nodes/confirm")) == 2 })
	if got := string(m.file("ca.pem")); got != before {
		t.Error("the roots are others now")
	}
	m.pass(s, renewLife)
	m.until(s, d, "renewed again", func() bool { return len(s.heard("nodes/confirm")) == 3 })
}
