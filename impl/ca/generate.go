package ca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"time"

	"github.com/bettercompute/bettercompute/impl/ids"
)

const (
	rootYears   = 20
	issuerYears = 5
	// backdate is how long before its making a CA certificate is valid: longer
	// than the clocks of replicas differ.
	backdate = time.Hour
)

// Generate makes a CA: a root that lasts 20 years and its three issuers, of 5
// years, all P-256. The root is first.
func Generate(now time.Time) ([]Material, error) {
	root, err := certify(Root, now, nil)
	if err != nil {
		return nil, err
	}
	signer, err := parse(root)
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	issuers, err := makeIssuers(signer, now)
	if err != nil {
		return nil, err
	}
	return append([]Material{root}, issuers...), nil
}

// Rotate makes three new issuers under the newest root that has its key, and
// returns these alone. They end no later than the root. The current ones must
// stay among the materials until what they signed has ended.
func Rotate(current []Material, now time.Time) ([]Material, error) {
	var root *entry
	for _, m := range current {
		// A clock that is behind must not make them older than what they replace.
		if !now.After(m.CreatedAt) {
			now = m.CreatedAt.Add(time.Microsecond)
		}
		if m.Name != Root || m.Key.der == nil {
			continue
		}
		e, err := parse(m)
		if err != nil {
			return nil, fmt.Errorf("ca: %s %s: %w", m.Name, m.ID, err)
		}
		if root == nil || newestFirst(e, root) < 0 {
			root = e
		}
	}
	if root == nil {
		return nil, errors.New("ca: the root's key is not here; whoever holds it signs the issuers")
	}
	if now.After(root.cert.NotAfter) {
		return nil, errors.New("ca: the root has ended; make another CA")
	}
	return makeIssuers(root, now)
}

func makeIssuers(root *entry, now time.Time) ([]Material, error) {
	var made []Material
	for _, name := range names[1:] {
		m, err := certify(name, now, root)
		if err != nil {
			return nil, err
		}
		made = append(made, m)
	}
	return made, nil
}

// certify makes a key and its certificate, which the root signs; the root's own if there is none yet.
func certify(name string, now time.Time, root *entry) (Material, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Material{}, fmt.Errorf("ca: %w", err)
	}
	serial, err := ParseSerial(NewSerial())
	if err != nil {
		return Material{}, err
	}
	now = now.UTC().Truncate(time.Microsecond) // what the store keeps
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "Better Compute " + name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.AddDate(rootYears, 0, 0),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLen:            1,
	}
	parent, signer := template, crypto.Signer(key)
	if root != nil {
		template.ExtKeyUsage = []x509.ExtKeyUsage{usages[name]}
		template.MaxPathLen, template.MaxPathLenZero = 0, true
		if template.NotAfter = now.AddDate(issuerYears, 0, 0); template.NotAfter.After(root.cert.NotAfter) {
			template.NotAfter = root.cert.NotAfter
		}
		parent, signer = root.cert, root.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return Material{}, fmt.Errorf("ca: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Material{}, fmt.Errorf("ca: %w", err)
	}
	return Material{idOf(der), name, der, NewPrivateKey(secret), now}, nil
}

// idOf derives the id of a material, so that files give the same one at every start.
func idOf(der []byte) string { return ids.Derive("iss", string(der)) }
