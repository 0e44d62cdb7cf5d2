package nodes_test

import (
	"crypto/rand"
	"crypto/x509"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/nodes"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// TestNJ_6_ConfirmRevokesOthers holds that a node has one certificate and at most
// one that is to follow: that a renewal ends the one before it that was not
// confirmed, that a confirmation ends all others, and that confirming again changes nothing.
func TestNJ_6_ConfirmRevokesOthers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		a := p.admit(t, p.mint(t, p.pool(t, nil), nil), newMachine(t, nil))
		if n := p.node(t, a); n.Status != wire.NodeStatusJoining || n.LastSeenAt != nil || n.AgentVersion != nil {
			t.Errorf("%+v", n)
		}
		out, err := p.Confirm(p.as(t, a), &wire.NodesConfirmInput{AgentVersion: strictjson.Some("0.1.0")})
		must(t, err)
		if n := p.node(t, a); out.NodeID != a.NodeID || !out.ServerTime.Equal(noon) || n.Status != wire.NodeStatusActive || !n.LastSeenAt.Equal(noon) || *n.AgentVersion != "0.1.0" {
			t.Errorf("%+v, %+v", out, n)
		}
		p.advance(time.Hour)
		b := p.renew(t, a, newMachine(t, nil))
		c := p.renew(t, a, newMachine(t, nil))
		p.advance(time.Hour)
		must(t, p.recognizes(t, a, false))
		wantCode(t, p.recognizes(t, b, false), problem.Unauthenticated) // there is one renewal at a time
		must(t, p.recognizes(t, c, false))
		p.confirm(t, c)
		wantCode(t, p.recognizes(t, a, false), problem.Unauthenticated)
		wantCode(t, p.recognizes(t, a, true), problem.Unauthenticated)
		must(t, p.recognizes(t, c, false))
		p.confirm(t, c)
		if n := p.node(t, c); n.Status != wire.NodeStatusActive || *n.AgentVersion != "0.1.0" || !n.LastSeenAt.Equal(noon.Add(2*time.Hour)) {
			t.Errorf("%+v", n)
		}
	})
}

// TestNJ_6_Report holds that a report says that the node was seen, and when to renew.
func TestNJ_6_Report(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		a := p.admit(t, p.mint(t, p.pool(t, nil), nil), newMachine(t, nil))
		p.advance(90 * time.Second)
		out, err := p.Report(p.as(t, a), &wire.NodesReportInput{AgentVersion: strictjson.Some("0.2.0")})
		must(t, err)
		n := p.node(t, a)
		if !n.LastSeenAt.Equal(p.db.Now()) || *n.AgentVersion != "0.2.0" || n.Status != wire.NodeStatusJoining {
			t.Errorf("%+v", n)
		}
		if out.NodeID != a.NodeID || !out.RenewAfter.Equal(a.RenewAfter) || !out.ServerTime.Equal(p.db.Now()) {
			t.Errorf("%+v", out)
		}
		p.advance(30 * time.Second)
		p.report(t, a)
		if n := p.node(t, a); !n.LastSeenAt.Equal(p.db.Now()) || *n.AgentVersion != "0.2.0" {
			t.Errorf("%+v", n)
		}
	})
}

// TestNJ_6_Expired holds that a certificate that has ended may be renewed for
// seven days, and does nothing else.
func TestNJ_6_Expired(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		a := p.admit(t, p.mint(t, p.pool(t, nil), nil), newMachine(t, nil))
		p.confirm(t, a)
		must(t, p.recognizes(t, a, false))
		end := a.NotAfter
		p.advance(end.Sub(p.db.Now()))
		must(t, p.recognizes(t, a, false))
		p.advance(time.Second)
		wantCode(t, p.recognizes(t, a, false), problem.Unauthenticated)
		must(t, p.recognizes(t, a, true))
		p.advance(7*24*time.Hour - time.Second)
		caller, err := p.Recognize(t.Context(), chainOf(t, a.Certificate), true)
		must(t, err)
		out, err := p.Renew(nodes.WithCaller(t.Context(), caller), renewal(newMachine(t, nil)))
		must(t, err)
		must(t, p.recognizes(t, &out.Admitted, false))
		p.advance(time.Second)
		wantCode(t, p.recognizes(t, a, true), problem.Unauthenticated)
	})
}

// TestNJ_6_WhoIsNobody holds that a certificate that is not a node's of ours, in
// time and on record, is refused, for a renewal as for any call.
func TestNJ_6_WhoIsNobody(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		tok := p.mint(t, pool, nil)
		a := p.admit(t, tok, newMachine(t, nil))
		removed := p.admit(t, tok, newMachine(t, nil))
		p.remove(t, removed)
		renewed := p.admit(t, tok, newMachine(t, nil))
		p.confirm(t, p.renew(t, renewed, newMachine(t, nil)))
		server, err := p.ca.SignServer(t.Context(), []string{"localhost"}, newKey(t).Public(), noon)
		must(t, err)
		serverLeaf, err := x509.ParseCertificate(server[0])
		must(t, err)
		issuers := chainOf(t, a.Certificate)[1:]
		for name, chain := range map[string][]*x509.Certificate{
			"no certificate":               nil,
			"a removed node's":             chainOf(t, removed.Certificate),
			"a revoked one":                chainOf(t, renewed.Certificate),
			"a serial that is not there":   p.signed(t, p.ca, a.NodeID, ca.NewSerial()),
			"another node's serial":        p.signed(t, p.ca, a.NodeID, removed.Serial),
			"another node's name":          p.signed(t, p.ca, removed.NodeID, a.Serial),
			"a foreign CA's":               p.signed(t, newCA(t, noon), a.NodeID, a.Serial),
			"a server's":                   {serverLeaf},
			"the issuer's":                 issuers,
			"self-signed":                  selfSigned(t, chainOf(t, a.Certificate)[0]),
			"the issuer's before its node": append(issuers[:1:1], chainOf(t, a.Certificate)[0]),
		} {
			for _, renewal := range []bool{false, true} {
				if _, err := p.Recognize(t.Context(), chain, renewal); !fault.Is(err, problem.Unauthenticated) {
					t.Errorf("%s, for a renewal %v: %v", name, renewal, err)
				}
			}
		}
		must(t, p.recognizes(t, a, false))
		p.advance(-6 * time.Minute)
		wantCode(t, p.recognizes(t, a, false), problem.Unauthenticated) // not yet valid
	})
}

// signed is a chain of a CA for any name and serial.
func (p *process) signed(t testing.TB, by *lab, nodeID, serial string) []*x509.Certificate {
	t.Helper()
	number, err := ca.ParseSerial(serial)
	must(t, err)
	chain, err := by.SignNode(t.Context(), ca.Order{
		NodeID: nodeID, Public: newKey(t).Public(), Serial: number, NotBefore: noon.Add(-time.Minute), NotAfter: noon.Add(time.Hour),
	})
	must(t, err)
	return chainOf(t, chain)
}

// selfSigned says all that a certificate says, and is signed by its own key.
func selfSigned(t testing.TB, like *x509.Certificate) []*x509.Certificate {
	t.Helper()
	key, own := newKey(t), *like
	own.PublicKey = key.Public()
	der, err := x509.CreateCertificate(rand.Reader, &own, &own, key.Public(), key)
	must(t, err)
	certificate, err := x509.ParseCertificate(der)
	must(t, err)
	return []*x509.Certificate{certificate}
}

// TestNJ_6_Banned holds that a banned node is refused at its next call, also to
// renew and with an expired certificate, and serves again when the ban is lifted.
func TestNJ_6_Banned(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		a := p.admit(t, p.mint(t, p.pool(t, nil), nil), newMachine(t, nil))
		p.ban(t, a)
		for _, renewal := range []bool{false, true} {
			caller, err := p.another(t).Recognize(t.Context(), chainOf(t, a.Certificate), renewal)
			wantReason(t, err, problem.ReasonNodeBanned)
			if caller.Node.ID != a.NodeID { // for the audit
				t.Errorf("it is not said which node: %+v", caller.Node)
			}
		}
		p.advance(25 * time.Hour)
		wantReason(t, p.recognizes(t, a, true), problem.ReasonNodeBanned)
		p.advance(-25 * time.Hour)
		_, err := p.Unban(ops(t.Context()), &wire.NodesUnbanInput{TenantID: "acme", PoolID: "lab", NodeID: a.NodeID})
		must(t, err)
		must(t, p.recognizes(t, a, false))
	})
}
