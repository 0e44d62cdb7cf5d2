package ca

import (
	"bytes"
	"crypto/x509"
	"errors"
	"slices"
	"time"
)

// An Identity is what a node's certificate says, once it was verified. Whether
// the node may still use it (bans, reclaims) is in its row, not here.
type Identity struct {
	NodeID   string
	Serial   string // as FormatSerial writes it
	Platform bool   // signed by NodePlatform
	NotAfter time.Time
	// Expired says that the certificate has ended, and that nothing else is
	// wrong with it. Only a renewal may accept one, by its own rules.
	Expired bool
}

// ErrUnknownIssuer says that no issuer here has the name and key that a
// certificate says it was signed with: it is foreign, or the issuers were
// rotated and this Authority is the former one.
var ErrUnknownIssuer = errors.New("ca: the certificate's issuer is not one of this CA's")

// Each is for the log and the audit: there are few, and none has a part of the certificate.
var (
	errNone      = errors.New("ca: no client certificate was presented")
	errForm      = errors.New("ca: the certificate is not of a node's form: a client, with digitalSignature, that is no CA")
	errName      = errors.New("ca: the certificate must have a node's id as its name, its SPIFFE id, and no other name")
	errNotYet    = errors.New("ca: the certificate is not yet valid")
	errSignature = errors.New("ca: the certificate is not signed by the issuer that it names")
	errIssuer    = errors.New("ca: the issuer of the certificate, or its root, is not valid at this time")
)

// VerifyNode says which node presents a certificate over TLS, leaf first. The
// rest of what it presents counts for nothing: our own issuers decide. TLS has
// shown that the peer holds the key.
//
// A certificate that has ended is judged as of its last second, and flagged;
// issuer and root must be valid now, too.
func (a *Authority) VerifyNode(certs []*x509.Certificate, now time.Time) (Identity, error) {
	if len(certs) == 0 {
		return Identity{}, errNone
	}
	leaf := certs[0]
	if err := checkForm(leaf); err != nil {
		return Identity{}, err
	}
	if now.Before(leaf.NotBefore) {
		return Identity{}, errNotYet
	}
	err := ErrUnknownIssuer
	for _, issuer := range a.nodes {
		if !issuer.named(leaf) {
			continue
		}
		if err = issuer.verify(leaf, now); err == nil {
			return Identity{
				NodeID: leaf.Subject.CommonName, Serial: FormatSerial(leaf.SerialNumber), Platform: issuer.Name == NodePlatform,
				NotAfter: leaf.NotAfter, Expired: now.After(leaf.NotAfter),
			}, nil
		}
	}
	return Identity{}, err
}

// checkForm holds a leaf against what SignNode makes, without any signature.
func checkForm(leaf *x509.Certificate) error {
	if leaf.IsCA || leaf.KeyUsage != leafUsage || len(leaf.UnknownExtKeyUsage) > 0 ||
		!slices.Equal(leaf.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}) {
		return errForm
	}
	id := leaf.Subject.CommonName
	if !isNodeID(id) || len(leaf.URIs) != 1 || leaf.URIs[0].String() != spiffeID(id).String() ||
		len(leaf.DNSNames)+len(leaf.IPAddresses)+len(leaf.EmailAddresses) > 0 {
		return errName
	}
	return nil
}

// named reports whether a leaf says that this issuer signed it.
func (e *entry) named(leaf *x509.Certificate) bool {
	return bytes.Equal(leaf.RawIssuer, e.cert.RawSubject) &&
		(len(leaf.AuthorityKeyId) == 0 || len(e.cert.SubjectKeyId) == 0 || bytes.Equal(leaf.AuthorityKeyId, e.cert.SubjectKeyId))
}

// verify holds that this issuer itself signed a leaf. That a root signed the
// issuer was shown when it was read; so one signature is checked here.
func (e *entry) verify(leaf *x509.Certificate, now time.Time) error {
	if !e.valid(now) || !slices.ContainsFunc(e.anchors, func(root *entry) bool { return root.valid(now) }) {
		return errIssuer
	}
	at := now
	if now.After(leaf.NotAfter) {
		at = leaf.NotAfter
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: e.pool, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{usages[e.Name]}})
	if err != nil {
		return errSignature
	}
	return nil
}

func (e *entry) valid(now time.Time) bool {
	return !now.Before(e.cert.NotBefore) && !now.After(e.cert.NotAfter)
}
