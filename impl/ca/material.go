package ca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"
)

// A Material is one certified key of a CA, as the store keeps it.
type Material struct {
	ID          string // iss_…, derived from the certificate
	Name        string // Root, NodePlatform, NodeTenant or Server
	Certificate []byte // DER
	Key         PrivateKey
	CreatedAt   time.Time // UTC, in microseconds; the newest of a name issues
}

// A PrivateKey is that of a material, or none. It prints as [sealed]
// everywhere; only Reveal gives the DER, and only to be sealed.
//
// The DER is behind a pointer because fmt also prints what it may not ask: the
// fields of a struct that holds a PrivateKey unexported.
type PrivateKey struct{ der *[]byte }

// NewPrivateKey returns the key that is this PKCS#8 DER; empty DER is none.
func NewPrivateKey(der []byte) PrivateKey {
	if len(der) == 0 {
		return PrivateKey{}
	}
	kept := slices.Clone(der)
	return PrivateKey{&kept}
}

// Reveal returns the PKCS#8 DER; nil if there is none.
func (k PrivateKey) Reveal() []byte {
	if k.der == nil {
		return nil
	}
	return slices.Clone(*k.der)
}

const hidden = "[sealed]"

// String implements [fmt.Stringer].
func (PrivateKey) String() string { return hidden }

// Format implements [fmt.Formatter], for every verb.
func (PrivateKey) Format(f fmt.State, _ rune) { io.WriteString(f, hidden) }

// LogValue implements [slog.LogValuer].
func (PrivateKey) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText implements [encoding.TextMarshaler].
func (PrivateKey) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// parse reads a material and holds it against the rules of its name. Errors
// are sentences about the certificate or its key, without either.
func parse(m Material) (*entry, error) {
	if !slices.Contains(names, m.Name) {
		return nil, errors.New("no part of a CA has this name")
	}
	cert, err := x509.ParseCertificate(m.Certificate)
	if err != nil {
		return nil, fmt.Errorf("the certificate cannot be read: %w", err)
	}
	if err := checkCA(m.Name, cert); err != nil {
		return nil, err
	}
	e := &entry{Material: m, cert: cert, pool: x509.NewCertPool()}
	e.pool.AddCert(cert)
	if m.Key.der == nil {
		return e, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(*m.Key.der)
	if err != nil {
		return nil, errors.New("the key is not one in PKCS#8") // the cause could tell of the key
	}
	signer, ok := key.(crypto.Signer)
	if !ok || !belongs(signer, cert) {
		return nil, errors.New("the key does not belong to the certificate")
	}
	e.key = signer
	return e, nil
}

func belongs(key crypto.Signer, cert *x509.Certificate) bool {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(cert.PublicKey)
}

// checkCA holds a certificate against what the root and the issuers must be.
func checkCA(name string, cert *x509.Certificate) error {
	if !cert.BasicConstraintsValid || !cert.IsCA {
		return errors.New("the certificate is not a CA's")
	}
	if cert.KeyUsage&x509.KeyUsageCertSign == 0 {
		return errors.New("the certificate must have the key usage certSign")
	}
	if !strong(cert.PublicKey) {
		return errors.New("the key must be P-256, P-384, P-521, Ed25519, or RSA of at least 2048 bits")
	}
	usage, issuer := usages[name]
	if !issuer {
		if cert.MaxPathLen == 0 { // -1 if it says nothing
			return errors.New("the root's path length of 0 allows no issuer below it")
		}
		return nil
	}
	if len(cert.UnknownExtKeyUsage) > 0 || !slices.Equal(cert.ExtKeyUsage, []x509.ExtKeyUsage{usage}) {
		return fmt.Errorf("the certificate must have the extended key usage %s, and no other", usageNames[usage])
	}
	return nil
}

var usageNames = map[x509.ExtKeyUsage]string{x509.ExtKeyUsageClientAuth: "clientAuth", x509.ExtKeyUsageServerAuth: "serverAuth"}

func strong(key crypto.PublicKey) bool {
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		return key.Curve != elliptic.P224()
	case *rsa.PublicKey:
		return key.N.BitLen() >= 2048
	case ed25519.PublicKey:
		return true
	}
	return false
}
