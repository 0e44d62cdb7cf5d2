package nodes_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
)

// rsa1024 is a well-formed and well-signed request of an RSA key of 1024 bits,
// which Go does not make any more. Its key was thrown away.
const rsa1024 = `-----BEGIN CERTIFICATE REQUEST-----
MIIBPzCBqQIBADAAMIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQD74fQ2Gp74
Q1FsM/DUfpY33KCGklMFdwvxNK/vnn8iYXohg68A81kPfXxB+QmRFGeLZqSguCMZ
M3gK9JwC9asBAAJOveacKUZ9xyqqbOK3x+BVI36isS+LQSzrGNDjbC9rc49dBHTI
zzfzlLPu8IuAzd7L43ZNqSY/v8Q9UAHhSQIDAQABoAAwDQYJKoZIhvcNAQELBQAD
gYEA+2vWB9dKIrY+19rptKqovIXZbhrZ99tQ5hVLXKRQrQwtradkGTPrDMdhWaGv
0J33pLZMbeKDcslzKS/gaqM4F/+N1PDfXoBYNlvgcdB3HgCBaKUo/tNDeriY6+Os
hwuODwAzyG2J98IsCX4g9H9ERhiQbVeHKAAb2bBNmJ2dUxs=
-----END CERTIFICATE REQUEST-----
`

// badCSRs are texts that are no certificate request which can be signed.
func badCSRs(t testing.TB) map[string]string {
	t.Helper()
	key := newKey(t)
	good := requestOf(t, key)
	armored, plain := armor("CERTIFICATE REQUEST", good), base64.StdEncoding.EncodeToString(good)
	p521, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	must(t, err)
	rsa2048, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	self := &x509.Certificate{SerialNumber: big.NewInt(1)}
	certificate, err := x509.CreateCertificate(rand.Reader, self, self, key.Public(), key)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return map[string]string{
		"empty":                   "",
		"blank":                   " \r\n\t",
		"prose":                   "please certify me",
		"malformed DER":           base64.StdEncoding.EncodeToString([]byte("please certify me")),
		"cut short":               base64.StdEncoding.EncodeToString(good[:len(good)-1]),
		"oversized":               armored + strings.Repeat("\n", 8192),
		"two PEM blocks":          armored + armored,
		"text behind":             armored + "x",
		"a damaged block":         strings.Replace(armored, "\nM", "\n*", 1),
		"trailing bytes":          armor("CERTIFICATE REQUEST", append(bytes.Clone(good), 0)),
		"trailing bytes, base64":  base64.StdEncoding.EncodeToString(append(bytes.Clone(good), good...)),
		"URL base64":              "-_" + plain,
		"a certificate":           armor("CERTIFICATE", certificate),
		"a certificate, disguise": armor("CERTIFICATE REQUEST", certificate),
		"a private key":           armor("PRIVATE KEY", private),
		"RSA-1024":                rsa1024,
		"RSA-2048":                armor("CERTIFICATE REQUEST", requestOf(t, rsa2048)),
		"P-521":                   armor("CERTIFICATE REQUEST", requestOf(t, p521)),
		"another's signature":     armor("CERTIFICATE REQUEST", signedBy(t, good, requestOf(t, newKey(t)))),
	}
}

func requestOf(t testing.TB, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	must(t, err)
	return der
}

func armor(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// signedBy is a request with the signature of another one.
func signedBy(t testing.TB, der, other []byte) []byte {
	t.Helper()
	type request struct {
		Info, Algorithm asn1.RawValue
		Signature       asn1.BitString
	}
	var a, b request
	_, err := asn1.Unmarshal(der, &a)
	must(t, err)
	_, err = asn1.Unmarshal(other, &b)
	must(t, err)
	a.Signature = b.Signature
	out, err := asn1.Marshal(a)
	must(t, err)
	return out
}
