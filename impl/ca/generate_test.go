package ca_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/ca"
)

// TestNJ_6_Generate holds what the root and the three issuers are.
func TestNJ_6_Generate(t *testing.T) {
	t.Parallel()
	materials := generate(t)
	if len(materials) != 4 || materials[0].Name != ca.Root {
		t.Fatalf("%d materials, the first is %s", len(materials), materials[0].Name)
	}
	root := certOf(t, materials[0].Certificate)
	if root.MaxPathLen != 1 || !root.NotAfter.Equal(today.AddDate(20, 0, 0)) || len(root.ExtKeyUsage) != 0 || root.CheckSignatureFrom(root) != nil {
		t.Errorf("the root: path %d, until %s, usages %v", root.MaxPathLen, root.NotAfter, root.ExtKeyUsage)
	}
	for name, usage := range map[string]x509.ExtKeyUsage{ca.NodePlatform: x509.ExtKeyUsageClientAuth, ca.NodeTenant: x509.ExtKeyUsageClientAuth, ca.Server: x509.ExtKeyUsageServerAuth} {
		cert := certOf(t, named(t, materials, name).Certificate)
		if !cert.MaxPathLenZero || cert.MaxPathLen != 0 || !cert.NotAfter.Equal(today.AddDate(5, 0, 0)) || !slices.Equal(cert.ExtKeyUsage, []x509.ExtKeyUsage{usage}) {
			t.Errorf("%s: path %d, until %s, usages %v", name, cert.MaxPathLen, cert.NotAfter, cert.ExtKeyUsage)
		}
		if err := cert.CheckSignatureFrom(root); err != nil || !bytes.Equal(cert.AuthorityKeyId, root.SubjectKeyId) {
			t.Errorf("%s: %v, under %x, want %x", name, err, cert.AuthorityKeyId, root.SubjectKeyId)
		}
	}
	seen := map[string]bool{}
	for _, m := range materials {
		cert, key := certOf(t, m.Certificate), keyOf(t, m)
		public, ok := key.Public().(*ecdsa.PublicKey)
		if !ok || public.Curve != elliptic.P256() || !public.Equal(cert.PublicKey) {
			t.Errorf("%s: its key is not a P-256 key of its certificate", m.Name)
		}
		if !cert.IsCA || cert.KeyUsage != x509.KeyUsageCertSign|x509.KeyUsageCRLSign || len(cert.SubjectKeyId) < 20 || cert.NotBefore.After(today.Add(-5*time.Minute)) {
			t.Errorf("%s: CA %v, usage %v, key id %x, from %s", m.Name, cert.IsCA, cert.KeyUsage, cert.SubjectKeyId, cert.NotBefore)
		}
		if cert.Subject.CommonName != "Better Compute "+m.Name || cert.SerialNumber.BitLen() != 127 || !strings.HasPrefix(m.ID, "iss_") || !m.CreatedAt.Equal(today) {
			t.Errorf("%s: subject %s, serial of %d bits, id %s, made %s", m.Name, cert.Subject, cert.SerialNumber.BitLen(), m.ID, m.CreatedAt)
		}
		for _, one := range []string{m.ID, cert.SerialNumber.String(), string(cert.SubjectKeyId)} {
			if seen[one] {
				t.Errorf("%s: it shares an id, a serial number or a key", m.Name)
			}
			seen[one] = true
		}
	}
}

// TestNJ_6_BundleAndPins holds that the trust bundle has the roots and nothing
// else, and that a pin is the SHA-256 of one.
func TestNJ_6_BundleAndPins(t *testing.T) {
	t.Parallel()
	older, newer := generate(t), generate(t)
	newer[0].CreatedAt = today.Add(time.Hour)
	a := authority(t, append(older, newer[0]))
	bundle := chainOf(t, a.Bundle())
	if len(bundle) != 2 || !bytes.Equal(bundle[0].Raw, newer[0].Certificate) || !bytes.Equal(bundle[1].Raw, older[0].Certificate) {
		t.Fatalf("%d certificates are in the bundle, or in another order", len(bundle))
	}
	for i, pin := range a.RootSHA256() {
		if sum := sha256.Sum256(bundle[i].Raw); pin != hex.EncodeToString(sum[:]) {
			t.Errorf("pin %d: %s", i, pin)
		}
	}
}

// TestRotate_WithoutAStop holds that after a rotation both generations are
// verified, that the newest signs, and that a replica which was not told knows
// that it should look.
func TestRotate_WithoutAStop(t *testing.T) {
	t.Parallel()
	materials := generate(t)
	before := authority(t, materials)
	old := signNode(t, before, order(t, true, newKey(t).Public()))
	rotated, err := ca.Rotate(materials, today.Add(time.Minute))
	if err != nil || len(rotated) != 3 {
		t.Fatalf("%d new issuers: %v", len(rotated), err)
	}
	for _, list := range [][]ca.Material{append(slices.Clone(materials), rotated...), append(slices.Clone(rotated), materials...)} {
		after := authority(t, list)
		young := signNode(t, after, order(t, true, newKey(t).Public()))
		if !bytes.Equal(young[1].Raw, named(t, rotated, ca.NodePlatform).Certificate) {
			t.Error("another issuer than the newest signed")
		}
		for _, chain := range [][]*x509.Certificate{old, young} {
			if id, err := after.VerifyNode(chain, today); err != nil || !id.Platform {
				t.Errorf("%+v, %v", id, err)
			}
		}
		if _, err := before.VerifyNode(young, today); !errors.Is(err, ca.ErrUnknownIssuer) {
			t.Errorf("a replica with the former issuers says %v, want ErrUnknownIssuer", err)
		}
		if after.Bundle() != before.Bundle() {
			t.Error("the trust bundle changed")
		}
		issuing := map[string][]bool{}
		for _, d := range after.Describe() {
			issuing[d.Name] = append(issuing[d.Name], d.Issues)
		}
		if len(issuing[ca.Root]) != 1 || !slices.Equal(issuing[ca.NodeTenant], []bool{true, false}) || !slices.Equal(issuing[ca.Server], []bool{true, false}) {
			t.Errorf("described: %v", issuing)
		}
	}
	if _, err := authority(t, append(rotated, materials[0])).VerifyNode(old, today); !errors.Is(err, ca.ErrUnknownIssuer) {
		t.Errorf("a dropped issuer still counts: %v", err)
	}
}

// TestRotate_Edges holds a clock that is behind, a root that ends soon, one that has ended, and one without a key.
func TestRotate_Edges(t *testing.T) {
	t.Parallel()
	materials := generate(t)
	behind, err := ca.Rotate(materials, today.Add(-time.Hour))
	if err != nil || !behind[0].CreatedAt.After(today) {
		t.Errorf("with a clock that is behind: made %v, %v", behind, err)
	}
	late := today.AddDate(18, 0, 0)
	rotated, err := ca.Rotate(materials, late)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range rotated {
		if end := certOf(t, m.Certificate).NotAfter; !end.Equal(today.AddDate(20, 0, 0)) {
			t.Errorf("%s ends on %s, and its root before", m.Name, end)
		}
	}
	if _, err := ca.Rotate(materials, today.AddDate(20, 0, 1)); err == nil || !strings.Contains(err.Error(), "root has ended") {
		t.Errorf("with a root that has ended: %v", err)
	}
	materials[0].Key = ca.PrivateKey{}
	if _, err := ca.Rotate(materials, today); err == nil || !strings.Contains(err.Error(), "root's key is not here") {
		t.Errorf("without the root's key: %v", err)
	}
}

// TestDescribe holds what bcserver ca show prints, root first.
func TestDescribe(t *testing.T) {
	t.Parallel()
	materials := generate(t)
	list := authority(t, materials).Describe()
	for i, d := range list {
		cert := certOf(t, materials[i].Certificate)
		sum := sha256.Sum256(cert.Raw)
		want := ca.Description{
			Name: materials[i].Name, ID: materials[i].ID, Serial: ca.FormatSerial(cert.SerialNumber),
			NotBefore: cert.NotBefore, NotAfter: cert.NotAfter, SHA256: hex.EncodeToString(sum[:]), Issues: true,
		}
		if d != want {
			t.Errorf("%+v, want %+v", d, want)
		}
	}
	if len(list) != 4 {
		t.Errorf("%d are described", len(list))
	}
}
