package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// sweepUnsigned drops all claims that are not signed, and says how many there were.
func sweepUnsigned(t testing.TB, db *store.DB) int {
	t.Helper()
	n, err := db.DropUnsigned(t.Context(), db.Now().Add(time.Microsecond), 100)
	must(t, err)
	return n
}

func uses(t testing.TB, db *store.DB, tokenID string) int {
	t.Helper()
	token, err := db.JoinToken(t.Context(), tokenID)
	must(t, err)
	return int(token.Uses)
}

func TestNJ_3_DropUnsigned_AsIfItHadNeverJoined(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		mint(t, db, tokenID(0), nil)
		before := rows(t, db)
		c := claim(t, db, newClaim(tokenID(0), "a"))
		clock.Advance(5 * time.Minute)
		if n, err := db.EndJoinTokens(t.Context(), 10); n != 1 || err != nil {
			t.Errorf("%d tokens are used up, error %v", n, err)
		}
		for _, c := range []struct {
			before time.Time
			limit  int
		}{{noon, 100}, {clock.Now(), 0}} {
			if n, err := db.DropUnsigned(t.Context(), c.before, c.limit); n != 0 || err != nil {
				t.Errorf("%d were dropped before %v, error %v", n, c.before, err)
			}
		}
		if n := sweepUnsigned(t, db); n != 1 {
			t.Errorf("%d were dropped", n)
		}
		after := rows(t, db)
		before["events"], after["events"] = nil, nil
		if fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("the rows are %v, and were %v", after, before)
		}
		if got, want := eventsSince(t, db), `security.node.removed nd_a {"nodeId":"nd_a","removedBy":"platform/bcserver"}`; !slices.Contains(got, want) || published(t, db, "security.node.removed") != 1 {
			t.Errorf("events %v", got)
		}
		if _, err := db.SignedChain(t.Context(), c.Certificate.Serial, "late"); true {
			wantCode(t, err, problem.NotFound)
		}
		if n := sweepUnsigned(t, db); n != 0 {
			t.Errorf("%d were dropped again", n)
		}
		joined(t, db, newClaim(tokenID(0), "a")) // the same machine, key and request
		if n := sweepUnsigned(t, db); n != 0 || uses(t, db, tokenID(0)) != 1 {
			t.Errorf("%d of none were dropped, %d uses", n, uses(t, db, tokenID(0)))
		}
	})
}

// What happened to a node before its first certificate was swept stays so.
// A chain is kept without waiting for the disk, so that it can be lost with the
// power. Whoever has called with the certificate proves that it was signed.
func TestNJ_3_DropUnsigned_ALostChainOfWhoHasCalledStays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		atNoon(db)
		withLab(t, db)
		mint(t, db, tokenID(0), nil)
		c := claim(t, db, newClaim(tokenID(0), "a"))
		caller, err := db.Caller(t.Context(), c.Certificate.Serial)
		must(t, err)
		must(t, db.ConfirmCertificate(t.Context(), caller.Certificate, "1.0"))
		if n := sweepUnsigned(t, db); n != 0 {
			t.Errorf("%d were dropped", n)
		}
		if n := uses(t, db, tokenID(0)); n != 1 {
			t.Errorf("the token has %d uses", n)
		}
		if got := certificate(t, db, c.Certificate.Serial); got.ConfirmedAt == nil {
			t.Error("the certificate is not confirmed")
		}
	})
}

func TestNJ_3_DropUnsigned_ANodeThatWasTakenOverRemovedOrBannedStays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		mint(t, db, tokenID(0), func(token *store.JoinToken) { token.MaxUses = 100 })
		taken := claim(t, db, newClaim(tokenID(0), "taken"))
		removed := claim(t, db, newClaim(tokenID(0), "removed"))
		banned := claim(t, db, newClaim(tokenID(0), "banned"))
		reclaimed := joined(t, db, newClaim(tokenID(0), "reclaimed"))
		clock.Advance(time.Minute)
		over := joined(t, db, takeover(t, db, tokenID(0), "new", taken))
		for do, c := range map[string]store.Claim{"remove": removed, "ban": banned} {
			_, err := changed(t, db, map[string]change{"remove": remove(t), "ban": ban(t)}[do], c.Node)
			must(t, err)
		}
		again := claim(t, db, takeover(t, db, tokenID(0), "unsigned", reclaimed))
		if n := uses(t, db, tokenID(0)); n != 6 {
			t.Errorf("%d uses", n)
		}
		clock.Advance(time.Minute)
		if n := sweepUnsigned(t, db); n != 4 {
			t.Errorf("%d were dropped, want 4", n)
		}
		for _, c := range []store.Claim{taken, removed, banned, again} {
			if _, err := db.NodeCertificate(t.Context(), c.Certificate.Serial); true {
				wantCode(t, err, problem.NotFound)
			}
		}
		if n := node(t, db, "nd_taken"); n.CertificateSerial != over.Certificate.Serial || n.RemovedAt != nil {
			t.Errorf("the node that was taken over is %+v", n)
		}
		if n := node(t, db, "nd_removed"); n.RemovedAt == nil {
			t.Errorf("the node that was removed is %+v", n)
		}
		if n := node(t, db, "nd_banned"); n.BannedAt == nil {
			t.Errorf("the node that was banned is %+v", n)
		}
		if n := node(t, db, "nd_reclaimed"); n.CertificateSerial != "" || n.RemovedAt != nil {
			t.Errorf("the node of which the take-over was not signed is %+v", n)
		}
		if got, want := holdings(t, db, "serial", "taken", "removed", "banned", "reclaimed"), "banned=nd_banned reclaimed=nd_reclaimed taken=nd_taken"; got != want {
			t.Errorf("held by %s, want %s", got, want)
		}
		if n, ledger := uses(t, db, tokenID(0)), count(t, db, "join_uses"); n != 2 || ledger != 2 {
			t.Errorf("%d uses and %d in the ledger, want 2", n, ledger)
		}
		if n := published(t, db, "security.node.removed"); n != 1 {
			t.Errorf("%d nodes were removed", n)
		}
	})
}

func TestNJ_3_DropUnsigned_Renewals(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		c := withNode(t, db, "a")
		first, second := nextCertificate("nd_a", "first"), nextCertificate("nd_a", "second")
		second.KeySHA256 = first.KeySHA256
		renew(t, db, first)
		clock.Advance(time.Minute)
		renew(t, db, second)
		sign(t, db, second.Serial)
		clock.Advance(time.Minute)
		if n := sweepUnsigned(t, db); n != 1 {
			t.Errorf("%d were dropped", n)
		}
		if n := node(t, db, "nd_a"); n.RemovedAt != nil || uses(t, db, c.Node.TokenID) != 1 {
			t.Errorf("node %+v, %d uses", n, uses(t, db, c.Node.TokenID))
		}
		if !certificate(t, db, second.Serial).NewKey {
			t.Error("nobody holds the key of a certificate that is valid")
		}
		thief := newClaim(c.Node.TokenID, "thief")
		thief.Certificate.KeySHA256 = second.KeySHA256
		if outcome := tryClaim(t, db, thief); outcome != store.KeyTaken {
			t.Errorf("outcome %d with a key that is in use", outcome)
		}
		renew(t, db, first) // the same request may be made again
	})
}

// A claim that is signed while two replicas sweep is kept whole, or gone whole.
func TestNJ_3_DropUnsigned_RacesTheSignature(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		rounds := 20
		if !isPostgres(db) {
			rounds = 6
		}
		mint(t, db, tokenID(0), func(token *store.JoinToken) { token.MaxUses = 100 })
		handles, kept, dropped := replicas(t, db), 0, 0
		for round := range rounds {
			c := claim(t, db, newClaim(tokenID(0), fmt.Sprint(round)))
			n := make([]int, 2)
			var signed error
			together(3, func(i int) {
				if i == 2 {
					_, signed = db.SignedChain(t.Context(), c.Certificate.Serial, "chain")
					return
				}
				var err error
				if n[i], err = handles[i].DropUnsigned(t.Context(), db.Now().Add(time.Hour), 10); err != nil {
					t.Error(err)
				}
			})
			rows := count(t, db, "nodes WHERE id = '"+c.Node.ID+"'") + count(t, db, "node_certificates WHERE node_id = '"+c.Node.ID+"'") +
				count(t, db, "join_uses WHERE node_id = '"+c.Node.ID+"'") + count(t, db, "node_identifiers WHERE node_id = '"+c.Node.ID+"'")
			switch sum := n[0] + n[1]; {
			case signed == nil && sum == 0 && rows == 4:
				kept++
			case fault.Is(signed, problem.NotFound) && sum == 1 && rows == 0:
				dropped++
			default:
				t.Fatalf("round %d: signing says %v, %v were dropped, %d rows", round, signed, n, rows)
			}
		}
		if n := uses(t, db, tokenID(0)); n != kept || published(t, db, "security.node.removed") != dropped {
			t.Errorf("%d uses, %d kept; %d removed, %d dropped", n, kept, published(t, db, "security.node.removed"), dropped)
		}
	})
}
