// Package ca certifies nodes and the listener, and says whose certificate a caller presents (NJ-6).
//
// One root signs three issuers and nothing else. Which issuer signed a node's
// certificate says how far the node is trusted, so the issuers never share a key.
package ca

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The names of what a CA is made of.
const (
	Root         = "root"          // trusted by nodes; signs the issuers
	NodePlatform = "node-platform" // certifies nodes of platform trust
	NodeTenant   = "node-tenant"   // certifies all other nodes
	Server       = "server"        // certifies the listener
)

// usages are what each issuer certifies for, and nothing else.
var usages = map[string]x509.ExtKeyUsage{
	NodePlatform: x509.ExtKeyUsageClientAuth,
	NodeTenant:   x509.ExtKeyUsageClientAuth,
	Server:       x509.ExtKeyUsageServerAuth,
}

var names = []string{Root, NodePlatform, NodeTenant, Server}

// An Authority signs and verifies with one set of materials. It is immutable
// and safe for concurrent use; when issuers change, another one takes its place.
type Authority struct {
	roots   []*entry            // the newest first
	issuers map[string][]*entry // by name, the newest first
	nodes   []*entry            // the issuers of both node profiles
	signers map[string]Signer
	outside map[string]bool // names whose signer is External
	bundle  string
}

// An External is the signer of another CA, in place of an issuer's own key. The
// certificates of its issuer must be among the materials, without their keys.
type External struct {
	Name   string // NodePlatform, NodeTenant or Server
	Signer Signer
}

// New returns the authority of some materials. Of each name the newest one that
// has its key issues; the others are kept to verify what they signed. There
// must be a root, and an issuer of each node profile that can sign.
func New(materials []Material, external ...External) (*Authority, error) {
	a := &Authority{issuers: map[string][]*entry{}, signers: map[string]Signer{}, outside: map[string]bool{}}
	for _, m := range materials {
		e, err := parse(m)
		if err != nil {
			return nil, fmt.Errorf("ca: %s %s: %w", m.Name, m.ID, err)
		}
		if m.Name == Root {
			a.roots = append(a.roots, e)
		} else {
			a.issuers[m.Name] = append(a.issuers[m.Name], e)
		}
	}
	if len(a.roots) == 0 {
		return nil, errors.New("ca: there is no root")
	}
	slices.SortStableFunc(a.roots, newestFirst)
	for _, root := range a.roots {
		a.bundle += toPEM(root.cert.Raw)
	}
	for _, x := range external {
		if _, issuer := usages[x.Name]; !issuer {
			return nil, fmt.Errorf("ca: %q is not the name of an issuer", x.Name)
		}
		a.signers[x.Name], a.outside[x.Name] = x.Signer, true
	}
	keyOf := map[string]string{} // the name by the public key
	for _, name := range names[1:] {
		slices.SortStableFunc(a.issuers[name], newestFirst)
		for _, e := range a.issuers[name] {
			if err := e.reach(a.roots); err != nil {
				return nil, fmt.Errorf("ca: %s %s: %w", name, e.ID, err)
			}
			key := string(e.cert.RawSubjectPublicKeyInfo)
			if other, taken := keyOf[key]; taken && other != name {
				return nil, fmt.Errorf("ca: %s %s: it has the key of %s; which issuer signed says what a certificate is worth", name, e.ID, other)
			}
			keyOf[key] = name
			if e.issues = e.key != nil && a.signers[name] == nil; e.issues {
				a.signers[name] = &local{e.cert, e.key}
			}
		}
		if name != Server && (a.signers[name] == nil || len(a.issuers[name]) == 0) {
			return nil, fmt.Errorf("ca: no issuer %s is there that can sign", name)
		}
	}
	if i := slices.IndexFunc(a.roots, func(root *entry) bool { return root.key != nil }); i >= 0 {
		a.roots[i].issues = true
	}
	a.nodes = slices.Concat(a.issuers[NodePlatform], a.issuers[NodeTenant])
	return a, nil
}

// Bundle returns the roots in PEM, the newest first: what a node trusts.
func (a *Authority) Bundle() string { return a.bundle }

// RootSHA256 returns the lower-case hex SHA-256 of each root's DER, in the
// order of the bundle: what a machine may pin before it joins.
func (a *Authority) RootSHA256() []string {
	var sums []string
	for _, root := range a.roots {
		sums = append(sums, root.describe().SHA256)
	}
	return sums
}

// A Description is what may be shown of a material.
type Description struct {
	Name, ID            string
	Serial              string // as [FormatSerial] writes it
	NotBefore, NotAfter time.Time
	SHA256              string // lower-case hex, of the DER
	Issues              bool   // with its own key, from now on; otherwise it only verifies
}

// Describe lists the materials, the root first, and of each name the newest first.
func (a *Authority) Describe() []Description {
	var list []Description
	for _, root := range a.roots {
		list = append(list, root.describe())
	}
	for _, name := range names[1:] {
		for _, e := range a.issuers[name] {
			list = append(list, e.describe())
		}
	}
	return list
}

// An entry is a material that was read once, for every use.
type entry struct {
	Material
	cert    *x509.Certificate
	key     crypto.Signer  // nil: it only verifies
	pool    *x509.CertPool // of itself alone
	anchors []*entry       // of an issuer: the roots that signed it
	issues  bool
}

func newestFirst(a, b *entry) int {
	if order := b.CreatedAt.Compare(a.CreatedAt); order != 0 {
		return order
	}
	return strings.Compare(a.ID, b.ID)
}

func (e *entry) describe() Description {
	sum := sha256.Sum256(e.cert.Raw)
	return Description{e.Name, e.ID, FormatSerial(e.cert.SerialNumber), e.cert.NotBefore, e.cert.NotAfter, hex.EncodeToString(sum[:]), e.issues}
}

// reach finds the roots that signed an issuer.
func (e *entry) reach(roots []*entry) error {
	for _, root := range roots {
		if !bytes.Equal(root.cert.RawSubject, e.cert.RawIssuer) {
			continue
		}
		at := e.cert.NotBefore // dates are judged at each use
		if root.cert.NotBefore.After(at) {
			at = root.cert.NotBefore
		}
		_, err := e.cert.Verify(x509.VerifyOptions{Roots: root.pool, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{usages[e.Name]}})
		if err == nil {
			e.anchors = append(e.anchors, root)
		}
	}
	if len(e.anchors) == 0 {
		return errors.New("the certificate is not signed by a root that is there")
	}
	return nil
}

func toPEM(chain ...[]byte) string {
	var text strings.Builder
	for _, der := range chain {
		text.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	return text.String()
}
