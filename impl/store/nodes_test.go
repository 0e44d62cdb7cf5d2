package store_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// change is a change of a node by an operator.
type change func(tx *store.Tx, n store.Node) (store.Node, error)

func ban(t testing.TB) change {
	return func(tx *store.Tx, n store.Node) (store.Node, error) {
		return tx.BanNode(t.Context(), n, "acme/sec", "seen in another rack")
	}
}

func unban(t testing.TB) change {
	return func(tx *store.Tx, n store.Node) (store.Node, error) {
		return tx.UnbanNode(t.Context(), n, "acme/sec")
	}
}

func remove(t testing.TB) change {
	return func(tx *store.Tx, n store.Node) (store.Node, error) {
		return tx.RemoveNode(t.Context(), n.TenantID, n.PoolID, n.ID, "acme/ops")
	}
}

// changed makes a change in a transaction of its own.
func changed(t testing.TB, db *store.DB, do change, n store.Node) (store.Node, error) {
	t.Helper()
	err := db.Write(t.Context(), func(tx *store.Tx) (err error) {
		n, err = do(tx, n)
		return err
	})
	return n, err
}

func TestNodes_BanUnbanRemove_OnceAndUnchangedAfterwards(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		c := withNode(t, db, "a")
		other := withNode(t, db, "other")
		otherBefore := node(t, db, other.Node.ID)
		want := node(t, db, "nd_a")
		eventsSince(t, db)
		step := func(name string, do change, event string) {
			t.Helper()
			clock.Advance(time.Minute)
			for i := range 2 {
				got, err := changed(t, db, do, want)
				must(t, err)
				if i == 0 && event != "" {
					want = got
				}
				if stored := node(t, db, "nd_a"); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(stored, want) {
					t.Errorf("%s, call %d: %+v, stored %+v, want %+v", name, i+1, got, stored, want)
				}
				var events []string
				if i == 0 && event != "" {
					events = []string{event}
				}
				if got := eventsSince(t, db); !slices.Equal(got, events) {
					t.Errorf("%s, call %d: events %v, want %v", name, i+1, got, events)
				}
				clock.Advance(time.Minute)
			}
		}
		at := func(past time.Duration) *time.Time { moment := noon.Add(past * time.Minute); return &moment }
		step("unban what is not banned", unban(t), "")
		step("ban", ban(t), `security.node.banned nd_a {"bannedBy":"acme/sec","nodeId":"nd_a"}`)
		if want.BannedAt == nil || !want.BannedAt.Equal(*at(4)) || want.BannedBy != "acme/sec" || want.Note != "seen in another rack" {
			t.Errorf("banned %+v", want)
		}
		step("unban", unban(t), `security.node.unbanned nd_a {"nodeId":"nd_a","unbannedBy":"acme/sec"}`)
		if want.BannedAt != nil || want.BannedBy != "" || want.Note != "" {
			t.Errorf("unbanned %+v", want)
		}
		if c := certificate(t, db, c.Certificate.Serial); c.RevokedAt != nil {
			t.Error("a ban has ended a certificate, which serves again after it")
		}
		step("ban again", ban(t), `security.node.banned nd_a {"bannedBy":"acme/sec","nodeId":"nd_a"}`)
		step("remove", remove(t), `security.node.removed nd_a {"nodeId":"nd_a","removedBy":"acme/ops"}`)
		if want.RemovedAt == nil || !want.RemovedAt.Equal(*at(13)) || want.BannedAt == nil || want.CertificateSerial != "" {
			t.Errorf("removed %+v", want)
		}
		if c := certificate(t, db, c.Certificate.Serial); c.RevokedAt == nil || !c.RevokedAt.Equal(*at(13)) {
			t.Errorf("certificate %+v", c)
		}
		if got := holdings(t, db, "serial", "a", "other"); got != "other=nd_other" {
			t.Errorf("held by %s", got)
		}
		for name, do := range map[string]change{"ban": ban(t), "unban": unban(t)} {
			unchanged(t, db, name+" after removal", func() {
				_, err := changed(t, db, do, want)
				wantCode(t, err, problem.InvalidState)
			})
		}
		if got := node(t, db, other.Node.ID); !reflect.DeepEqual(got, otherBefore) {
			t.Errorf("another node became %+v", got)
		}
		again := newClaim(other.Node.TokenID, "again") // its machine may join again, with a new key
		again.Tells = c.Tells
		claim(t, db, again)
		again = newClaim(other.Node.TokenID, "same key")
		again.Certificate.KeySHA256 = c.Certificate.KeySHA256
		if outcome := tryClaim(t, db, again); outcome != store.KeyTaken {
			t.Errorf("the key of a removed node: outcome %d", outcome)
		}
	})
}

func TestNodes_ElsewhereIsNotFound(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		withNode(t, db, "a")
		for _, at := range [][3]string{{"acme", "lab", "nd_none"}, {"acme", "other", "nd_a"}, {"umbrella", "lab", "nd_a"}} {
			for name, do := range map[string]change{"ban": ban(t), "unban": unban(t), "remove": remove(t)} {
				unchanged(t, db, fmt.Sprint(name, at), func() {
					_, err := changed(t, db, do, store.Node{TenantID: at[0], PoolID: at[1], ID: at[2]})
					wantCode(t, err, problem.NotFound)
				})
			}
			_, err := db.Node(t.Context(), at[0], at[1], at[2])
			wantCode(t, err, problem.NotFound)
		}
	})
}

func TestNodes_ParallelChangesPublishOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		c := withNode(t, db, "a")
		handles := replicas(t, db)
		for _, do := range []change{ban(t), remove(t)} {
			together(8, func(i int) {
				if _, err := changed(t, handles[i%2], do, c.Node); err != nil {
					t.Error(err)
				}
			})
		}
		for _, kind := range []string{"banned", "removed"} {
			if n := published(t, db, "security.node."+kind); n != 1 {
				t.Errorf("%s was published %d times", kind, n)
			}
		}
	})
}

func TestNodes_PagesInTheOrderOfTheirIDs(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		atNoon(db)
		withLab(t, db)
		mint(t, db, tokenID(0), func(token *store.JoinToken) { token.MaxUses = 10 })
		for _, i := range []int{3, 0, 6, 1, 5, 2, 4} { // 1 and 4 are removed, 2 is banned
			c := claim(t, db, newClaim(tokenID(0), fmt.Sprint(i)))
			if i%3 == 1 {
				_, err := changed(t, db, remove(t), c.Node)
				must(t, err)
			} else if i == 2 {
				_, err := changed(t, db, ban(t), c.Node)
				must(t, err)
			}
		}
		check := func(q store.NodeQuery, want string) {
			t.Helper()
			q.TenantID, q.PoolID = "acme", "lab"
			page, more, err := db.Nodes(t.Context(), q)
			must(t, err)
			var got []string
			for _, n := range page {
				got = append(got, n.ID[len("nd_"):])
				if !reflect.DeepEqual(n, node(t, db, n.ID)) {
					t.Errorf("listed %+v, read %+v", n, node(t, db, n.ID))
				}
			}
			if got := fmt.Sprint(got, more); got != want {
				t.Errorf("%+v: %s, want %s", q, got, want)
			}
		}
		check(store.NodeQuery{Limit: 5}, "[0 2 3 5 6] false")
		check(store.NodeQuery{Limit: 2}, "[0 2] true")
		check(store.NodeQuery{Limit: 2, After: "nd_2"}, "[3 5] true")
		check(store.NodeQuery{Limit: 9, After: "nd_5"}, "[6] false")
		check(store.NodeQuery{Limit: 3, IncludeRemoved: true}, "[0 1 2] true")
		check(store.NodeQuery{Limit: 9, IncludeRemoved: true, After: "nd_3"}, "[4 5 6] false")
		for _, at := range [][2]string{{"acme", "other"}, {"umbrella", "lab"}} {
			page, more, err := db.Nodes(t.Context(), store.NodeQuery{TenantID: at[0], PoolID: at[1], Limit: 9, IncludeRemoved: true})
			if must(t, err); len(page) != 0 || more {
				t.Errorf("%v has %+v", at, page)
			}
		}
	})
}

func TestForgetNodes_RemovedLongAgoWithAllThatIsTheirs(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		mint(t, db, tokenID(0), func(token *store.JoinToken) { token.MaxUses, token.ExpiresAt = 100, noon.Add(24*time.Hour) })
		for i := range 9 {
			c := joined(t, db, newClaim(tokenID(0), fmt.Sprint(i)))
			renew(t, db, nextCertificate(c.Node.ID, fmt.Sprint("next", i)))
			if i < 7 {
				_, err := changed(t, db, remove(t), c.Node)
				must(t, err)
			}
			clock.Advance(time.Minute)
		}
		before := noon.Add(6 * time.Minute) // the first six
		handles, n := replicas(t, db), make([]int, 4)
		together(4, func(i int) {
			var err error
			if n[i], err = handles[i%2].ForgetNodes(t.Context(), before, 4); err != nil {
				t.Error(err)
			}
		})
		last, err := db.ForgetNodes(t.Context(), before, 4)
		must(t, err)
		if sum := n[0] + n[1] + n[2] + n[3] + last; sum != 6 || slices.Max(n) > 4 {
			t.Errorf("%v and %d were forgotten, want 6", n, last)
		}
		if n, err := db.ForgetNodes(t.Context(), before, 4); n != 0 || err != nil {
			t.Errorf("%d were forgotten again, error %v", n, err)
		}
		nodes, certificates, identifiers := count(t, db, "nodes"), count(t, db, "node_certificates"), count(t, db, "node_identifiers")
		if nodes != 3 || certificates != 6 || identifiers != 2 {
			t.Errorf("%d nodes, %d certificates and %d identifiers are left", nodes, certificates, identifiers)
		}
	})
}
