package csr_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"net"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/csr"
)

func ecKey(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func edKey(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// request returns the DER of a CSR that asks for what the template says.
func request(t testing.TB, template x509.CertificateRequest, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func hash(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// TestNJ_3_NewAndParse holds that a CSR of every kind of key is read back in
// every spelling, with the key and the two hashes that the rule names.
func TestNJ_3_NewAndParse(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]crypto.Signer{"P-256": ecKey(t, elliptic.P256()), "P-384": ecKey(t, elliptic.P384()), "Ed25519": edKey(t)} {
		text, err := csr.New(key)
		if err != nil {
			t.Fatal(name, err)
		}
		decoded, _ := pem.Decode([]byte(text))
		parsed, err := x509.ParseCertificateRequest(decoded.Bytes)
		if err != nil || parsed.Subject.String() != "" || len(parsed.Extensions) != 0 {
			t.Errorf("%s: the daemon's CSR asks for more than a certificate of the key: %q %v %v", name, parsed.Subject, parsed.Extensions, err)
		}
		spki, err := x509.MarshalPKIXPublicKey(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		want := csr.Request{PublicKey: key.Public(), Fingerprint: hash(parsed.RawTBSCertificateRequest), KeySHA256: hash(spki)}
		plain := base64.StdEncoding.EncodeToString(decoded.Bytes)
		for _, spelling := range []string{
			text, " \r\n\t" + text + "\n \n", strings.ReplaceAll(text, "\n", "\r\n"), strings.TrimSpace(text),
			plain, "\n" + plain + "\r\n", plain[:64] + "\n" + plain[64:128] + "\r\n" + plain[128:],
		} {
			got, err := csr.Parse(spelling)
			if err != nil || !reflect.DeepEqual(*got, want) {
				t.Errorf("%s: %v, %v of %q", name, got, err, spelling)
			}
		}
	}
}

// TestNJ_3_OneRequestManySignatures holds that signing a request again does not make it another one.
func TestNJ_3_OneRequestManySignatures(t *testing.T) {
	t.Parallel()
	key := ecKey(t, elliptic.P256())
	first, second := request(t, x509.CertificateRequest{}, key), request(t, x509.CertificateRequest{}, key)
	other := request(t, x509.CertificateRequest{Subject: pkix.Name{CommonName: "other"}}, key)
	parse := func(der []byte) *csr.Request {
		r, err := csr.Parse(base64.StdEncoding.EncodeToString(der))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	a, b, c := parse(first), parse(second), parse(other)
	if string(first) == string(second) || a.Fingerprint != b.Fingerprint {
		t.Error("two signatures make two requests")
	}
	if a.Fingerprint == c.Fingerprint || a.KeySHA256 != c.KeySHA256 {
		t.Error("another request of the same key must have another fingerprint and the same key")
	}
}

// TestCSR_WhatItAsksForIsIgnored holds that nothing but the key comes out of a
// request that wants to be a CA and somebody else.
func TestCSR_WhatItAsksForIsIgnored(t *testing.T) {
	t.Parallel()
	key := ecKey(t, elliptic.P256())
	got, err := csr.Parse(block("CERTIFICATE REQUEST", request(t, greedy(t), key)))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := csr.New(key)
	if err != nil {
		t.Fatal(err)
	}
	modest, err := csr.Parse(plain)
	if err != nil || !reflect.DeepEqual(got.PublicKey, modest.PublicKey) || got.KeySHA256 != modest.KeySHA256 {
		t.Errorf("%v: the greedy request gives %v, the modest one %v", err, got, modest)
	}
	if fields := reflect.TypeFor[csr.Request]().NumField(); fields != 3 {
		t.Errorf("a request keeps %d fields: only the key and its two hashes may be kept", fields)
	}
}

// greedy asks for CA:TRUE, every name and every usage.
func greedy(t testing.TB) x509.CertificateRequest {
	t.Helper()
	spiffe, err := url.Parse("spiffe://bettercompute/node/nd_other")
	if err != nil {
		t.Fatal(err)
	}
	return x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "nd_other", Organization: []string{"system:masters"}},
		DNSNames: []string{"example.com", "*"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		URIs: []*url.URL{spiffe}, EmailAddresses: []string{"root@example.com"},
		ExtraExtensions: []pkix.Extension{
			{Id: []int{2, 5, 29, 19}, Critical: true, Value: []byte{0x30, 3, 1, 1, 0xff}}, // basicConstraints: CA:TRUE
			{Id: []int{2, 5, 29, 15}, Critical: true, Value: []byte{3, 2, 1, 6}},          // keyUsage: certSign, crlSign
			{Id: []int{2, 5, 29, 37}, Value: []byte{0x30, 6, 6, 4, 0x55, 0x1d, 0x25, 0}},  // extKeyUsage: any
		},
	}
}

// TestCSR_NewRefusesOtherKeys holds that the daemon cannot make what the server refuses.
func TestCSR_NewRefusesOtherKeys(t *testing.T) {
	t.Parallel()
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []crypto.Signer{weak, ecKey(t, elliptic.P521()), ecKey(t, elliptic.P224())} {
		if text, err := csr.New(key); err == nil || text != "" {
			t.Errorf("%T: %v", key, err)
		}
	}
}
