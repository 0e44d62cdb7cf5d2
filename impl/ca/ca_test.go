package ca_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/ca"
)

// TestNew_Refused holds each rule of the materials, and that an error says
// which one breaks it, and how.
func TestNew_Refused(t *testing.T) {
	t.Parallel()
	client := x509.ExtKeyUsageClientAuth
	foreign := generate(t)
	weak, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	// issuer replaces the platform's issuer by one that another template and key make.
	issuer := func(list []ca.Material, key crypto.Signer, spoil func(*x509.Certificate)) []ca.Material {
		template := caTemplate("platform", client)
		spoil(template)
		list[1] = material(t, ca.NodePlatform, template, key, &list[0])
		return list
	}
	for name, c := range map[string]struct {
		spoil func([]ca.Material) []ca.Material
		want  string
	}{
		"nothing":             {func([]ca.Material) []ca.Material { return nil }, "no root"},
		"no root":             {func(l []ca.Material) []ca.Material { return l[1:] }, "no root"},
		"no platform issuer":  {func(l []ca.Material) []ca.Material { return slices.Delete(l, 1, 2) }, "no issuer node-platform"},
		"no tenant issuer":    {func(l []ca.Material) []ca.Material { return slices.Delete(l, 2, 3) }, "no issuer node-tenant"},
		"an unknown name":     {func(l []ca.Material) []ca.Material { l[3].Name = "node"; return l }, "this name"},
		"no certificate":      {func(l []ca.Material) []ca.Material { l[1].Certificate = nil; return l }, "cannot be read"},
		"a cut certificate":   {func(l []ca.Material) []ca.Material { l[1].Certificate = l[1].Certificate[1:]; return l }, "cannot be read"},
		"no key":              {func(l []ca.Material) []ca.Material { l[1].Key = ca.PrivateKey{}; return l }, "no issuer node-platform is there that can sign"},
		"another key":         {func(l []ca.Material) []ca.Material { l[1].Key = l[2].Key; return l }, "does not belong"},
		"a key that is none":  {func(l []ca.Material) []ca.Material { l[1].Key = ca.NewPrivateKey([]byte("x")); return l }, "not one in PKCS#8"},
		"a foreign issuer":    {func(l []ca.Material) []ca.Material { l[1] = foreign[1]; return l }, "not signed by a root"},
		"a foreign root":      {func(l []ca.Material) []ca.Material { l[0] = foreign[0]; return l }, "not signed by a root"},
		"profiles swapped":    {func(l []ca.Material) []ca.Material { l[1].Name, l[3].Name = l[3].Name, l[1].Name; return l }, "extended key usage"},
		"one issuer for both": {func(l []ca.Material) []ca.Material { l[2] = l[1]; l[2].Name = ca.NodeTenant; return l }, "it has the key of node-platform"},
		"an issuer for any":   {func(l []ca.Material) []ca.Material { return issuer(l, newKey(t), forAny) }, "extended key usage clientAuth, and no other"},
		"an issuer for two":   {func(l []ca.Material) []ca.Material { return issuer(l, newKey(t), forTwo) }, "extended key usage clientAuth, and no other"},
		"an issuer for none":  {func(l []ca.Material) []ca.Material { return issuer(l, newKey(t), forNone) }, "extended key usage clientAuth, and no other"},
		"an issuer for more":  {func(l []ca.Material) []ca.Material { return issuer(l, newKey(t), forMore) }, "extended key usage clientAuth, and no other"},
		"not a CA":            {func(l []ca.Material) []ca.Material { return issuer(l, newKey(t), asLeaf) }, "not a CA's"},
		"may not sign":        {func(l []ca.Material) []ca.Material { return issuer(l, newKey(t), noSigner) }, "certSign"},
		"a weak key":          {func(l []ca.Material) []ca.Material { return issuer(l, weak, func(*x509.Certificate) {}) }, "the key must be P-256"},
		"root that is no root": {func(l []ca.Material) []ca.Material {
			l[0] = material(t, ca.Root, nodeTemplate(t), newKey(t), nil)
			return l
		}, "not a CA's"},
	} {
		a, err := ca.New(c.spoil(generate(t)))
		if err == nil || a != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := ca.New(issuer(generate(t), newKey(t), func(*x509.Certificate) {})); err != nil {
		t.Errorf("with nothing spoiled: %v", err)
	}
}

func forAny(c *x509.Certificate)  { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny} }
func forTwo(c *x509.Certificate)  { c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth) }
func forNone(c *x509.Certificate) { c.ExtKeyUsage = nil }
func forMore(c *x509.Certificate) {
	c.UnknownExtKeyUsage = append(c.UnknownExtKeyUsage, []int{1, 2, 3})
}
func asLeaf(c *x509.Certificate)   { c.IsCA, c.KeyUsage = false, x509.KeyUsageDigitalSignature }
func noSigner(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCRLSign }

// TestNew_RootPathLength holds that a root which allows no issuer below it is noticed at once.
func TestNew_RootPathLength(t *testing.T) {
	t.Parallel()
	for depth, want := range map[int]bool{-1: true, 0: false, 1: true, 2: true} {
		template := caTemplate("root")
		template.MaxPathLen, template.MaxPathLenZero = depth, depth == 0
		root := material(t, ca.Root, template, newKey(t), nil)
		list := []ca.Material{
			root, material(t, ca.NodePlatform, caTemplate("platform", x509.ExtKeyUsageClientAuth), newKey(t), &root),
			material(t, ca.NodeTenant, caTemplate("tenant", x509.ExtKeyUsageClientAuth), newKey(t), &root),
		}
		if _, err := ca.New(list); (err == nil) != want {
			t.Errorf("path length %d: %v", depth, err)
		}
	}
}

// TestNew_OperatorsKeys holds that issuers with RSA and larger keys sign nodes, too.
func TestNew_OperatorsKeys(t *testing.T) {
	t.Parallel()
	wide, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	large, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	root := material(t, ca.Root, caTemplate("root"), large, nil)
	a := authority(t, []ca.Material{
		root, material(t, ca.NodePlatform, caTemplate("platform", x509.ExtKeyUsageClientAuth), wide, &root),
		material(t, ca.NodeTenant, caTemplate("tenant", x509.ExtKeyUsageClientAuth), large, &root),
	})
	for _, platform := range []bool{true, false} {
		if id, err := a.VerifyNode(signNode(t, a, order(t, platform, newKey(t).Public())), today); err != nil || id.Platform != platform {
			t.Errorf("%+v, %v", id, err)
		}
	}
	if _, err := a.SignServer(t.Context(), []string{"localhost"}, newKey(t).Public(), today); err == nil {
		t.Error("the listener is certified without an issuer")
	}
}

// TestPrivateKey_PrintsSealed holds that no way of printing shows a key.
func TestPrivateKey_PrintsSealed(t *testing.T) {
	t.Parallel()
	m := generate(t)[0]
	der := m.Key.Reveal()
	a := authority(t, append(generate(t), m))
	type holder struct {
		M ca.Material
		m ca.Material
		p *ca.Material
		a *ca.Authority
	}
	h, anyVerb := holder{m, m, &m, a}, "%x %d"
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info(m.Key.String(), "key", m.Key, "material", m, "list", []ca.Material{m}, "authority", a)
	}
	text, err := json.Marshal([]any{m, m.Key, &m.Key, a})
	if err != nil {
		t.Fatal(err)
	}
	key := keyOf(t, m).(*ecdsa.PrivateKey)
	scalar, err := key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	printed := strings.ToLower(log.String() + string(text) + fmt.Sprintf("%v %+v %#v %s %q %x %d", m, m, m, m.Key, m.Key, m.Key, m.Key) +
		fmt.Sprintf("%v %+v %#v %v "+anyVerb, h, h, h, &h, h, h) + fmt.Sprintf("%v %+v %#v", a, a, *a))
	for i, secret := range []string{ // the end of the DER is the public key
		string(scalar), fmt.Sprintf("%x", scalar), strings.Trim(fmt.Sprint(scalar), "[]"), new(big.Int).SetBytes(scalar).String(),
		base64.StdEncoding.EncodeToString(scalar[:9]), base64.StdEncoding.EncodeToString(der),
	} {
		if strings.Contains(printed, strings.ToLower(secret)) {
			t.Errorf("the key was printed in spelling %d", i)
		}
	}
	for _, printed := range []string{fmt.Sprint(m.Key), fmt.Sprintf("%#v", m.Key), fmt.Sprintf("%x", &m.Key)} {
		if printed != "[sealed]" {
			t.Errorf("printed %q, want [sealed]", printed)
		}
	}
	if !bytes.Equal(ca.NewPrivateKey(der).Reveal(), der) || ca.NewPrivateKey(nil).Reveal() != nil {
		t.Error("a key is not given back as it was")
	}
}

// TestAuthority_Concurrent lets the race detector see an authority in many hands.
func TestAuthority_Concurrent(t *testing.T) {
	t.Parallel()
	a := authority(t, generate(t))
	var group sync.WaitGroup
	for i := range 8 {
		o := order(t, i%2 == 0, newKey(t).Public())
		group.Go(func() {
			for range 20 {
				text, err := a.SignNode(t.Context(), o)
				if err != nil {
					t.Error(err)
					return
				}
				id, err := a.VerifyNode(chainOf(t, text), today.Add(time.Hour))
				if err != nil || id.Platform != o.Platform {
					t.Errorf("%+v, %v", id, err)
				}
			}
		})
	}
	group.Wait()
}
