package ca_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/csr"
)

// TestNJ_6_NodeCertificate holds every field of a node's certificate, for both
// profiles, and that any client which trusts the bundle verifies it.
func TestNJ_6_NodeCertificate(t *testing.T) {
	t.Parallel()
	materials := generate(t)
	a := authority(t, materials)
	for platform, name := range map[bool]string{true: ca.NodePlatform, false: ca.NodeTenant} {
		o := order(t, platform, newKey(t).Public())
		chain := signNode(t, a, o)
		if len(chain) != 2 || !bytes.Equal(chain[1].Raw, named(t, materials, name).Certificate) {
			t.Fatalf("%s: a chain of %d", name, len(chain))
		}
		leaf := chain[0]
		if leaf.Subject.String() != "CN="+node || len(leaf.URIs) != 1 || leaf.URIs[0].String() != "spiffe://bettercompute/node/"+node ||
			len(leaf.DNSNames)+len(leaf.IPAddresses)+len(leaf.EmailAddresses) > 0 {
			t.Errorf("%s: names %s %v %v %v %v", name, leaf.Subject, leaf.URIs, leaf.DNSNames, leaf.IPAddresses, leaf.EmailAddresses)
		}
		if leaf.IsCA || !leaf.BasicConstraintsValid || leaf.KeyUsage != x509.KeyUsageDigitalSignature || !slices.Equal(leaf.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}) || len(leaf.UnknownExtKeyUsage) > 0 {
			t.Errorf("%s: CA %v, usages %v %v", name, leaf.IsCA, leaf.KeyUsage, leaf.ExtKeyUsage)
		}
		if leaf.SerialNumber.Cmp(o.Serial) != 0 || !leaf.NotBefore.Equal(o.NotBefore) || !leaf.NotAfter.Equal(o.NotAfter) || !bytes.Equal(leaf.AuthorityKeyId, chain[1].SubjectKeyId) {
			t.Errorf("%s: serial %x, from %s to %s, under %x", name, leaf.SerialNumber, leaf.NotBefore, leaf.NotAfter, leaf.AuthorityKeyId)
		}
		roots, between := x509.NewCertPool(), x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(a.Bundle()))
		between.AddCert(chain[1])
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: today, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNJ_3_SignedAgain holds that an order which is repeated gives the same
// serial number, dates and key.
func TestNJ_3_SignedAgain(t *testing.T) {
	t.Parallel()
	a := authority(t, generate(t))
	o := order(t, true, newKey(t).Public())
	o.NotBefore, o.NotAfter = o.NotBefore.Add(123456*time.Microsecond), o.NotAfter.Add(123456*time.Microsecond)
	first, second := signNode(t, a, o)[0], signNode(t, a, o)[0]
	if first.SerialNumber.Cmp(second.SerialNumber) != 0 || !first.NotBefore.Equal(second.NotBefore) || !first.NotAfter.Equal(second.NotAfter) ||
		!bytes.Equal(first.RawTBSCertificate, second.RawTBSCertificate) {
		t.Error("the same order gives two certificates")
	}
	if !first.NotAfter.Equal(o.NotAfter.Truncate(time.Second)) {
		t.Errorf("ends at %s, want the whole second of %s", first.NotAfter, o.NotAfter)
	}
}

// TestNJ_6_EveryKeyOfACSR holds that whatever a CSR may hold is certified.
func TestNJ_6_EveryKeyOfACSR(t *testing.T) {
	t.Parallel()
	a := authority(t, generate(t))
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []crypto.Signer{ed, newKey(t)} {
		text, err := csr.New(key)
		if err != nil {
			t.Fatal(err)
		}
		request, err := csr.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		chain := signNode(t, a, order(t, false, request.PublicKey))
		if id, err := a.VerifyNode(chain, today); err != nil || id.NodeID != node || id.Platform {
			t.Errorf("%T: %+v, %v", key, id, err)
		}
	}
}

// TestNJ_6_OrdersRefused holds what is never signed.
func TestNJ_6_OrdersRefused(t *testing.T) {
	t.Parallel()
	materials := generate(t)
	a := authority(t, materials)
	for name, spoil := range map[string]func(*ca.Order){
		"no id":                        func(o *ca.Order) { o.NodeID = "" },
		"an id with a slash":           func(o *ca.Order) { o.NodeID = "nd_1/nd_2" },
		"an id with a query":           func(o *ca.Order) { o.NodeID = "nd_1?x" },
		"an upper-case id":             func(o *ca.Order) { o.NodeID = "ND_1" },
		"a long id":                    func(o *ca.Order) { o.NodeID = strings.Repeat("n", 65) },
		"no serial number":             func(o *ca.Order) { o.Serial = nil },
		"a serial number of zero":      func(o *ca.Order) { o.Serial = new(big.Int) },
		"a negative serial number":     func(o *ca.Order) { o.Serial = big.NewInt(-1) },
		"a long serial number":         func(o *ca.Order) { o.Serial = new(big.Int).Lsh(big.NewInt(1), 128) },
		"no key":                       func(o *ca.Order) { o.Public = nil },
		"a private key":                func(o *ca.Order) { o.Public = newKey(t) },
		"dates the wrong way":          func(o *ca.Order) { o.NotAfter = o.NotBefore },
		"an end after that of the CA":  func(o *ca.Order) { o.NotAfter = today.AddDate(5, 0, 1) },
		"an end long after the issuer": func(o *ca.Order) { o.NotAfter = today.AddDate(50, 0, 0) },
	} {
		o := order(t, true, newKey(t).Public())
		spoil(&o)
		if text, err := a.SignNode(t.Context(), o); err == nil || text != "" {
			t.Errorf("%s: signed", name)
		}
	}
}

// TestSignServer_OverTLS holds that a client which trusts the bundle alone
// takes the listener's certificate for its names, over real TLS, and that the
// node's own certificate is seen on the other side.
func TestSignServer_OverTLS(t *testing.T) {
	t.Parallel()
	now := time.Now()
	materials, err := ca.Generate(now)
	if err != nil {
		t.Fatal(err)
	}
	a := authority(t, materials)
	key, nodeKey := newKey(t), newKey(t)
	chain, err := a.SignServer(t.Context(), []string{"compute.example.com", "*.example.com", "127.0.0.1", "::1"}, key.Public(), now)
	if err != nil {
		t.Fatal(err)
	}
	o := order(t, true, nodeKey.Public())
	o.NotBefore, o.NotAfter = now.Add(-5*time.Minute), now.Add(time.Hour)
	mine := signNode(t, a, o)

	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: chain, PrivateKey: key}}, ClientAuth: tls.RequestClientCert, SessionTicketsDisabled: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(a.Bundle()))
	for _, host := range []string{"compute.example.com", "other.example.com", "127.0.0.1", "::1"} {
		for _, chained := range []bool{true, false} {
			presented := [][]byte{mine[0].Raw}
			if chained {
				presented = append(presented, mine[1].Raw)
			}
			got, err := greet(t.Context(), listener, &tls.Config{
				RootCAs: roots, ServerName: host, Certificates: []tls.Certificate{{Certificate: presented, PrivateKey: nodeKey}},
			})
			if err != nil {
				t.Fatalf("%s: %v", host, err)
			}
			if id, err := a.VerifyNode(got, now); err != nil || id.NodeID != node || id.Expired {
				t.Errorf("%s, chained %v: %+v, %v", host, chained, id, err)
			}
		}
	}
	if _, err := greet(t.Context(), listener, &tls.Config{RootCAs: roots, ServerName: "example.org"}); err == nil {
		t.Error("the certificate counts for another name")
	}
}

// greet connects once and returns what the client presented.
func greet(ctx context.Context, listener net.Listener, client *tls.Config) ([]*x509.Certificate, error) {
	dialed := make(chan error, 1)
	go func() {
		conn, err := (&tls.Dialer{Config: client}).DialContext(ctx, "tcp", listener.Addr().String())
		if err == nil {
			err = conn.Close()
		}
		dialed <- err
	}()
	conn, err := listener.Accept()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	server := conn.(*tls.Conn)
	shaken := server.HandshakeContext(ctx)
	if err := <-dialed; err != nil {
		return nil, err
	}
	return server.ConnectionState().PeerCertificates, shaken
}

// TestSignServer_Certificate holds its dates, and that it never outlives its issuer.
func TestSignServer_Certificate(t *testing.T) {
	t.Parallel()
	materials := generate(t)
	a := authority(t, materials)
	for at, end := range map[time.Time]time.Time{
		today: today.AddDate(0, 0, 30), today.AddDate(5, 0, -3): today.AddDate(5, 0, 0),
	} {
		chain, err := a.SignServer(t.Context(), []string{"localhost"}, newKey(t).Public(), at)
		if err != nil || len(chain) != 2 || !bytes.Equal(chain[1], named(t, materials, ca.Server).Certificate) {
			t.Fatalf("a chain of %d: %v", len(chain), err)
		}
		leaf := certOf(t, chain[0])
		if !leaf.NotAfter.Equal(end) || !leaf.NotBefore.Equal(at.Add(-5*time.Minute)) || leaf.IsCA || !slices.Equal(leaf.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) {
			t.Errorf("from %s to %s, want %s; %v", leaf.NotBefore, leaf.NotAfter, end, leaf.ExtKeyUsage)
		}
	}
	for _, hosts := range [][]string{nil, {""}, {"a b"}, {"https://example.com"}, {"example.com:443"}, {"fe80::1%eth0"}, {"exämple.com"}, {"localhost", "x\x00"}} {
		if _, err := a.SignServer(t.Context(), hosts, newKey(t).Public(), today); err == nil {
			t.Errorf("signed for %q", hosts)
		}
	}
	if _, err := a.SignServer(t.Context(), []string{strings.Repeat("long.", 20) + "example.com"}, newKey(t).Public(), today); err != nil {
		t.Errorf("a name that is longer than a common name: %v", err)
	}
}
