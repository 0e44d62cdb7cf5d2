package store_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// withNode joins a node that is named, with a token of its own.
func withNode(t testing.TB, db *store.DB, name string) store.Claim {
	t.Helper()
	n := count(t, db, "join_tokens")
	mint(t, db, tokenID(n), func(token *store.JoinToken) { token.MaxUses = 10 })
	return joined(t, db, newClaim(tokenID(n), name))
}

// nextCertificate is one for a node's renewal, of which everything but the node follows from name.
func nextCertificate(nodeID, name string) store.NodeCertificate {
	c := newClaim("", name).Certificate
	c.NodeID = nodeID
	return c
}

func renew(t testing.TB, db *store.DB, next store.NodeCertificate) bool {
	t.Helper()
	renewed, err := db.RenewCertificate(t.Context(), node(t, db, next.NodeID), "", next)
	must(t, err)
	return renewed
}

func TestNJ_3_SignedChain_TheFirstSignatureIsKept(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		atNoon(db)
		withLab(t, db)
		mint(t, db, tokenID(1), nil)
		c := claim(t, db, newClaim(tokenID(1), "a"))
		if c.Certificate.Chain != "" {
			t.Errorf("a claim has the chain %q", c.Certificate.Chain)
		}
		handles := replicas(t, db)
		chains := make([]string, 8)
		together(8, func(i int) {
			var err error
			if chains[i], err = handles[i%2].SignedChain(t.Context(), c.Certificate.Serial, fmt.Sprint("chain ", i)); err != nil {
				t.Error(err)
			}
		})
		if slices.ContainsFunc(chains, func(chain string) bool { return chain != chains[0] }) {
			t.Errorf("several chains were told: %v", chains)
		}
		if kept := certificate(t, db, c.Certificate.Serial).Chain; kept != chains[0] {
			t.Errorf("the chain %q is kept, and %q was told", kept, chains[0])
		}
		_, err := db.SignedChain(t.Context(), "swept", "chain")
		wantCode(t, err, problem.NotFound)
		_, err = db.NodeCertificate(t.Context(), "swept")
		wantCode(t, err, problem.NotFound)
	})
}

func TestCaller_KnowsNodeCertificateAndWhatItsTrustHangsOn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		pool := lab()
		pool.TenantID, pool.PlatformOperated = "acme", true
		pool.SiteTenantID, pool.SiteID = "platform", "munich"
		write(t, db, func(tx *store.Tx) error {
			if _, _, err := tx.CreateSite(t.Context(), store.Site{TenantID: "platform", SiteID: "munich", Custom: true}); err != nil {
				return err
			}
			_, _, err := tx.CreatePool(t.Context(), pool)
			return err
		})
		c := withNode(t, db, "a")
		clock.Advance(time.Minute)
		must(t, db.ConfirmCertificate(t.Context(), c.Certificate, "0.1"))
		next := nextCertificate(c.Node.ID, "next")
		next.NotAfter = next.NotAfter.Add(time.Hour)
		renew(t, db, next)
		sign(t, db, next.Serial)
		for _, serial := range []string{c.Certificate.Serial, next.Serial} { // each certificate is told as itself, also when it is not the newest
			caller, err := db.Caller(t.Context(), serial)
			must(t, err)
			wantNode := node(t, db, "nd_a")
			if wantNode.CertificateSerial != next.Serial || !wantNode.CertificateNotAfter.Equal(next.NotAfter) {
				t.Errorf("the newest certificate is %s until %v", wantNode.CertificateSerial, wantNode.CertificateNotAfter)
			}
			wantNode.CertificateSerial, wantNode.CertificateNotAfter = "", nil
			got := caller.Node
			got.CertificateSerial, got.CertificateNotAfter = "", nil
			if want := certificate(t, db, serial); !reflect.DeepEqual(caller.Certificate, want) {
				t.Errorf("certificate %+v\nwant %+v", caller.Certificate, want)
			}
			if !reflect.DeepEqual(got, wantNode) || !caller.PlatformOperated || caller.SiteTenantID != "platform" || !caller.SiteCustom {
				t.Errorf("caller %+v\nwant the node %+v", caller, wantNode)
			}
		}
		write(t, db, func(tx *store.Tx) error { // whatever became of it
			_, err := tx.BanNode(t.Context(), c.Node, "acme/sec", "")
			must(t, err)
			_, err = tx.RemoveNode(t.Context(), "acme", "lab", "nd_a", "acme/ops")
			return err
		})
		caller, err := db.Caller(t.Context(), next.Serial)
		must(t, err)
		if caller.BannedAt == nil || caller.RemovedAt == nil || caller.Certificate.RevokedAt == nil || !caller.Certificate.RevokedAt.Equal(clock.Now()) {
			t.Errorf("caller %+v", caller)
		}
	})
}

func TestNJ_6_Seen(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		a, b := withNode(t, db, "a"), withNode(t, db, "b")
		for _, c := range []struct{ version, want string }{{"", ""}, {"0.1", "0.1"}, {"", "0.1"}, {"0.2", "0.2"}} {
			clock.Advance(30 * time.Second)
			must(t, db.Seen(t.Context(), a.Node.ID, c.version))
			if n := node(t, db, a.Node.ID); n.LastSeenAt == nil || !n.LastSeenAt.Equal(clock.Now()) || n.AgentVersion != c.want || n.ConfirmedAt != nil {
				t.Errorf("after %q: %+v", c.version, n)
			}
		}
		if n := node(t, db, b.Node.ID); n.LastSeenAt != nil {
			t.Errorf("another node was seen: %+v", n)
		}
		must(t, db.Seen(t.Context(), "nd_none", ""))
	})
}

// TestNJ_3_Confirm_EndsAllOthers holds that a renewal ends the one before it
// that was not confirmed, never the certificate that it was asked with, and that
// a confirmation ends all others.
func TestNJ_3_Confirm_EndsAllOthers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		other := withNode(t, db, "other")
		serials := []string{withNode(t, db, "a").Certificate.Serial}
		renewedWith := func(with string) {
			clock.Advance(time.Minute)
			next := nextCertificate("nd_a", fmt.Sprint(len(serials)))
			renewed, err := db.RenewCertificate(t.Context(), node(t, db, "nd_a"), with, next)
			if err != nil || !renewed {
				t.Fatal(renewed, err)
			}
			sign(t, db, next.Serial)
			serials = append(serials, next.Serial)
		}
		wantValid := func(what string, valid ...int) {
			t.Helper()
			for i, serial := range serials {
				if c := certificate(t, db, serial); (c.RevokedAt == nil) != slices.Contains(valid, i) {
					t.Errorf("%s: certificate %d is revoked at %v", what, i, c.RevokedAt)
				}
			}
			if c := certificate(t, db, other.Certificate.Serial); c.RevokedAt != nil {
				t.Errorf("%s: another node's certificate is revoked", what)
			}
		}
		renewedWith(serials[0])
		wantValid("renewed", 0, 1)
		renewedWith(serials[0])
		wantValid("renewed again", 0, 2)
		clock.Advance(time.Minute)
		at := clock.Now()
		must(t, db.ConfirmCertificate(t.Context(), certificate(t, db, serials[2]), "0.1"))
		wantValid("confirmed", 2)
		if n := node(t, db, "nd_a"); n.ConfirmedAt == nil || !n.ConfirmedAt.Equal(at) || !n.LastSeenAt.Equal(at) || n.AgentVersion != "0.1" {
			t.Errorf("node %+v", n)
		}
		clock.Advance(time.Minute)
		for what, serial := range map[string]string{"confirming again": serials[2], "confirming what is revoked": serials[0]} {
			unchanged(t, db, what, func() { must(t, db.ConfirmCertificate(t.Context(), certificate(t, db, serial), "0.2")) })
		}
		renewedWith(serials[2])
		wantValid("the next renewal", 2, 3)
		must(t, db.ConfirmCertificate(t.Context(), certificate(t, db, serials[3]), "")) // the first confirmation of the node is kept
		wantValid("confirmed, too", 3)
		if n := node(t, db, "nd_a"); !n.ConfirmedAt.Equal(at) || !n.LastSeenAt.Equal(clock.Now()) || n.AgentVersion != "0.1" {
			t.Errorf("node %+v", n)
		}
	})
}

func TestNJ_6_Renew_KeysAndReplays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		a, b := withNode(t, db, "a"), withNode(t, db, "b")
		clock.Advance(time.Minute)
		fresh := nextCertificate("nd_a", "fresh")
		if _, err := db.Renewal(t.Context(), "nd_a", fresh.CSRSHA256); true {
			wantCode(t, err, problem.NotFound)
		}
		if !renew(t, db, fresh) {
			t.Error("the first renewal is none")
		}
		want := fresh
		want.NewKey, want.CreatedAt = true, clock.Now()
		if got, err := db.Renewal(t.Context(), "nd_a", fresh.CSRSHA256); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("renewal %+v, error %v; want %+v", got, err, want)
		}
		same := nextCertificate("nd_a", "same") // the key that it has, or had
		same.KeySHA256 = a.Certificate.KeySHA256
		if !renew(t, db, same) || certificate(t, db, same.Serial).NewKey {
			t.Error("a renewal with the same key is none, or holds the key twice")
		}
		again := fresh // another call with the same request
		again.Serial = "another"
		unchanged(t, db, "the same request", func() {
			if renew(t, db, again) {
				t.Error("the same request was renewed twice")
			}
		})
		for what, key := range map[string]string{"another node's key": b.Certificate.KeySHA256, "another node's new key": fresh.KeySHA256} {
			nodeID := map[string]string{b.Certificate.KeySHA256: "nd_a", fresh.KeySHA256: "nd_b"}[key]
			thief := nextCertificate(nodeID, what)
			thief.KeySHA256 = key
			unchanged(t, db, what, func() {
				_, err := db.RenewCertificate(t.Context(), node(t, db, nodeID), "", thief)
				wantCode(t, err, problem.Conflict)
			})
		}
		handles := replicas(t, db)
		was, renewals := node(t, db, "nd_a"), make([]int, 8)
		together(8, func(i int) {
			next := nextCertificate("nd_a", "raced")
			next.Serial = fmt.Sprint("raced ", i)
			renewed, err := handles[i%2].RenewCertificate(t.Context(), was, "", next)
			if err != nil {
				t.Error(err)
			}
			if renewed {
				renewals[i] = 1
			}
		})
		if got := tally(renewals); got != "0:7 1:1" {
			t.Errorf("of eight calls with one request: %s", got)
		}
	})
}

func TestJT_40_Renew_TrustFallsOnceAndNeverRises(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		atNoon(db)
		withLab(t, db)
		mint(t, db, tokenID(0), nil)
		c := newClaim(tokenID(0), "a")
		c.Node.Trust, c.Certificate.Trust = "platform", "platform"
		joined(t, db, c)
		before := node(t, db, "nd_a")
		next := func(name, trust string) store.NodeCertificate {
			c := nextCertificate("nd_a", name)
			c.Trust = trust
			return c
		}
		eventsSince(t, db)
		renew(t, db, next("same", "platform"))
		if got := eventsSince(t, db); len(got) != 0 {
			t.Errorf("events %v", got)
		}
		lower := next("lower", "tenant-controlled")
		renew(t, db, lower)
		want := []string{`security.node.trust-lowered nd_a {"from":"platform","nodeId":"nd_a","serial":"` + lower.Serial + `","to":"tenant-controlled"}`}
		if got := eventsSince(t, db); !slices.Equal(got, want) || node(t, db, "nd_a").Trust != "tenant-controlled" {
			t.Errorf("trust %s, events %v, want %v", node(t, db, "nd_a").Trust, got, want)
		}
		renew(t, db, lower)
		unchanged(t, db, "a renewal that was decided before trust fell", func() {
			_, err := db.RenewCertificate(t.Context(), before, "", next("late", "platform"))
			wantCode(t, err, problem.Conflict)
		})
		if got := eventsSince(t, db); len(got) != 0 {
			t.Errorf("events %v", got)
		}
	})
}

func TestNJ_5_Renew_WhoLostTheNodeGetsNoCertificate(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		lost, removed := withNode(t, db, "lost"), withNode(t, db, "removed")
		was := map[string]store.Node{"nd_lost": node(t, db, "nd_lost"), "nd_removed": node(t, db, "nd_removed")}
		clock.Advance(time.Minute)
		claim(t, db, takeover(t, db, lost.Node.TokenID, "new", lost))
		write(t, db, func(tx *store.Tx) error {
			_, err := tx.RemoveNode(t.Context(), "acme", "lab", removed.Node.ID, "acme/ops")
			return err
		})
		for id, before := range was {
			unchanged(t, db, id, func() {
				_, err := db.RenewCertificate(t.Context(), before, "", nextCertificate(id, "next of "+id))
				wantCode(t, err, problem.Conflict)
			})
		}
		_, err := db.RenewCertificate(t.Context(), store.Node{ID: "nd_none"}, "", nextCertificate("nd_none", "none"))
		if fault.From(err).Code != problem.NotFound {
			t.Errorf("error is %v", err)
		}
	})
}

func TestForgetCertificates_ThoseThatEndedAndHoldNoKey(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		atNoon(db)
		withLab(t, db)
		c := withNode(t, db, "a")
		for i := range 6 {
			next := nextCertificate("nd_a", fmt.Sprint(i))
			next.KeySHA256, next.NotAfter = c.Certificate.KeySHA256, noon.Add(time.Duration(i)*time.Hour)
			renew(t, db, next)
		}
		handles, n := replicas(t, db), make([]int, 4)
		together(4, func(i int) {
			var err error
			if n[i], err = handles[i%2].ForgetCertificates(t.Context(), noon.Add(4*time.Hour), 3); err != nil {
				t.Error(err)
			}
		})
		last, err := db.ForgetCertificates(t.Context(), noon.Add(4*time.Hour), 3) // what others held locked was left
		must(t, err)
		if sum := n[0] + n[1] + n[2] + n[3] + last; sum != 4 || slices.Max(n) > 3 {
			t.Errorf("%v and %d were forgotten, want 4", n, last)
		}
		if n := count(t, db, "node_certificates"); n != 3 {
			t.Errorf("%d are left, want the one with the key and two that have not ended", n)
		}
		if n, err := db.ForgetCertificates(t.Context(), noon.AddDate(1, 0, 0), 100); n != 2 || err != nil || !certificate(t, db, c.Certificate.Serial).NewKey {
			t.Errorf("%d were forgotten, error %v", n, err)
		}
	})
}
