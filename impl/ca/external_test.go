package ca_test

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/ca"
)

// outsider is a CA elsewhere: it has its own key, and may do something else than it is told.
type outsider struct {
	cert  *x509.Certificate
	key   crypto.Signer
	bends func(template *x509.Certificate, public *crypto.PublicKey)
	err   error
}

func (o outsider) Sign(_ context.Context, template *x509.Certificate, public crypto.PublicKey) ([][]byte, error) {
	if o.err != nil {
		return nil, o.err
	}
	if o.bends != nil {
		o.bends(template, &public)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, o.cert, public, o.key)
	return [][]byte{der, o.cert.Raw}, err
}

type silent struct{ chain [][]byte }

func (s silent) Sign(context.Context, *x509.Certificate, crypto.PublicKey) ([][]byte, error) {
	return s.chain, nil
}

// TestExternal_TakesTheIssuersPlace holds that a CA elsewhere signs one profile
// while its key is not here, and that the other profile stays as it was.
func TestExternal_TakesTheIssuersPlace(t *testing.T) {
	t.Parallel()
	materials := generate(t)
	tenant := named(t, materials, ca.NodeTenant)
	materials[2].Key = ca.PrivateKey{}
	signer := outsider{cert: certOf(t, tenant.Certificate), key: keyOf(t, tenant)}
	a := authority(t, materials, ca.External{Name: ca.NodeTenant, Signer: signer})
	for _, platform := range []bool{true, false} {
		if id, err := a.VerifyNode(signNode(t, a, order(t, platform, newKey(t).Public())), today); err != nil || id.Platform != platform {
			t.Errorf("%+v, %v", id, err)
		}
	}
	for _, d := range a.Describe() {
		if d.Issues == (d.Name == ca.NodeTenant) {
			t.Errorf("%s issues with its own key: %v", d.Name, d.Issues)
		}
	}
	down := errors.New("the CA is down")
	a = authority(t, materials, ca.External{Name: ca.NodeTenant, Signer: outsider{err: down}})
	if _, err := a.SignNode(t.Context(), order(t, false, newKey(t).Public())); !errors.Is(err, down) {
		t.Errorf("%v, want what the CA says", err)
	}
	for _, name := range []string{ca.Root, "", "node"} {
		if _, err := ca.New(generate(t), ca.External{Name: name, Signer: signer}); err == nil {
			t.Errorf("an external signer for %q", name)
		}
	}
}

// TestExternal_IsNotBelieved holds that what it signs is held against what it was told.
func TestExternal_IsNotBelieved(t *testing.T) {
	t.Parallel()
	materials, foreign := generate(t), generate(t)
	tenant, platform := named(t, materials, ca.NodeTenant), named(t, materials, ca.NodePlatform)
	signing := func(m ca.Material, bends func(*x509.Certificate, *crypto.PublicKey)) ca.Signer {
		return outsider{cert: certOf(t, m.Certificate), key: keyOf(t, m), bends: bends}
	}
	for name, c := range map[string]struct {
		signer ca.Signer
		want   string
	}{
		"nothing":         {silent{}, "no certificate"},
		"garbage":         {silent{[][]byte{[]byte("x")}}, "cannot be read"},
		"another issuer":  {signing(named(t, foreign, ca.NodeTenant), nil), "would be refused"},
		"another profile": {signing(platform, nil), "than it was told"},
		"the root":        {signing(materials[0], nil), "would be refused"},
		"another key":     {signing(tenant, func(_ *x509.Certificate, p *crypto.PublicKey) { *p = newKey(t).Public() }), "another key"},
		"another id": {signing(tenant, func(c *x509.Certificate, _ *crypto.PublicKey) {
			c.Subject.CommonName, c.URIs[0].Path = "nd_other", "/node/nd_other"
		}), "than it was told"},
		"another serial": {signing(tenant, func(c *x509.Certificate, _ *crypto.PublicKey) { c.SerialNumber = big.NewInt(7) }), "than it was told"},
		"a later end":    {signing(tenant, func(c *x509.Certificate, _ *crypto.PublicKey) { c.NotAfter = c.NotAfter.Add(time.Second) }), "than it was told"},
		"a later start":  {signing(tenant, func(c *x509.Certificate, _ *crypto.PublicKey) { c.NotBefore = c.NotBefore.Add(time.Second) }), "than it was told"},
		"a server, too":  {signing(tenant, func(c *x509.Certificate, _ *crypto.PublicKey) { forTwo(c) }), "would be refused"},
		"a CA":           {signing(tenant, func(c *x509.Certificate, _ *crypto.PublicKey) { c.IsCA = true }), "would be refused"},
		"another name": {signing(tenant, func(c *x509.Certificate, _ *crypto.PublicKey) {
			c.DNSNames = append(c.DNSNames, "example.com")
		}), "would be refused"},
	} {
		a := authority(t, materials, ca.External{Name: ca.NodeTenant, Signer: c.signer})
		text, err := a.SignNode(t.Context(), order(t, false, newKey(t).Public()))
		if err == nil || text != "" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	server := named(t, materials, ca.Server)
	a := authority(t, materials, ca.External{Name: ca.Server, Signer: signing(server, nil)})
	if _, err := a.SignServer(t.Context(), []string{"localhost"}, newKey(t).Public(), today); err != nil {
		t.Errorf("the listener: %v", err)
	}
	a = authority(t, materials, ca.External{Name: ca.Server, Signer: signing(server, func(_ *x509.Certificate, p *crypto.PublicKey) { *p = newKey(t).Public() })})
	if _, err := a.SignServer(t.Context(), []string{"localhost"}, newKey(t).Public(), today); err == nil {
		t.Error("the listener takes a certificate of another key")
	}
}
