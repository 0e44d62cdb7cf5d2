package ca_test

import (
	"crypto/rand"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/ca"
)

// TestNJ_6_VerifyNode holds what is read from a certificate, and that the rest
// of what a client presents changes nothing.
func TestNJ_6_VerifyNode(t *testing.T) {
	t.Parallel()
	a, foreign := authority(t, generate(t)), authority(t, generate(t))
	stranger := signNode(t, foreign, order(t, true, newKey(t).Public()))
	for _, platform := range []bool{true, false} {
		o := order(t, platform, newKey(t).Public())
		chain := signNode(t, a, o)
		want := ca.Identity{NodeID: node, Serial: ca.FormatSerial(o.Serial), Platform: platform, NotAfter: o.NotAfter}
		for name, presented := range map[string][]*x509.Certificate{
			"chain": chain, "leaf": chain[:1], "a foreign issuer": {chain[0], stranger[1]}, "a foreign leaf behind": {chain[0], stranger[0], stranger[1]},
		} {
			if got, err := a.VerifyNode(presented, today); err != nil || got != want {
				t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
			}
		}
		if _, err := a.VerifyNode([]*x509.Certificate{stranger[0], chain[1]}, today); err == nil {
			t.Error("a foreign leaf counts with our issuer behind it")
		}
		if _, err := a.VerifyNode([]*x509.Certificate{stranger[0], chain[0]}, today); err == nil {
			t.Error("a foreign leaf counts with our leaf behind it")
		}
	}
	if _, err := a.VerifyNode(nil, today); err == nil {
		t.Error("no certificate is one")
	}
}

// TestNJ_6_Dates holds every edge of a leaf's life and of its issuers'.
func TestNJ_6_Dates(t *testing.T) {
	t.Parallel()
	materials := generate(t)
	a := authority(t, materials)
	o := order(t, false, newKey(t).Public())
	chain := signNode(t, a, o)
	long := nodeTemplate(t)
	long.NotAfter = today.AddDate(30, 0, 0) // no signer of ours makes this; the issuer's end must still hold
	outlives := signedBy(t, named(t, materials, ca.NodeTenant), long, newKey(t).Public())
	for name, c := range map[string]struct {
		leaf    *x509.Certificate
		at      time.Time
		ok      bool
		expired bool
	}{
		"just before it begins":                     {chain[0], o.NotBefore.Add(-time.Nanosecond), false, false},
		"as it begins":                              {chain[0], o.NotBefore, true, false},
		"in its last second":                        {chain[0], o.NotAfter, true, false},
		"just after":                                {chain[0], o.NotAfter.Add(time.Nanosecond), true, true},
		"a week after":                              {chain[0], o.NotAfter.AddDate(0, 0, 7), true, true},
		"years after, while the issuer lasts":       {chain[0], today.AddDate(5, 0, 0), true, true},
		"after the issuer's end":                    {chain[0], today.AddDate(5, 0, 0).Add(time.Second), false, false},
		"long after everything":                     {chain[0], today.AddDate(40, 0, 0), false, false},
		"a leaf that outlives it, in time":          {outlives, today.AddDate(5, 0, 0), true, false},
		"a leaf that outlives it, after its issuer": {outlives, today.AddDate(5, 0, 1), false, false},
	} {
		got, err := a.VerifyNode([]*x509.Certificate{c.leaf}, c.at)
		if (err == nil) != c.ok || got.Expired != c.expired || err != nil && got != (ca.Identity{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := a.VerifyNode(chain, o.NotBefore.Add(-time.Second)); err == nil || !strings.Contains(err.Error(), "not yet valid") {
		t.Errorf("before it begins: %v", err)
	}
}

// TestNJ_6_RootEnded holds that an issuer counts no longer than its root, and
// as long as any root that signed it.
func TestNJ_6_RootEnded(t *testing.T) {
	t.Parallel()
	rootKey := newKey(t)
	short, long := caTemplate("root"), caTemplate("root")
	short.NotAfter = today.AddDate(1, 0, 0)
	root, again := material(t, ca.Root, short, rootKey, nil), material(t, ca.Root, long, rootKey, nil)
	materials := []ca.Material{
		root, material(t, ca.NodePlatform, caTemplate("platform", x509.ExtKeyUsageClientAuth), newKey(t), &root),
		material(t, ca.NodeTenant, caTemplate("tenant", x509.ExtKeyUsageClientAuth), newKey(t), &root),
	}
	template := nodeTemplate(t)
	template.NotAfter = today.AddDate(3, 0, 0)
	leaf := signedBy(t, materials[1], template, newKey(t).Public())
	later := today.AddDate(2, 0, 0)
	if _, err := authority(t, materials).VerifyNode([]*x509.Certificate{leaf}, later); err == nil {
		t.Error("the issuer counts after its root has ended")
	}
	if id, err := authority(t, append(materials, again)).VerifyNode([]*x509.Certificate{leaf}, later); err != nil || !id.Platform {
		t.Errorf("the root was renewed with the same key: %v", err)
	}
}

// TestNJ_6_Refused holds that each broken rule is enough to refuse a leaf that
// our own issuer signed, and that no other key of ours stands in for an issuer.
func TestNJ_6_Refused(t *testing.T) {
	t.Parallel()
	materials := generate(t)
	a := authority(t, materials)
	type leaf = x509.Certificate
	for name, c := range map[string]struct {
		signer string
		spoil  func(*leaf)
		want   string
	}{
		"for a server":            {ca.NodePlatform, func(l *leaf) { l.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }, "node's form"},
		"for a server, too":       {ca.NodePlatform, func(l *leaf) { l.ExtKeyUsage = append(l.ExtKeyUsage, x509.ExtKeyUsageServerAuth) }, "node's form"},
		"for anything":            {ca.NodePlatform, func(l *leaf) { l.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny} }, "node's form"},
		"for nothing":             {ca.NodePlatform, func(l *leaf) { l.ExtKeyUsage = nil }, "node's form"},
		"for something unknown":   {ca.NodePlatform, func(l *leaf) { l.UnknownExtKeyUsage = append(l.UnknownExtKeyUsage, []int{1, 2, 3}) }, "node's form"},
		"a CA":                    {ca.NodePlatform, func(l *leaf) { l.IsCA, l.KeyUsage = true, x509.KeyUsageCertSign }, "node's form"},
		"a CA that signs":         {ca.NodePlatform, func(l *leaf) { l.IsCA = true }, "node's form"},
		"no digital signature":    {ca.NodePlatform, func(l *leaf) { l.KeyUsage = x509.KeyUsageKeyEncipherment }, "node's form"},
		"no key usage":            {ca.NodePlatform, func(l *leaf) { l.KeyUsage = 0 }, "node's form"},
		"no name":                 {ca.NodePlatform, func(l *leaf) { l.Subject.CommonName = "" }, "SPIFFE id"},
		"another name":            {ca.NodePlatform, func(l *leaf) { l.Subject.CommonName = "nd_other" }, "SPIFFE id"},
		"another id":              {ca.NodePlatform, func(l *leaf) { l.URIs[0].Path += "x" }, "SPIFFE id"},
		"another trust domain":    {ca.NodePlatform, func(l *leaf) { l.URIs[0].Host = "example.com" }, "SPIFFE id"},
		"another scheme":          {ca.NodePlatform, func(l *leaf) { l.URIs[0].Scheme = "https" }, "SPIFFE id"},
		"a port":                  {ca.NodePlatform, func(l *leaf) { l.URIs[0].Host += ":1" }, "SPIFFE id"},
		"a query":                 {ca.NodePlatform, func(l *leaf) { l.URIs[0].RawQuery = "a=b" }, "SPIFFE id"},
		"a workload's path":       {ca.NodePlatform, func(l *leaf) { l.URIs[0].Path = "/pod/" + node }, "SPIFFE id"},
		"no URI":                  {ca.NodePlatform, func(l *leaf) { l.URIs = nil }, "SPIFFE id"},
		"two URIs":                {ca.NodePlatform, func(l *leaf) { l.URIs = append(l.URIs, link(t, "spiffe://bettercompute/node/nd_other")) }, "SPIFFE id"},
		"a DNS name":              {ca.NodePlatform, func(l *leaf) { l.DNSNames = []string{"example.com"} }, "SPIFFE id"},
		"an address":              {ca.NodePlatform, func(l *leaf) { l.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }, "SPIFFE id"},
		"an e-mail address":       {ca.NodePlatform, func(l *leaf) { l.EmailAddresses = []string{"a@example.com"} }, "SPIFFE id"},
		"a name that is a path":   {ca.NodePlatform, func(l *leaf) { l.Subject.CommonName, l.URIs[0].Path = "a/b", "/node/a/b" }, "SPIFFE id"},
		"ends before it begins":   {ca.NodePlatform, func(l *leaf) { l.NotAfter = l.NotBefore.Add(-time.Hour) }, "not signed"},
		"signed by the root":      {ca.Root, func(*leaf) {}, "not one of this CA's"},
		"signed for the listener": {ca.Server, func(*leaf) {}, "not one of this CA's"},
	} {
		template := nodeTemplate(t)
		c.spoil(template)
		cert := signedBy(t, named(t, materials, c.signer), template, newKey(t).Public())
		got, err := a.VerifyNode([]*x509.Certificate{cert}, today)
		if err == nil || got != (ca.Identity{}) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v, want %q", name, got, err, c.want)
		}
	}
	chain, err := a.SignServer(t.Context(), []string{node}, newKey(t).Public(), today)
	if err != nil {
		t.Fatal(err)
	}
	for _, der := range [][]byte{chain[0], chain[1], materials[0].Certificate, materials[1].Certificate} {
		if id, err := a.VerifyNode([]*x509.Certificate{certOf(t, der)}, today); err == nil {
			t.Errorf("one of our own certificates counts as a node's: %+v", id)
		}
	}
	if cert := signedBy(t, materials[1], nodeTemplate(t), newKey(t).Public()); cert.URIs[0].String() != "spiffe://bettercompute/node/"+node {
		t.Error("the template itself is wrong")
	} else if _, err := a.VerifyNode([]*x509.Certificate{cert}, today); err != nil {
		t.Errorf("with nothing spoiled: %v", err)
	}
}

// TestNJ_6_ForeignChains holds that names, key ids and certificates of ours help no other key.
func TestNJ_6_ForeignChains(t *testing.T) {
	t.Parallel()
	materials := generate(t)
	a := authority(t, materials)
	ours := certOf(t, named(t, materials, ca.NodePlatform).Certificate)

	// An issuer of another root has the names and the key id of ours.
	foreign := generate(t)
	twin := *certOf(t, named(t, foreign, ca.NodePlatform).Certificate)
	twin.SubjectKeyId = ours.SubjectKeyId
	secret := newKey(t)
	parent := material(t, ca.NodePlatform, &twin, secret, &foreign[0])
	leaf := signedBy(t, parent, nodeTemplate(t), newKey(t).Public())
	if _, err := a.VerifyNode([]*x509.Certificate{leaf, certOf(t, parent.Certificate), certOf(t, foreign[0].Certificate)}, today); err == nil || errors.Is(err, ca.ErrUnknownIssuer) {
		t.Errorf("with our names and key id: %v", err)
	}

	// A node acts as an issuer: its certificate signs another.
	nodeKey := newKey(t)
	nodeCert := signNode(t, a, order(t, true, nodeKey.Public()))[0]
	under := material(t, ca.NodePlatform, nodeTemplate(t), newKey(t), &ca.Material{Certificate: nodeCert.Raw, Key: keyMaterial(t, nodeKey)})
	if _, err := a.VerifyNode([]*x509.Certificate{certOf(t, under.Certificate), nodeCert, ours}, today); !errors.Is(err, ca.ErrUnknownIssuer) {
		t.Errorf("signed by a node: %v", err)
	}

	// An issuer of ours signs another CA, which its path length forbids.
	sub := caTemplate("sub", x509.ExtKeyUsageClientAuth)
	subKey := newKey(t)
	issuer := named(t, materials, ca.NodePlatform)
	subCA := material(t, ca.NodePlatform, sub, subKey, &issuer)
	leaf = signedBy(t, subCA, nodeTemplate(t), newKey(t).Public())
	if _, err := a.VerifyNode([]*x509.Certificate{leaf, certOf(t, subCA.Certificate), ours}, today); !errors.Is(err, ca.ErrUnknownIssuer) {
		t.Errorf("signed by a CA below our issuer: %v", err)
	}

	// Signed by itself.
	self := material(t, ca.NodePlatform, nodeTemplate(t), newKey(t), nil)
	if _, err := a.VerifyNode([]*x509.Certificate{certOf(t, self.Certificate)}, today); !errors.Is(err, ca.ErrUnknownIssuer) {
		t.Errorf("signed by itself: %v", err)
	}
}

// TestNJ_6_TheIssuerDecidesTheProfile holds that nothing but the key of the
// signing issuer makes a platform node: the names of the other one do not.
func TestNJ_6_TheIssuerDecidesTheProfile(t *testing.T) {
	t.Parallel()
	materials := generate(t)
	a := authority(t, materials)
	platform, tenant := named(t, materials, ca.NodePlatform), named(t, materials, ca.NodeTenant)
	// The tenant's key signs in the name of the platform's issuer.
	disguised := ca.Material{Certificate: platform.Certificate, Key: tenant.Key}
	template := nodeTemplate(t)
	key := newKey(t)
	posing := *certOf(t, platform.Certificate)
	posing.PublicKey = keyOf(t, tenant).Public()
	der, err := x509.CreateCertificate(rand.Reader, template, &posing, key.Public(), keyOf(t, disguised))
	if err != nil {
		t.Fatal(err)
	}
	if id, err := a.VerifyNode([]*x509.Certificate{certOf(t, der)}, today); err == nil {
		t.Errorf("the tenant's issuer made %+v", id)
	}
}

// TestNJ_6_EveryBit holds that no bit of a certificate can change.
func TestNJ_6_EveryBit(t *testing.T) {
	t.Parallel()
	a := authority(t, generate(t))
	der := signNode(t, a, order(t, true, newKey(t).Public()))[0].Raw
	read := 0
	for i := range der {
		for bit := range 8 {
			der[i] ^= 1 << bit
			if cert, err := x509.ParseCertificate(der); err == nil {
				read++
				if id, err := a.VerifyNode([]*x509.Certificate{cert}, today); err == nil {
					t.Errorf("bit %d of byte %d changed, and it is %+v", bit, i, id)
				}
			}
			der[i] ^= 1 << bit
		}
	}
	if read < 100 {
		t.Errorf("only %d changed certificates could be read at all", read)
	}
}

// FuzzVerifyNode holds that nothing counts but what an issuer signed.
func FuzzVerifyNode(f *testing.F) {
	a := authority(f, generate(f))
	good := signNode(f, a, order(f, true, newKey(f).Public()))
	f.Add(good[0].Raw, int64(0))
	f.Add(good[1].Raw, int64(0))
	f.Add(good[0].Raw, int64(1<<40))
	f.Fuzz(func(t *testing.T, der []byte, after int64) {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return
		}
		at := today.Add(time.Duration(after))
		got, err := a.VerifyNode([]*x509.Certificate{cert}, at)
		if err != nil {
			if got != (ca.Identity{}) {
				t.Fatalf("refused, and says %+v", got)
			}
			return
		}
		if string(cert.RawTBSCertificate) != string(good[0].RawTBSCertificate) || got.Expired != at.After(good[0].NotAfter) || at.Before(good[0].NotBefore) {
			t.Fatalf("at %s: %+v", at, got)
		}
	})
}
