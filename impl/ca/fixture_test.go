package ca_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/ca"
)

const node = "nd_0123456789abcdefghjkmnpqrs"

// today is when every test takes place.
var today = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func generate(t testing.TB) []ca.Material {
	t.Helper()
	materials, err := ca.Generate(today)
	if err != nil {
		t.Fatal(err)
	}
	return materials
}

func authority(t testing.TB, materials []ca.Material, external ...ca.External) *ca.Authority {
	t.Helper()
	a, err := ca.New(materials, external...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// order is for a certificate of a day, as a join chooses it.
func order(t testing.TB, platform bool, public crypto.PublicKey) ca.Order {
	t.Helper()
	serial, err := ca.ParseSerial(ca.NewSerial())
	if err != nil {
		t.Fatal(err)
	}
	return ca.Order{
		NodeID: node, Platform: platform, Public: public, Serial: serial,
		NotBefore: today.Add(-5 * time.Minute), NotAfter: today.Add(24 * time.Hour),
	}
}

// signNode returns a chain, leaf first.
func signNode(t testing.TB, a *ca.Authority, o ca.Order) []*x509.Certificate {
	t.Helper()
	text, err := a.SignNode(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return chainOf(t, text)
}

func chainOf(t testing.TB, text string) (chain []*x509.Certificate) {
	t.Helper()
	for rest := []byte(text); len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			t.Fatalf("not a chain: %s", text)
		}
		chain = append(chain, certOf(t, block.Bytes))
	}
	return chain
}

func certOf(t testing.TB, der []byte) *x509.Certificate {
	t.Helper()
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// named returns the only material of a name.
func named(t testing.TB, materials []ca.Material, name string) (m ca.Material) {
	t.Helper()
	found := 0
	for _, one := range materials {
		if one.Name == name {
			m, found = one, found+1
		}
	}
	if found != 1 {
		t.Fatalf("%d materials are called %s", found, name)
	}
	return m
}

func keyOf(t testing.TB, m ca.Material) crypto.Signer {
	t.Helper()
	key, err := x509.ParsePKCS8PrivateKey(m.Key.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	return key.(crypto.Signer)
}

// nodeTemplate is what SignNode certifies; a test breaks one rule of it.
func nodeTemplate(t testing.TB) *x509.Certificate {
	t.Helper()
	return &x509.Certificate{
		SerialNumber: big.NewInt(4711), Subject: pkix.Name{CommonName: node},
		URIs: []*url.URL{link(t, "spiffe://bettercompute/node/"+node)}, NotBefore: today.Add(-5 * time.Minute), NotAfter: today.Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}
}

func link(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// signedBy signs whatever a template says with the key of a material.
func signedBy(t testing.TB, m ca.Material, template *x509.Certificate, public crypto.PublicKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, certOf(t, m.Certificate), public, keyOf(t, m))
	if err != nil {
		t.Fatal(err)
	}
	return certOf(t, der)
}

// caTemplate is an operator's CA certificate; a test breaks one rule of it.
func caTemplate(name string, usage ...x509.ExtKeyUsage) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Acme " + name}, NotBefore: today.AddDate(-1, 0, 0), NotAfter: today.AddDate(9, 0, 0),
		KeyUsage: x509.KeyUsageCertSign, ExtKeyUsage: usage, BasicConstraintsValid: true, IsCA: true,
	}
}

// material certifies a key; by itself if there is no parent.
func material(t testing.TB, name string, template *x509.Certificate, key crypto.Signer, parent *ca.Material) ca.Material {
	t.Helper()
	m := ca.Material{ID: "iss_" + name, Name: name, Key: keyMaterial(t, key), CreatedAt: template.NotBefore}
	issuer, signer := template, key
	if parent != nil {
		issuer, signer = certOf(t, parent.Certificate), keyOf(t, *parent)
	}
	var err error
	if m.Certificate, err = x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), signer); err != nil {
		t.Fatal(err)
	}
	return m
}

func keyMaterial(t testing.TB, key crypto.Signer) ca.PrivateKey {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return ca.NewPrivateKey(der)
}
