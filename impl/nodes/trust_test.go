package nodes_test

import (
	"crypto/ecdsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// issuerOf says which issuer's certificate alone, as root of all trust, verifies a chain's leaf.
func (c *lab) issuerOf(t testing.TB, leaf *x509.Certificate, at time.Time) string {
	t.Helper()
	var found []string
	for _, m := range c.materials {
		certificate, err := x509.ParseCertificate(m.Certificate)
		must(t, err)
		pool := x509.NewCertPool()
		pool.AddCert(certificate)
		_, err = leaf.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if err == nil && m.Name != ca.Root {
			found = append(found, m.Name)
		}
	}
	if len(found) != 1 {
		t.Fatalf("the certificate is signed by %q", found)
	}
	return found[0]
}

// wantCertificate holds the certificate of an admission against what is said of it.
func (p *process) wantCertificate(t testing.TB, a *api.Admission, m machine, want wire.Trust) {
	t.Helper()
	profile := wire.NodeProfileNodeTenant
	if want == wire.TrustPlatform {
		profile = wire.NodeProfileNodePlatform
	}
	chain := chainOf(t, a.Certificate)
	if len(chain) != 2 {
		t.Fatalf("the chain has %d certificates", len(chain))
	}
	leaf := chain[0]
	if issuer := p.ca.issuerOf(t, leaf, p.db.Now()); a.Trust != want || a.Profile != profile || issuer != string(profile) {
		t.Errorf("trust %s, profile %s, signed by %s; want %s and %s", a.Trust, a.Profile, issuer, want, profile)
	}
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(a.CaBundle))
	between.AddCert(chain[1])
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: p.db.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("the chain does not lead to the bundle: %v", err)
	}
	if key, ok := leaf.PublicKey.(*ecdsa.PublicKey); !ok || !key.Equal(m.key.Public()) {
		t.Error("it is for another key")
	}
	if got := leaf.Subject.String(); got != "CN="+a.NodeID || len(leaf.URIs) != 1 || leaf.URIs[0].String() != "spiffe://bettercompute/node/"+a.NodeID {
		t.Errorf("it names %s %v", got, leaf.URIs)
	}
	if len(leaf.DNSNames)+len(leaf.IPAddresses)+len(leaf.EmailAddresses) > 0 || leaf.IsCA {
		t.Errorf("it names more: %v %v %v, CA %v", leaf.DNSNames, leaf.IPAddresses, leaf.EmailAddresses, leaf.IsCA)
	}
	if ca.FormatSerial(leaf.SerialNumber) != a.Serial || !leaf.NotBefore.Equal(a.NotBefore) || !leaf.NotAfter.Equal(a.NotAfter) {
		t.Errorf("serial %s from %s until %s; want %+v", ca.FormatSerial(leaf.SerialNumber), leaf.NotBefore, leaf.NotAfter, a)
	}
	now := p.db.Now().Truncate(time.Second)
	if !a.NotBefore.Equal(now.Add(-5*time.Minute)) || !a.NotAfter.Equal(now.Add(24*time.Hour)) || !a.RenewAfter.Equal(now.Add(16*time.Hour)) {
		t.Errorf("from %s until %s, renewed after %s, at %s", a.NotBefore, a.NotAfter, a.RenewAfter, now)
	}
	if n := p.node(t, a); n.Trust != want || n.Profile != profile || *n.CertificateSerial != a.Serial || !n.CertificateNotAfter.Equal(a.NotAfter) {
		t.Errorf("the node is %+v", n)
	}
}

// TestJT_40_TruthTable goes through site owner × custom × platformOperated ×
// hosted × what the machine claims, each by a certificate of the right issuer.
// Exactly six of the 32 rows give platform.
func TestJT_40_TruthTable(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		rows, platform := 0, 0
		for _, owner := range []string{"platform", "acme"} {
			for _, custom := range []bool{false, true} {
				for _, operated := range []bool{false, true} {
					for _, hosted := range []string{"", "kubernetes"} {
						for _, claimed := range []wire.ClaimedEnvironment{wire.ClaimedEnvironmentHost, wire.ClaimedEnvironmentKubernetes} {
							rows++
							pool := p.pool(t, func(pool *store.Pool, site *store.Site) {
								site.TenantID, site.SiteID, site.Custom = owner, fmt.Sprintf("s%d", rows), custom
								pool.PoolID, pool.PlatformOperated = fmt.Sprintf("p%d", rows), operated
							})
							tok := p.mint(t, pool, func(tok *store.JoinToken) { tok.Hosted = hosted })
							m := newMachine(t, &claims{Serial: strictjson.Some(unique("CZ2D")), Environment: strictjson.Some(claimed)})
							a := p.admit(t, tok, m)
							p.wantCertificate(t, a, m, expected(owner, custom, operated, hosted != ""))
							if a.Trust == wire.TrustPlatform {
								platform++
							}
							if t.Failed() {
								t.Fatalf("owner %s, custom %v, operated %v, hosted %q, claims %s", owner, custom, operated, hosted, claimed)
							}
						}
					}
				}
			}
		}
		if rows != 32 || platform != 6 {
			t.Errorf("%d of %d rows give platform, want 6 of 32", platform, rows)
		}
	})
}

// expected is the rule as JT-40 states it.
func expected(owner string, custom, operated, hosted bool) wire.Trust {
	switch {
	case owner != "platform" || custom:
		return wire.TrustTenantOwned
	case hosted && !operated:
		return wire.TrustTenantControlled
	default:
		return wire.TrustPlatform
	}
}

// TestJT_40_FallsAndNeverRises holds that a pool that loses the platform's
// operation takes its nodes' trust away at the next report and renewal, and that
// nothing but a new join gives it back.
func TestJT_40_FallsAndNeverRises(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, func(pool *store.Pool, site *store.Site) { site.TenantID, pool.PlatformOperated = "platform", true })
		operated := func(is bool) { p.policy(t, pool, func(pool *store.Pool) { pool.PlatformOperated = is }) }
		tok := p.mint(t, pool, func(tok *store.JoinToken) { tok.Hosted, tok.ExpiresAt = "kubernetes", noon.Add(24*time.Hour) })
		m := newMachine(t, nil)
		a := p.admit(t, tok, m)
		p.wantCertificate(t, a, m, wire.TrustPlatform)
		p.confirm(t, a)
		if out := p.report(t, a); !out.RenewAfter.Equal(a.RenewAfter) {
			t.Errorf("it is to renew at %s, want %s", out.RenewAfter, a.RenewAfter)
		}
		// One that takes no trust from the daemon's host is not concerned.
		bare := p.admit(t, p.mint(t, pool, nil), newMachine(t, nil))

		operated(false)
		p.advance(time.Minute)
		if out := p.report(t, a); !out.RenewAfter.Equal(p.db.Now()) || !out.ServerTime.Equal(p.db.Now()) {
			t.Errorf("it is to renew at %s, want now, %s", out.RenewAfter, p.db.Now())
		}
		if out := p.report(t, bare); !out.RenewAfter.Equal(bare.RenewAfter) {
			t.Errorf("a node on the machine itself is to renew at %s", out.RenewAfter)
		}
		m2 := newMachine(t, nil)
		lowered := p.renew(t, a, m2)
		p.wantCertificate(t, lowered, m2, wire.TrustTenantControlled)
		if got := p.eventsOf(t, "acme", "security.node.trust-lowered"); len(got) != 1 || got[0].Subject != a.NodeID || got[0].Data["from"] != "platform" ||
			got[0].Data["to"] != "tenant-controlled" || got[0].Data["serial"] != lowered.Serial {
			t.Errorf("%v", got)
		}
		if out := p.report(t, a); !out.RenewAfter.Equal(p.db.Now()) { // its answer may be lost
			t.Errorf("with the former certificate it is to renew at %s, want now", out.RenewAfter)
		}
		if out := p.report(t, lowered); !out.RenewAfter.Equal(lowered.RenewAfter) {
			t.Errorf("with the new certificate it is to renew at %s, want %s", out.RenewAfter, lowered.RenewAfter)
		}

		operated(true)
		p.advance(time.Minute)
		p.confirm(t, lowered)
		if out := p.report(t, lowered); !out.RenewAfter.Equal(lowered.RenewAfter) {
			t.Errorf("it is to renew at %s although it cannot rise", out.RenewAfter)
		}
		m3 := newMachine(t, nil)
		still := p.renew(t, lowered, m3)
		p.wantCertificate(t, still, m3, wire.TrustTenantControlled)
		if got := p.eventsOf(t, "acme", "security.node.trust-lowered"); len(got) != 1 {
			t.Errorf("trust was lowered %d times", len(got))
		}
		p.remove(t, still)
		if a := p.admit(t, tok, newMachine(t, nil)); a.Trust != wire.TrustPlatform {
			t.Errorf("a new join is trusted as %s", a.Trust)
		}
	})
}

// TestJT_40_LoweredMeanwhile holds that a renewal that was begun before the
// trust fell, and ends behind another one, does not give it back.
func TestJT_40_LoweredMeanwhile(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, func(pool *store.Pool, site *store.Site) { site.TenantID, pool.PlatformOperated = "platform", true })
		a := p.admit(t, p.mint(t, pool, func(tok *store.JoinToken) { tok.Hosted = "kubernetes" }), newMachine(t, nil))
		begun := p.as(t, a)
		p.policy(t, pool, func(pool *store.Pool) { pool.PlatformOperated = false })
		p.renew(t, a, newMachine(t, nil))
		out, err := p.Renew(begun, renewal(newMachine(t, nil)))
		if err == nil && out.Admitted.Trust != wire.TrustTenantControlled {
			t.Errorf("the late renewal gives %s", out.Admitted.Trust)
		}
		if got := p.node(t, a).Trust; got != wire.TrustTenantControlled {
			t.Errorf("the node is trusted as %s", got)
		}
	})
}

// TestNJ_6_WhatARequestAsksForIsIgnored holds that a request that wants to be a
// CA and somebody else gets the certificate of any other.
func TestNJ_6_WhatARequestAsksForIsIgnored(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		tok := p.mint(t, p.pool(t, nil), nil)
		m := newMachine(t, nil).asking(t, greedy(t))
		a := p.admit(t, tok, m)
		p.wantCertificate(t, a, m, wire.TrustTenantOwned)
		again := newMachine(t, nil).asking(t, greedy(t))
		p.advance(time.Second)
		p.wantCertificate(t, p.renew(t, a, again), again, wire.TrustTenantOwned)
	})
}

// greedy asks for CA:TRUE, every name and every usage.
func greedy(t testing.TB) x509.CertificateRequest {
	t.Helper()
	other, err := url.Parse("spiffe://bettercompute/node/nd_other")
	must(t, err)
	return x509.CertificateRequest{
		Subject:  pkix.Name{CommonName: "nd_other", Organization: []string{"system:masters"}},
		DNSNames: []string{"example.com", "*"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		URIs: []*url.URL{other}, EmailAddresses: []string{"root@example.com"},
		ExtraExtensions: []pkix.Extension{
			{Id: []int{2, 5, 29, 19}, Critical: true, Value: []byte{0x30, 3, 1, 1, 0xff}}, // basicConstraints: CA:TRUE
			{Id: []int{2, 5, 29, 15}, Critical: true, Value: []byte{3, 2, 1, 6}},          // keyUsage: certSign, crlSign
			{Id: []int{2, 5, 29, 37}, Value: []byte{0x30, 6, 6, 4, 0x55, 0x1d, 0x25, 0}},  // extKeyUsage: any
		},
	}
}
