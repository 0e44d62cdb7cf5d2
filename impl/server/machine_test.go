package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/impl/csr"
	"github.com/bettercompute/bettercompute/impl/seal"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// clockAt stops the clock of a server before it is made, so that its CA is of that time.
func clockAt(at time.Time) func(*setup) { return func(s *setup) { s.clock.Set(at) } }

// eachTLS is each with servers that speak TLS, at noon.
func eachTLS(t *testing.T, fn func(t *testing.T, s *running), changes ...func(*setup)) {
	t.Helper()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		t.Helper()
		fn(t, startTLS(t, kind, append([]func(*setup){clockAt(noon)}, changes...)...))
	})
}

// A machine wants to join: it has a key, the request for its certificate, and
// says something of itself.
type machine struct {
	key    *ecdsa.PrivateKey
	csr    string
	claims object
}

var machines atomic.Int64

// newMachine has a fresh key; without claims it has a serial number of its own.
func newMachine(t testing.TB, claims object) machine {
	t.Helper()
	if claims == nil {
		claims = object{"serial": fmt.Sprintf("CZ2D%06d", machines.Add(1))}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request, err := csr.New(key)
	if err != nil {
		t.Fatal(err)
	}
	return machine{key, request, claims}
}

// nobody is a machine that nothing tells: its join waits for an operator.
func nobody(t testing.TB) machine {
	t.Helper()
	return newMachine(t, object{"serial": "To Be Filled By O.E.M.", "hostname": "white-box"})
}

// reinstalled is the same machine with another key.
func (m machine) reinstalled(t testing.TB) machine {
	t.Helper()
	return newMachine(t, m.claims)
}

// body is that of nodes.join.
func (m machine) body() object { return object{"csr": m.csr, "claims": m.claims} }

// join calls nodes.join with a token.
func (s *running) join(t testing.TB, token string, m machine) answer {
	t.Helper()
	return s.call(t, token, "nodes.join", m.body())
}

// deferred is the answer to a join that waits.
func (s *running) deferred(t testing.TB, token string, m machine) api.Deferral {
	t.Helper()
	a := s.join(t, token, m)
	if a.status != http.StatusAccepted {
		t.Fatalf("status %d, want 202: %s", a.status, a.body)
	}
	a.status = http.StatusOK
	out := as[api.NodesJoinOutput](t, a)
	if out.Pending == nil || out.Admitted != nil {
		t.Fatalf("the join does not wait: %s", a.body)
	}
	return *out.Pending
}

// A node is a machine that has joined, and calls with its certificate.
type node struct {
	machine
	api.Admission
	client *http.Client
	s      *running
}

// admitted is the node that a machine becomes.
func (s *running) admitted(t testing.TB, token string, m machine) *node {
	t.Helper()
	out := as[api.NodesJoinOutput](t, s.join(t, token, m))
	if out.Admitted == nil || out.Pending != nil {
		t.Fatalf("the machine is not admitted: %+v", out)
	}
	return &node{m, *out.Admitted, s.showing(t, pairOf(t, out.Admitted.Certificate, m.key)), s}
}

// call calls a method with the certificate of the node, and no bearer.
func (n *node) call(t testing.TB, method string, body any) answer {
	t.Helper()
	return n.s.by(t, n.client, n.s.request(t, "", method, body))
}

// confirmed is a node that has stored its certificate.
func (s *running) confirmed(t testing.TB, token string, m machine) *node {
	t.Helper()
	n := s.admitted(t, token, m)
	as[api.NodesConfirmOutput](t, n.call(t, "nodes.confirm", object{}))
	return n
}

// renewed is the node with its next certificate, of another key.
func (n *node) renewed(t testing.TB) *node {
	t.Helper()
	next := newMachine(t, n.claims)
	out := as[api.NodesRenewOutput](t, n.call(t, "nodes.renew", object{"csr": next.csr}))
	return &node{next, out.Admitted, n.s.showing(t, pairOf(t, out.Admitted.Certificate, next.key)), n.s}
}

// id is the input of a method of operators about this node.
func (n *node) id() object {
	return object{"tenantId": n.TenantID, "poolId": n.PoolID, "nodeId": n.NodeID}
}

// by is do with another client.
func (s *running) by(t testing.TB, client *http.Client, request *http.Request) answer {
	t.Helper()
	a, err := s.sendBy(client, request)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// showing is a client that trusts the server and shows a certificate.
func (s *running) showing(t testing.TB, pair tls.Certificate) *http.Client {
	t.Helper()
	return clientOf(t, s.trustingWith(t, pair))
}

func (s *running) trustingWith(t testing.TB, pair tls.Certificate) *tls.Config {
	t.Helper()
	config := s.trusting(t)
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	return config
}

func clientOf(t testing.TB, config *tls.Config) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: config, DisableCompression: true, MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// pairOf is a chain in PEM with its key.
func pairOf(t testing.TB, chain string, key *ecdsa.PrivateKey) tls.Certificate {
	t.Helper()
	pair := tls.Certificate{PrivateKey: key}
	for _, certificate := range certificatesOf(t, chain) {
		pair.Certificate = append(pair.Certificate, certificate.Raw)
	}
	return pair
}

func certificatesOf(t testing.TB, chain string) (list []*x509.Certificate) {
	t.Helper()
	for rest := []byte(chain); len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			t.Fatalf("no certificates: %q", chain)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, certificate)
	}
	return list
}

// caKeys are the private keys of the server's CA by the name of what they are
// for, in PKCS#8.
func (s *running) caKeys(t testing.TB) (map[string][]byte, error) {
	t.Helper()
	rows, err := s.db.CAKeys(t.Context())
	if err != nil {
		return nil, err
	}
	keyset, err := s.db.SealKeyset(t.Context())
	if err != nil {
		return nil, err
	}
	box, err := seal.Open(sealKeys(t), keyset.Wrapped)
	if err != nil {
		return nil, err
	}
	keys := map[string][]byte{}
	for _, row := range rows {
		if keys[row.Name], err = box.Open(row.SealedKey, "ca_keys/"+row.ID); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// bearerOf mints a token of acme/lab, and returns it with its id.
func (s *running) bearerOf(t testing.TB, key string, more object) (token, id string) {
	t.Helper()
	made := s.mint(t, key, lab().with(object{"maxUses": 100}).with(more))
	return *made.Token, made.JoinToken.ID
}
