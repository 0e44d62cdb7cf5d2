package nodes_test

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/nodes"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// TestNJ_6_Renewal holds that a node gets its next certificate for the same key
// and for a new one, and that the same request again gives the same one.
func TestNJ_6_Renewal(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		tok := p.mint(t, p.pool(t, nil), usable(1))
		m := newMachine(t, nil)
		a := p.admit(t, tok, m)
		p.confirm(t, a)
		p.advance(16 * time.Hour)
		fresh := newMachine(t, nil)
		for name, next := range map[string]machine{"the same key": m.request(t, template("next")), "a new key": fresh} {
			got := p.renew(t, a, next)
			if got.NodeID != a.NodeID || got.Serial == a.Serial || got.Replayed || got.TenantID != "acme" || got.PoolID != "lab" {
				t.Errorf("%s: %+v", name, got)
			}
			p.wantNext(t, got, next)
			p.advance(29 * time.Minute)
			wantSame(t, p.another(t).renew(t, a, next), got)
			p.advance(-29 * time.Minute)
		}
		// A node's own earlier key serves again as well.
		p.wantNext(t, p.renew(t, a, fresh.request(t, template("again"))), fresh)
		if uses := p.uses(t, tok); uses != 1 {
			t.Errorf("%d uses, want 1", uses)
		}
	})
}

func (p *process) wantNext(t *testing.T, a *api.Admission, m machine) {
	t.Helper()
	if key, ok := chainOf(t, a.Certificate)[0].PublicKey.(*ecdsa.PublicKey); !ok || !key.Equal(m.key.Public()) {
		t.Error("it is for another key")
	}
	if err := p.recognizes(t, a, false); err != nil {
		t.Error(err)
	}
}

// TestNJ_6_RenewalIsRepeatedForAWhile holds that a renewal can be repeated for
// 30 minutes or until it was confirmed.
func TestNJ_6_RenewalIsRepeatedForAWhile(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		m := newMachine(t, nil)
		a := p.admit(t, p.mint(t, p.pool(t, nil), nil), m)
		confirmed, late := newMachine(t, nil), newMachine(t, nil)
		p.renew(t, a, late)
		p.advance(30 * time.Minute)
		_, err := p.Renew(p.as(t, a), renewal(late))
		wantCode(t, err, problem.Conflict)
		// The request of the join is no fresh one either.
		_, err = p.Renew(p.as(t, a), renewal(m))
		wantCode(t, err, problem.Conflict)
		next := p.renew(t, a, confirmed)
		p.confirm(t, next)
		_, err = p.Renew(p.as(t, next), renewal(confirmed))
		wantCode(t, err, problem.Conflict)
	})
}

// TestNJ_6_ConfirmRevokesOlder holds that older certificates are refused once a
// newer one was confirmed, not before, and that confirming again changes nothing.
func TestNJ_6_ConfirmRevokesOlder(t *testing.T) {
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
		for _, each := range []*api.Admission{a, b, c} {
			must(t, p.recognizes(t, each, false))
		}
		p.confirm(t, b)
		wantCode(t, p.recognizes(t, a, false), problem.Unauthenticated)
		wantCode(t, p.recognizes(t, a, true), problem.Unauthenticated)
		must(t, p.recognizes(t, b, false))
		p.confirm(t, b)
		if n := p.node(t, b); n.Status != wire.NodeStatusActive || *n.AgentVersion != "0.1.0" || !n.LastSeenAt.Equal(noon.Add(2*time.Hour)) {
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

// TestNJ_5_FormerOwnerRenewsNothing holds that a call that was begun by a node's
// former machine gets no certificate once another one has taken the node over,
// or it was removed.
func TestNJ_5_FormerOwnerRenewsNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		tok, m := p.mint(t, pool, reclaiming), newMachine(t, nil)
		first := p.admit(t, tok, m)
		begun := p.as(t, first)
		p.advance(2 * time.Minute)
		second := p.admit(t, tok, m.reinstalled(t))
		if out, err := p.Renew(begun, renewal(newMachine(t, nil))); err == nil {
			t.Errorf("the former machine has a certificate of %s: %+v", second.NodeID, out.Admitted)
		}
		_, err := p.Confirm(begun, &wire.NodesConfirmInput{})
		if n := p.node(t, second); n.Status != wire.NodeStatusJoining {
			t.Errorf("the former machine has confirmed: %v", err)
		}
		must(t, p.recognizes(t, second, false))
		begun = p.as(t, second)
		p.remove(t, second)
		if out, err := p.Renew(begun, renewal(newMachine(t, nil))); err == nil {
			t.Errorf("a removed node has a certificate: %+v", out.Admitted)
		}
	})
}

// TestNJ_5_RenewalsKeyIsItsOwn holds that no renewal certifies a key that is another node's.
func TestNJ_5_RenewalsKeyIsItsOwn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		tok := p.mint(t, p.pool(t, nil), nil)
		m := newMachine(t, nil)
		other, a := p.admit(t, tok, m), p.admit(t, tok, newMachine(t, nil))
		for _, try := range []machine{m, m.request(t, template("next"))} {
			_, err := p.Renew(p.as(t, a), renewal(try))
			wantCode(t, err, problem.Conflict)
		}
		p.remove(t, other)
		_, err := p.Renew(p.as(t, a), renewal(m.request(t, template("later"))))
		wantCode(t, err, problem.Conflict)
		mine := newMachine(t, nil)
		p.renew(t, a, mine)
		wantCode(t, p.refused(t, tok, mine.request(t, template("join"))), problem.Conflict)
	})
}

// TestNJ_6_RenewalUnderRaces holds that 16 renewals with one request at once,
// over two processes, give one certificate, and those with many give each one.
func TestNJ_6_RenewalUnderRaces(t *testing.T) {
	t.Parallel()
	eachRunning(t, func(t *testing.T, p *process) {
		processes := []*process{p, p.another(t)}
		a := p.admit(t, p.mint(t, p.pool(t, nil), nil), newMachine(t, nil))
		for range 6 {
			next := []machine{newMachine(t, nil), newMachine(t, nil)}
			var mu sync.Mutex
			serials := []map[string]int{{}, {}}
			together(16, func(i int) {
				out, err := processes[i%2].Renew(processes[i%2].as(t, a), renewal(next[i/8]))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				serials[i/8][out.Admitted.Serial]++
			})
			if len(serials[0]) != 1 || len(serials[1]) != 1 {
				t.Fatalf("two requests have the certificates %v", serials)
			}
		}
	})
}

// TestNJ_3_RenewalUnsigned holds that a renewal that a server claimed and never
// signed is signed by the retry, and that sweeping one leaves node and key to renew.
func TestNJ_3_RenewalUnsigned(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		m := newMachine(t, nil)
		a := p.admit(t, p.mint(t, p.pool(t, nil), nil), m)
		node, err := p.db.Node(t.Context(), "acme", "lab", a.NodeID)
		must(t, err)
		next := newMachine(t, nil)
		request := next.parsed(t)
		claim := func() string {
			certificate := p.claim(token{}, request).Certificate
			certificate.NodeID = a.NodeID
			renewed, err := p.db.RenewCertificate(t.Context(), node, certificate)
			if err != nil || !renewed {
				t.Fatal(renewed, err)
			}
			return certificate.Serial
		}
		serial := claim()
		if got := p.renew(t, a, next); got.Serial != serial || !got.Replayed {
			t.Errorf("%+v, want the serial %s", got, serial)
		}
		next = newMachine(t, nil)
		request = next.parsed(t)
		serial = claim()
		p.advance(6 * time.Minute)
		must(t, p.DropUnsigned(t.Context()))
		must(t, p.recognizes(t, a, false))
		got := p.renew(t, a, next)
		if got.Serial == serial || got.Replayed {
			t.Errorf("%+v comes back after it was swept", got)
		}
		must(t, p.recognizes(t, got, false))
	})
}
