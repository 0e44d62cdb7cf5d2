package csr_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"testing"

	"github.com/bettercompute/bettercompute/impl/csr"
)

// TestNJ_5_OneKeyOneHash holds that a key has one KeySHA256 however its
// SubjectPublicKeyInfo is spelled: a parser passes over what stands behind the
// curve, and no key may be certified twice for that.
func TestNJ_5_OneKeyOneHash(t *testing.T) {
	t.Parallel()
	key := ecKey(t, elliptic.P256())
	plain, err := csr.Parse(base64.StdEncoding.EncodeToString(request(t, x509.CertificateRequest{}, key)))
	if err != nil {
		t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	type algorithm struct {
		ID, Curve asn1.ObjectIdentifier
		Behind    asn1.RawValue
	}
	type publicKeyInfo struct {
		Algorithm algorithm
		Point     asn1.BitString
	}
	info, err := asn1.Marshal(struct {
		Version    int
		Subject    struct{}
		Key        publicKeyInfo
		Attributes asn1.RawValue
	}{
		Key: publicKeyInfo{
			algorithm{asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}, asn1.ObjectIdentifier{1, 2, 840, 10045, 3, 1, 7}, asn1.NullRawValue},
			asn1.BitString{Bytes: point, BitLength: 8 * len(point)},
		},
		Attributes: asn1.RawValue{Class: asn1.ClassContextSpecific, IsCompound: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(info)
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	odd := take(t, request(t, x509.CertificateRequest{}, key))
	odd.Info = asn1.RawValue{FullBytes: info}
	odd.Signature = asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)}
	got, err := csr.Parse(base64.StdEncoding.EncodeToString(odd.der(t)))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificateRequest(odd.der(t))
	if err != nil || hash(parsed.RawSubjectPublicKeyInfo) == plain.KeySHA256 {
		t.Fatalf("the key is spelled as ever: %v", err)
	}
	if got.KeySHA256 != plain.KeySHA256 || got.Fingerprint == plain.Fingerprint {
		t.Errorf("%v, and the plain request %v", got, plain)
	}
}
