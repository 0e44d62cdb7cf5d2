package csr_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/csr"
)

// sentences are all that a caller may be told: none has a part of the input.
var sentences = []string{
	"the CSR is longer than 8 KiB",
	"the CSR is empty",
	"the CSR is neither PEM nor standard base64",
	"the CSR holds more than one PEM block",
	"the CSR has text before or after its PEM block",
	"the PEM block of the CSR is damaged",
	"the PEM block of a CSR must be a CERTIFICATE REQUEST",
	"the PEM block of a CSR must have no headers",
	"the CSR has bytes after the end of its DER",
	"the CSR is not a well-formed PKCS#10 request, or its key is of a kind that is not known here",
	"the key of a CSR must be P-256, P-384 or Ed25519",
	"the CSR must be signed with ECDSA over SHA-256, SHA-384 or SHA-512, or with Ed25519",
	"the CSR is not signed by the key that it holds",
}

// rsa1024 is a well-formed and well-signed CSR of an RSA key of 1024 bits; this
// Go makes none. Its key was thrown away.
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

// TestCSR_BadInput holds that each bad CSR is refused by the rule that it breaks.
func TestCSR_BadInput(t *testing.T) {
	t.Parallel()
	good := request(t, x509.CertificateRequest{}, ecKey(t, elliptic.P256()))
	armored, plain := block("CERTIFICATE REQUEST", good), base64.StdEncoding.EncodeToString(good)
	edited := func(old, new string) string { return strings.Replace(armored, old, new, 1) }
	end := "-----END CERTIFICATE REQUEST-----"
	for name, c := range map[string]struct{ text, want string }{
		"empty":                     {"", "is empty"},
		"white space":               {" \n\t\r\n", "is empty"},
		"oversized":                 {armored + strings.Repeat("\n", 8<<10), "longer than 8 KiB"},
		"oversized garbage":         {strings.Repeat("A", 8<<10+1), "longer than 8 KiB"},
		"prose":                     {"please certify me", "neither PEM nor standard base64"},
		"URL base64":                {"-_" + plain, "neither PEM nor standard base64"},
		"base64 without padding":    {"MAA", "neither PEM nor standard base64"},
		"base64 with blanks":        {plain[:64] + " " + plain[64:], "neither PEM nor standard base64"},
		"base64 with a NUL":         {plain + "\x00", "neither PEM nor standard base64"},
		"base64 of a text":          {base64.StdEncoding.EncodeToString([]byte("please certify me")), "PKCS#10"},
		"raw DER":                   {string(good), "neither PEM nor standard base64"},
		"an end without a begin":    {armored[strings.Index(armored, "\n"):], "neither PEM nor standard base64"},
		"two PEM blocks":            {armored + armored, "more than one PEM block"},
		"two PEM blocks, one bad":   {"-----BEGIN CERTIFICATE REQUEST-----\n" + armored, "more than one PEM block"},
		"text before":               {"Certificate Request:\n" + armored, "text before or after"},
		"text after":                {armored + "x", "text before or after"},
		"a certificate's block":     {block("CERTIFICATE", good), "must be a CERTIFICATE REQUEST"},
		"another name of the block": {block("NEW CERTIFICATE REQUEST", good), "must be a CERTIFICATE REQUEST"},
		"a private key's block":     {block("PRIVATE KEY", good), "must be a CERTIFICATE REQUEST"},
		"headers":                   {edited("REQUEST-----\n", "REQUEST-----\nKey: value\n\n"), "no headers"},
		"no end":                    {edited(end, ""), "damaged"},
		"another end":               {edited(end, "-----END CERTIFICATE-----"), "damaged"},
		"bad base64 within":         {edited("\nM", "\n*"), "damaged"},
		"an empty block":            {block("CERTIFICATE REQUEST", nil), "PKCS#10"},
		"trailing bytes, PEM":       {block("CERTIFICATE REQUEST", append(bytes.Clone(good), 0)), "bytes after the end"},
		"trailing bytes, base64":    {base64.StdEncoding.EncodeToString(append(bytes.Clone(good), good...)), "bytes after the end"},
		"cut short":                 {base64.StdEncoding.EncodeToString(good[:len(good)-1]), "PKCS#10"},
		"a certificate":             {block("CERTIFICATE REQUEST", certificate(t)), "PKCS#10"},
		"a public key":              {block("CERTIFICATE REQUEST", publicKey(t)), "PKCS#10"},
		"RSA-1024":                  {rsa1024, "P-256, P-384 or Ed25519"},
		"P-224":                     {block("CERTIFICATE REQUEST", request(t, x509.CertificateRequest{}, ecKey(t, elliptic.P224()))), "P-256, P-384 or Ed25519"},
		"P-521":                     {block("CERTIFICATE REQUEST", request(t, x509.CertificateRequest{}, ecKey(t, elliptic.P521()))), "P-256, P-384 or Ed25519"},
		"another key's signature":   {block("CERTIFICATE REQUEST", swapped(t)), "not signed by the key"},
		"SHA-1":                     {block("CERTIFICATE REQUEST", signedWith(t, asn1.ObjectIdentifier{1, 2, 840, 10045, 4, 1})), "must be signed with"},
	} {
		got, err := csr.Parse(c.text)
		if err == nil || got != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		} else if !told(err) {
			t.Errorf("%s: a sentence that is on no list: %v", name, err)
		}
	}
}

// TestCSR_EveryBit holds that no bit of a CSR can change and still be signed.
func TestCSR_EveryBit(t *testing.T) {
	t.Parallel()
	der := request(t, x509.CertificateRequest{}, edKey(t))
	for i := range der {
		for bit := range 8 {
			der[i] ^= 1 << bit
			if r, err := csr.Parse(base64.StdEncoding.EncodeToString(der)); err == nil {
				t.Errorf("bit %d of byte %d changed, and it is %v", bit, i, r)
			}
			der[i] ^= 1 << bit
		}
	}
}

func told(err error) bool {
	for _, sentence := range sentences {
		if err.Error() == sentence {
			return true
		}
	}
	return false
}

func certificate(t testing.TB) []byte {
	t.Helper()
	key := ecKey(t, elliptic.P256())
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func publicKey(t testing.TB) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(ecKey(t, elliptic.P256()).Public())
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// parts are those of a PKCS#10 request.
type parts struct {
	Info, Algorithm asn1.RawValue
	Signature       asn1.BitString
}

func take(t testing.TB, der []byte) (p parts) {
	t.Helper()
	if _, err := asn1.Unmarshal(der, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p parts) der(t testing.TB) []byte {
	t.Helper()
	der, err := asn1.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// swapped has the signature of another key over another request.
func swapped(t testing.TB) []byte {
	t.Helper()
	mine := take(t, request(t, x509.CertificateRequest{}, ecKey(t, elliptic.P256())))
	mine.Signature = take(t, request(t, x509.CertificateRequest{}, ecKey(t, elliptic.P256()))).Signature
	return mine.der(t)
}

// signedWith has a signature of the right key that says another algorithm.
func signedWith(t testing.TB, algorithm asn1.ObjectIdentifier) []byte {
	t.Helper()
	key := ecKey(t, elliptic.P256())
	p := take(t, request(t, x509.CertificateRequest{}, key))
	sum := sha1.Sum(p.Info.FullBytes)
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	p.Signature = asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)}
	named, err := asn1.Marshal(struct{ Algorithm asn1.ObjectIdentifier }{algorithm})
	if err != nil {
		t.Fatal(err)
	}
	p.Algorithm = asn1.RawValue{FullBytes: named}
	return p.der(t)
}

// FuzzParse holds that what is read is a signed request of an allowed key, that
// it is read the same from its other spelling, and that an error repeats nothing.
func FuzzParse(f *testing.F) {
	for _, der := range [][]byte{
		request(f, x509.CertificateRequest{}, ecKey(f, elliptic.P256())), request(f, greedy(f), ecKey(f, elliptic.P384())),
		request(f, greedy(f), edKey(f)), swapped(f), certificate(f),
	} {
		f.Add(block("CERTIFICATE REQUEST", der))
		f.Add(base64.StdEncoding.EncodeToString(der))
	}
	f.Add(rsa1024)
	f.Add("-----BEGIN CERTIFICATE REQUEST-----\nKey: value\n\nMAA=\n-----END CERTIFICATE REQUEST-----")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := csr.Parse(text)
		if err != nil {
			if got != nil || !told(err) {
				t.Fatalf("%v: %v", got, err)
			}
			return
		}
		var der []byte
		if decoded, _ := pem.Decode([]byte(text)); decoded != nil {
			der = decoded.Bytes
		} else if der, err = base64.StdEncoding.DecodeString(strings.Trim(text, " \t\r\n")); err != nil {
			t.Fatal(err)
		}
		parsed, err := x509.ParseCertificateRequest(der)
		if err != nil || parsed.CheckSignature() != nil || len(text) > 8192 {
			t.Fatalf("read as %v: %v", got, err)
		}
		spki, err := x509.MarshalPKIXPublicKey(got.PublicKey)
		if err != nil || got.KeySHA256 != hash(spki) || got.Fingerprint != hash(parsed.RawTBSCertificateRequest) {
			t.Fatalf("%v: %v", got, err)
		}
		for _, spelling := range []string{base64.StdEncoding.EncodeToString(der), block("CERTIFICATE REQUEST", der)} {
			if again, err := csr.Parse(spelling); err != nil || again.Fingerprint != got.Fingerprint || again.KeySHA256 != got.KeySHA256 {
				t.Fatalf("read differently in another spelling: %v, %v", again, err)
			}
		}
	})
}
