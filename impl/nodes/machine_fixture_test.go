package nodes_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"sync"
	"testing"

	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/csr"
	"github.com/bettercompute/bettercompute/impl/ids"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// unique returns a text of capitals and digits that nothing else has.
func unique(prefix string) string { return prefix + rand.Text()[:12] }

// uniqueID is the id of a join token that nothing else has.
func uniqueID() string { return ids.Derive("jt", rand.Text()) }

// machine is a machine at the door: its key, its request and what it says of itself.
type machine struct {
	key    crypto.Signer
	csr    string
	claims wire.NodesJoinInputClaims
}

type claims = wire.NodesJoinInputClaims

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

// newMachine has a fresh key, and a serial number of its own unless it says so.
func newMachine(t testing.TB, c *claims) machine {
	t.Helper()
	if c == nil {
		c = &claims{Serial: strictjson.Some(unique("CZ2D"))}
	}
	m := machine{key: newKey(t), claims: *c}
	var err error
	m.csr, err = csr.New(m.key)
	must(t, err)
	return m
}

// called is a machine of a serial number.
func called(t testing.TB, serial string) machine {
	t.Helper()
	return newMachine(t, &claims{Serial: strictjson.Some(serial)})
}

// reinstalled is the same hardware with a new key.
func (m machine) reinstalled(t testing.TB) machine {
	t.Helper()
	return newMachine(t, &m.claims)
}

// asking is another request of the machine's key.
func (m machine) asking(t testing.TB, template x509.CertificateRequest) machine {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, m.key)
	must(t, err)
	m.csr = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	return m
}

func (m machine) parsed(t testing.TB) *csr.Request {
	t.Helper()
	parsed, err := csr.Parse(m.csr)
	must(t, err)
	return parsed
}

// together runs fn n times, all of them at once from a barrier, and returns when all have ended.
func together(n int, fn func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-start
			fn(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}

// template asks for a certificate of a name, which nobody gives: it makes one
// request of a key differ from another.
func template(name string) x509.CertificateRequest {
	return x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}
}

// emptyTemplate is what the daemon asks for.
var emptyTemplate x509.CertificateRequest
