// Package csr reads and writes certificate signing requests (PKCS#10), of which only the public key counts.
package csr

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"strings"
)

const (
	maxBytes  = 8 << 10 // of the text
	blockType = "CERTIFICATE REQUEST"
	pemStart  = "-----BEGIN"
	space     = " \t\r\n"
)

// A Request is what a CSR is worth: a public key whose owner signed it. The
// subject, names and extensions that it asks for are not kept, so that nobody
// can copy them into a certificate.
type Request struct {
	// PublicKey is an *ecdsa.PublicKey on P-256 or P-384, or an ed25519.PublicKey.
	PublicKey crypto.PublicKey
	// Fingerprint is the lower-case hex SHA-256 of RawTBSCertificateRequest, by
	// which a repeated CSR is known (NJ-3): another signature over the same
	// request does not change it.
	Fingerprint string
	// KeySHA256 is the lower-case hex SHA-256 of the key's SubjectPublicKeyInfo
	// in DER, as it stands in a certificate: one key has one, however the
	// request spells it.
	KeySHA256 string
}

// Parse reads a CSR of at most 8 KiB: one PEM block, with nothing but white
// space around it, or the standard base64 of the DER, which may have line
// breaks. The key is P-256, P-384 or Ed25519, and has signed the request. An
// error is a sentence for the caller; it names the rule and nothing of the text.
func Parse(text string) (*Request, error) {
	if len(text) > maxBytes {
		return nil, errors.New("the CSR is longer than 8 KiB")
	}
	der, err := decode(strings.Trim(text, space))
	if err != nil {
		return nil, err
	}
	var whole asn1.RawValue
	if rest, err := asn1.Unmarshal(der, &whole); err == nil && len(rest) > 0 {
		return nil, errors.New("the CSR has bytes after the end of its DER")
	}
	request, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, errors.New("the CSR is not a well-formed PKCS#10 request, or its key is of a kind that is not known here")
	}
	if !allowed(request.PublicKey) {
		return nil, errKey
	}
	switch request.SignatureAlgorithm {
	case x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512, x509.PureEd25519:
	default:
		// The standard library would take SHA-1 in a CSR.
		return nil, errors.New("the CSR must be signed with ECDSA over SHA-256, SHA-384 or SHA-512, or with Ed25519")
	}
	if request.CheckSignature() != nil {
		return nil, errors.New("the CSR is not signed by the key that it holds")
	}
	key, err := x509.MarshalPKIXPublicKey(request.PublicKey)
	if err != nil {
		return nil, errKey
	}
	return &Request{PublicKey: request.PublicKey, Fingerprint: digest(request.RawTBSCertificateRequest), KeySHA256: digest(key)}, nil
}

var errKey = errors.New("the key of a CSR must be P-256, P-384 or Ed25519")

// decode returns the DER of a text that has no white space at its ends.
func decode(text string) ([]byte, error) {
	if text == "" {
		return nil, errors.New("the CSR is empty")
	}
	switch strings.Count(text, pemStart) {
	case 0:
		der, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil {
			return nil, errors.New("the CSR is neither PEM nor standard base64")
		}
		return der, nil
	case 1:
	default:
		return nil, errors.New("the CSR holds more than one PEM block")
	}
	// The decoder skips what stands before a block, and blocks that are damaged.
	block, rest := pem.Decode([]byte(text))
	switch {
	case !strings.HasPrefix(text, pemStart), block != nil && len(bytes.Trim(rest, space)) > 0:
		return nil, errors.New("the CSR has text before or after its PEM block")
	case block == nil:
		return nil, errors.New("the PEM block of the CSR is damaged")
	case block.Type != blockType:
		return nil, errors.New("the PEM block of a CSR must be a " + blockType)
	case len(block.Headers) > 0:
		return nil, errors.New("the PEM block of a CSR must have no headers")
	}
	return block.Bytes, nil
}

// New returns a CSR as PEM that asks for nothing but a certificate of the key.
func New(key crypto.Signer) (string, error) {
	if !allowed(key.Public()) {
		return "", errKey
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: blockType, Bytes: der})), nil
}

func allowed(key crypto.PublicKey) bool {
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		return key.Curve == elliptic.P256() || key.Curve == elliptic.P384()
	case ed25519.PublicKey:
		return true
	}
	return false
}

func digest(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}
