package daemon_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/client"
	"github.com/bettercompute/bettercompute/impl/bearer"
	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/csr"
)

// today is when every test starts, for the server.
var today = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	certificateLife = 24 * time.Hour
	renewLife       = 16 * time.Hour
)

// A server speaks TLS for real, with a certificate of a CA for real, and
// answers the four calls of a machine by the rules of the spec, as far as bcd
// can tell. What it must answer otherwise is a test's to say.
type server struct {
	*httptest.Server
	authority *ca.Authority
	serverTLS *tls.Config

	mu       sync.Mutex
	now      time.Time
	calls    []call
	tokens   map[string]int // uses left, by bearer
	issued   map[string]client.Admission
	nodes    map[string]int   // the generation of the newest confirmed certificate
	serials  map[string]int   // generation of a certificate
	answer   func(c call) any // nil: by the rules; an answer of its own, or nil
	sent     func(c call)     // called when the answer was made, before it is sent
	minTrust client.Trust
}

// A call as it arrived.
type call struct {
	Path, Authorization string
	Body                []byte
	Certificates        []*x509.Certificate
}

func (c call) method() string { return strings.TrimPrefix(c.Path, "/api/compute/") }

func (c call) csr(t testing.TB) string {
	t.Helper()
	var in struct{ CSR string }
	if err := json.Unmarshal(c.Body, &in); err != nil {
		t.Fatal(err)
	}
	return in.CSR
}

// A refused answer.
type refused struct {
	status     int
	code       client.ErrorCode
	reason     string
	retryAfter string
}

// cut makes the answer get lost: the connection breaks.
type cut struct{}

func newServer(t testing.TB) *server { return newServerAt(t, today, "127.0.0.1") }

// newServerAt starts a server whose certificate was made at a time, for a host.
func newServerAt(t testing.TB, now time.Time, host string) *server {
	t.Helper()
	materials, err := ca.Generate(now)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{now: now, tokens: map[string]int{}, issued: map[string]client.Admission{}, nodes: map[string]int{}, serials: map[string]int{}, minTrust: client.TrustTenantOwned}
	if s.authority, err = ca.New(materials); err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := s.authority.SignServer(t.Context(), []string{host}, key.Public(), now)
	if err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: chain, PrivateKey: key}}, ClientAuth: tls.RequestClientCert}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// pin is the fingerprint of its root.
func (s *server) pin() string { return s.authority.RootSHA256()[0] }

// mint makes a token for some joins.
func (s *server) mint(id string, uses int) bearer.Bearer {
	b, _ := bearer.Mint(bearer.JoinToken, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[b.Reveal()] = uses
	return b
}

func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// heard are the calls so far of some methods.
func (s *server) heard(methods ...string) (heard []call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		for _, m := range methods {
			if c.method() == m {
				heard = append(heard, c)
			}
		}
	}
	return heard
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/ca.pem" && r.Method == http.MethodGet {
		s.note(call{Path: r.URL.Path, Authorization: r.Header.Get("Authorization"), Certificates: r.TLS.PeerCertificates})
		io.WriteString(w, s.authority.Bundle())
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	c := call{r.URL.Path, r.Header.Get("Authorization"), body, r.TLS.PeerCertificates}
	s.note(c)
	s.mu.Lock()
	var answer any
	if s.answer != nil {
		answer = s.answer(c)
	}
	if answer == nil {
		answer = s.byTheRules(r.Context(), c)
	}
	sent := s.sent
	s.mu.Unlock()
	if sent != nil {
		sent(c)
	}
	send(w, answer)
}

func (s *server) note(c call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
}

func send(w http.ResponseWriter, answer any) {
	switch answer := answer.(type) {
	case cut:
		panic(http.ErrAbortHandler)
	case refused:
		w.Header().Set("Content-Type", "application/problem+json")
		if answer.retryAfter != "" {
			w.Header().Set("Retry-After", answer.retryAfter)
		}
		w.WriteHeader(answer.status)
		problem := map[string]any{"code": answer.code, "title": "t", "status": answer.status, "detail": "d", "requestId": "req_1"}
		if answer.reason != "" {
			problem["reason"] = answer.reason
		}
		json.NewEncoder(w).Encode(problem)
	default:
		w.Header().Set("Content-Type", "application/json")
		if out, ok := answer.(client.NodesJoinOutput); ok && out.Pending != nil {
			w.WriteHeader(http.StatusAccepted)
		}
		json.NewEncoder(w).Encode(answer)
	}
}

var unauthenticated = refused{status: http.StatusUnauthorized, code: client.ErrorCodeUNAUTHENTICATED}

// byTheRules answers with mu held.
func (s *server) byTheRules(ctx context.Context, c call) any {
	var in struct{ CSR string }
	if json.Unmarshal(c.Body, &in) != nil {
		return refused{status: http.StatusBadRequest, code: client.ErrorCodeINVALIDINPUT}
	}
	if c.method() == "nodes/join" {
		return s.join(ctx, strings.TrimPrefix(c.Authorization, "Bearer "), in.CSR)
	}
	who, err := s.authority.VerifyNode(c.Certificates, s.now)
	generation, known := s.serials[who.Serial]
	switch {
	case err != nil, !known, generation < s.nodes[who.NodeID], who.Expired && c.method() != "nodes/renew", s.now.After(who.NotAfter.Add(7 * 24 * time.Hour)):
		return unauthenticated
	}
	switch c.method() {
	case "nodes/confirm":
		s.nodes[who.NodeID] = generation
		return client.NodesConfirmOutput{NodeID: who.NodeID, ServerTime: s.now}
	case "nodes/renew":
		admission, refusal := s.sign(ctx, in.CSR, who.NodeID, generation+1)
		if refusal != nil {
			return *refusal
		}
		return client.NodesRenewOutput{Admitted: admission}
	case "nodes/report":
		return client.NodesReportOutput{NodeID: who.NodeID, ServerTime: s.now, RenewAfter: who.NotAfter.Add(renewLife - certificateLife)}
	}
	return refused{status: http.StatusNotFound, code: client.ErrorCodeNOTFOUND}
}

func (s *server) join(ctx context.Context, bearerText, asks string) any {
	left, known := s.tokens[bearerText]
	if !known {
		return unauthenticated
	}
	node := "nd_" + hexOf(asks)[:26]
	admission, refusal := s.sign(ctx, asks, node, 1)
	switch {
	case refusal != nil:
		return *refusal
	case !admission.Replayed && left == 0:
		return unauthenticated
	case !admission.Replayed:
		s.tokens[bearerText] = left - 1
	}
	return client.NodesJoinOutput{Admitted: &admission}
}

// sign issues a certificate, once for each request.
func (s *server) sign(ctx context.Context, asks, node string, generation int) (client.Admission, *refused) {
	request, err := csr.Parse(asks)
	if err != nil {
		return client.Admission{}, &refused{status: http.StatusBadRequest, code: client.ErrorCodeINVALIDINPUT}
	}
	if a, replayed := s.issued[request.Fingerprint]; replayed {
		if s.nodes[a.NodeID] >= s.serials[a.Serial] {
			return a, &refused{status: http.StatusConflict, code: client.ErrorCodeCONFLICT}
		}
		a.Replayed, a.ServerTime = true, s.now
		return a, nil
	}
	text := ca.NewSerial()
	serial, err := ca.ParseSerial(text)
	if err != nil {
		panic(err)
	}
	from, until := s.now.Add(-5*time.Minute), s.now.Add(certificateLife)
	chain, err := s.authority.SignNode(ctx, ca.Order{NodeID: node, Public: request.PublicKey, Serial: serial, NotBefore: from, NotAfter: until})
	if err != nil {
		panic(err)
	}
	a := client.Admission{
		NodeID: node, TenantID: "acme", PoolID: "lab", Certificate: chain, CaBundle: s.authority.Bundle(), Profile: client.NodeProfileNodeTenant,
		Trust: s.minTrust, Serial: text, NotBefore: from, NotAfter: until, RenewAfter: s.now.Add(renewLife), ServerTime: s.now,
	}
	s.issued[request.Fingerprint], s.serials[text] = a, generation
	return a, nil
}

func hexOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// keyHash is the hash of the public key of a certificate request.
func keyHash(t testing.TB, asks string) string {
	t.Helper()
	request, err := csr.Parse(asks)
	if err != nil {
		t.Fatal(err)
	}
	return request.KeySHA256
}
