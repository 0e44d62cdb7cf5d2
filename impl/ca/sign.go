package ca

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

const (
	// TrustDomain is the SPIFFE trust domain of every node.
	TrustDomain = "bettercompute"

	nodePath      = "/node/"
	nodeIDChars   = "0123456789abcdefghijklmnopqrstuvwxyz_"
	hostChars     = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_*"
	maxCommonName = 64 // RFC 5280, ub-common-name
	serverDays    = 30
	serverSkew    = 5 * time.Minute // a client's clock may be behind
	leafUsage     = x509.KeyUsageDigitalSignature
)

// A Signer is the issuer of one profile. It certifies a public key as the
// template says, and returns the chain in DER: the leaf first, the root never.
type Signer interface {
	Sign(ctx context.Context, template *x509.Certificate, public crypto.PublicKey) (chain [][]byte, err error)
}

// local signs with the key of a material.
type local struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func (l *local) Sign(_ context.Context, template *x509.Certificate, public crypto.PublicKey) ([][]byte, error) {
	if template.NotAfter.After(l.cert.NotAfter) {
		return nil, errors.New("ca: the issuer ends before the certificate would; rotate the issuers")
	}
	leaf, err := x509.CreateCertificate(rand.Reader, template, l.cert, public, l.key)
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	return [][]byte{leaf, l.cert.Raw}, nil
}

// An Order is what a node's certificate says. Serial and dates are chosen
// before the signing, so that a repeated one gives the same ones (NJ-3).
type Order struct {
	NodeID              string // of [a-z0-9_], at most 64
	Platform            bool   // by NodePlatform, or else by NodeTenant
	Public              crypto.PublicKey
	Serial              *big.Int  // of ParseSerial
	NotBefore, NotAfter time.Time // whole seconds count, as in every certificate
}

// SignNode returns the certificate of a node and its issuer's, in PEM: CN is
// the node's id, its only other name is its SPIFFE id, and it is a client and
// nothing else (NJ-6).
func (a *Authority) SignNode(ctx context.Context, o Order) (string, error) {
	if !isNodeID(o.NodeID) {
		return "", errors.New("ca: a node's id must be 1 to 64 of a-z, 0-9 and _")
	}
	if o.Serial == nil || o.Serial.Sign() <= 0 || o.Serial.BitLen() > 8*serialBytes {
		return "", errors.New("ca: a serial number must be positive, of at most 128 bits")
	}
	if !o.NotBefore.Before(o.NotAfter) {
		return "", errors.New("ca: a certificate must begin before it ends")
	}
	name := NodeTenant
	if o.Platform {
		name = NodePlatform
	}
	chain, err := a.signers[name].Sign(ctx, &x509.Certificate{
		SerialNumber:          o.Serial,
		Subject:               pkix.Name{CommonName: o.NodeID},
		URIs:                  []*url.URL{spiffeID(o.NodeID)},
		NotBefore:             o.NotBefore,
		NotAfter:              o.NotAfter,
		KeyUsage:              leafUsage,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}, o.Public)
	if err != nil {
		return "", err
	}
	if a.outside[name] {
		if err := a.checkNode(chain, o); err != nil {
			return "", err
		}
	}
	return toPEM(chain...), nil
}

// checkNode holds what an external CA signed against what was ordered.
func (a *Authority) checkNode(chain [][]byte, o Order) error {
	leaf, err := parseLeaf(chain, o.Public)
	if err != nil {
		return err
	}
	got, err := a.VerifyNode([]*x509.Certificate{leaf}, leaf.NotAfter) // so that no issuer ends before
	if err != nil {
		return fmt.Errorf("ca: what the external CA signed would be refused: %w", err)
	}
	want := Identity{NodeID: o.NodeID, Serial: FormatSerial(o.Serial), Platform: o.Platform, NotAfter: inSeconds(o.NotAfter)}
	if got != want || !leaf.NotBefore.Equal(inSeconds(o.NotBefore)) {
		return errors.New("ca: the external CA signed another id, serial number, profile or date than it was told")
	}
	return nil
}

func parseLeaf(chain [][]byte, public crypto.PublicKey) (*x509.Certificate, error) {
	if len(chain) == 0 {
		return nil, errors.New("ca: the external CA returned no certificate")
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		return nil, fmt.Errorf("ca: the external CA's certificate cannot be read: %w", err)
	}
	if key, ok := leaf.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !key.Equal(public) {
		return nil, errors.New("ca: the external CA signed another key than it was told")
	}
	return leaf, nil
}

// SignServer returns the chain in DER of a listener's certificate for some
// names and IP addresses, the leaf first. It lasts 30 days, and no longer than its issuer.
func (a *Authority) SignServer(ctx context.Context, hosts []string, public crypto.PublicKey, now time.Time) ([][]byte, error) {
	signer := a.signers[Server]
	if signer == nil {
		return nil, errors.New("ca: there is no issuer for the listener; it must have a certificate of its own")
	}
	serial, err := ParseSerial(NewSerial())
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		NotBefore:             now.Add(-serverSkew),
		NotAfter:              now.AddDate(0, 0, serverDays),
		KeyUsage:              leafUsage,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, host := range hosts {
		if ip, err := netip.ParseAddr(host); err == nil && ip.Zone() == "" {
			template.IPAddresses = append(template.IPAddresses, net.IP(ip.AsSlice()))
		} else if host != "" && strings.Trim(host, hostChars) == "" {
			template.DNSNames = append(template.DNSNames, host)
		} else {
			return nil, fmt.Errorf("ca: %q is neither a DNS name nor an IP address", host)
		}
	}
	if len(hosts) == 0 {
		return nil, errors.New("ca: a listener needs at least one name")
	}
	if len(hosts[0]) <= maxCommonName {
		template.Subject.CommonName = hosts[0] // for people; clients read the names
	}
	if l, ok := signer.(*local); ok && template.NotAfter.After(l.cert.NotAfter) {
		template.NotAfter = l.cert.NotAfter
	}
	chain, err := signer.Sign(ctx, template, public)
	if err != nil {
		return nil, err
	}
	if a.outside[Server] {
		if _, err := parseLeaf(chain, public); err != nil {
			return nil, err
		}
	}
	return chain, nil
}

func isNodeID(id string) bool {
	return id != "" && len(id) <= maxCommonName && strings.Trim(id, nodeIDChars) == ""
}

func spiffeID(nodeID string) *url.URL {
	return &url.URL{Scheme: "spiffe", Host: TrustDomain, Path: nodePath + nodeID}
}

func inSeconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
