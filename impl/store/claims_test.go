package store_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

func TestNJ_2_ParallelClaims_NeverOneTooMany(t *testing.T) {
	t.Parallel()
	const machines = 64
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		rounds := map[int]int{1: 12, 5: 12, 100: 4} // of each limit
		if !isPostgres(db) {
			rounds = map[int]int{1: 4, 5: 4, 100: 1} // it has one writer, so there is less to find
		}
		withLab(t, db)
		handles := replicas(t, db)
		n := 0
		for _, limit := range []int{1, 5, 100} {
			for range rounds[limit] {
				id := tokenID(n)
				n++
				mint(t, db, id, func(token *store.JoinToken) { token.MaxUses = int64(limit) })
				outcomes := make([]store.ClaimOutcome, machines)
				together(machines, func(i int) {
					var err error
					outcomes[i], err = handles[i%2].ClaimJoin(t.Context(), newClaim(id, fmt.Sprint(n, "-", i)))
					if err != nil {
						t.Error(err)
					}
				})
				admitted := min(limit, machines)
				want := make([]store.ClaimOutcome, machines)
				for i := admitted; i < machines; i++ {
					want[i] = store.TokenEnded
				}
				if got := tally(outcomes); got != tally(want) {
					t.Fatalf("limit %d: outcomes %s, want %s", limit, got, tally(want))
				}
				token, err := db.JoinToken(t.Context(), id)
				must(t, err)
				uses, nodes := count(t, db, "join_uses WHERE token_id = '"+id+"'"), count(t, db, "nodes WHERE token_id = '"+id+"'")
				if int(token.Uses) != admitted || uses != admitted || nodes != admitted {
					t.Fatalf("limit %d: %d uses, %d rows in the ledger, %d nodes; want %d", limit, token.Uses, uses, nodes, admitted)
				}
			}
		}
		nodes := count(t, db, "nodes")
		for _, of := range []string{"join_uses", "node_certificates", "node_identifiers", "events WHERE type = 'security.node.joined'"} {
			if n := count(t, db, of); n != nodes {
				t.Errorf("%d nodes and %d %s", nodes, n, of)
			}
		}
	})
}

// Every outcome but Claimed leaves each row of each table as it was.
func TestNJ_2_ClaimThatFails_ChangesNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		const many, used, over, revoked, waiting = 1, 2, 3, 4, 5
		for n, maxUses := range map[int]int64{many: 100, used: 1, over: 100, revoked: 100, waiting: 100} {
			mint(t, db, tokenID(n), func(token *store.JoinToken) {
				token.MaxUses, token.ExpiresAt = maxUses, noon.Add(24*time.Hour)
				if n == over {
					token.ExpiresAt = noon.Add(time.Minute)
				}
			})
		}
		first := joined(t, db, newClaim(tokenID(many), "first"))
		joined(t, db, newClaim(tokenID(used), "used"))
		revoke(t, db, tokenID(revoked))
		clock.Set(noon.Add(time.Minute))

		banned := joined(t, db, newClaim(tokenID(many), "banned"))
		overBanned := takeover(t, db, tokenID(many), "over-banned", banned)
		removed := joined(t, db, newClaim(tokenID(many), "removed"))
		overRemoved := takeover(t, db, tokenID(many), "over-removed", removed)
		seen := joined(t, db, newClaim(tokenID(many), "seen"))
		overSeen := takeover(t, db, tokenID(many), "over-seen", seen)
		again := joined(t, db, newClaim(tokenID(many), "again"))
		overAgain := takeover(t, db, tokenID(many), "over-again", again)
		confirmed := joined(t, db, newClaim(tokenID(many), "confirmed"))
		overConfirmed := takeover(t, db, tokenID(many), "over-confirmed", confirmed)
		write(t, db, func(tx *store.Tx) error {
			_, err := tx.BanNode(t.Context(), banned.Node, "acme/sec", "")
			must(t, err)
			_, err = tx.RemoveNode(t.Context(), "acme", "lab", removed.Node.ID, "acme/ops")
			return err
		})
		clock.Advance(time.Second)
		must(t, db.Seen(t.Context(), seen.Node.ID, ""))
		claim(t, db, takeover(t, db, tokenID(many), "taken", again))
		must(t, db.ConfirmCertificate(t.Context(), confirmed.Certificate, ""))

		with := func(name string, change func(*store.Claim)) store.Claim {
			c := newClaim(tokenID(many), name)
			change(&c)
			return c
		}
		// consumes claims with an approval of which something became.
		consumes := func(name string, became func(q store.JoinRequest)) store.Claim {
			q := approved(t, db, newRequest(tokenID(waiting), name))
			became(q)
			c := newClaim(tokenID(waiting), name)
			c.RequestID = q.ID
			return c
		}
		pending := deferred(t, db, newRequest(tokenID(waiting), "pending"))
		lapsed := consumes("lapsed", func(store.JoinRequest) {})
		clock.Advance(store.ApprovalLife)
		mint(t, db, tokenID(6), func(token *store.JoinToken) { token.MaxUses = 100 })
		other := deferred(t, db, newRequest(tokenID(6), "other"))
		for name, c := range map[string]struct {
			claim store.Claim
			want  store.ClaimOutcome
		}{
			"repeated":                    {newClaim(tokenID(many), "first"), store.Repeated},
			"repeated by another node":    {with("first", func(c *store.Claim) { c.Node.ID, c.Certificate.NodeID = "nd_x", "nd_x" }), store.Repeated},
			"repeated with a used token":  {newClaim(tokenID(used), "used"), store.Repeated},
			"used up":                     {newClaim(tokenID(used), "late"), store.TokenEnded},
			"expired":                     {newClaim(tokenID(over), "late"), store.TokenEnded},
			"revoked":                     {newClaim(tokenID(revoked), "late"), store.TokenEnded},
			"key of another node":         {with("thief", func(c *store.Claim) { c.Certificate.KeySHA256 = first.Certificate.KeySHA256 }), store.KeyTaken},
			"identifier of another node":  {with("twin", func(c *store.Claim) { c.Tells = append(c.Tells, first.Tells...) }), store.Overtaken},
			"node banned meanwhile":       {overBanned, store.Overtaken},
			"node removed meanwhile":      {overRemoved, store.Overtaken},
			"node seen meanwhile":         {overSeen, store.Overtaken},
			"node confirmed meanwhile":    {overConfirmed, store.Overtaken},
			"node taken over meanwhile":   {overAgain, store.Overtaken},
			"approval denied":             {consumes("denied", func(q store.JoinRequest) { _, err := deny(t, db, q); must(t, err) }), store.Overtaken},
			"approval replaced":           {consumes("replaced", func(q store.JoinRequest) { q.CSRSHA256 = sum("new"); deferred(t, db, q) }), store.Overtaken},
			"approval expired":            {lapsed, store.Overtaken},
			"not approved":                {with("pending", func(c *store.Claim) { c.Node.TokenID, c.RequestID = tokenID(waiting), pending.ID }), store.Overtaken},
			"no such request":             {with("none", func(c *store.Claim) { c.RequestID = "jr_none" }), store.Overtaken},
			"request of another token":    {with("other", func(c *store.Claim) { c.RequestID = other.ID }), store.Overtaken},
			"request of another key":      {with("another", func(c *store.Claim) { c.Node.TokenID, c.RequestID = tokenID(6), other.ID }), store.Overtaken},
			"approval with a used token":  {with("late", func(c *store.Claim) { c.Node.TokenID, c.RequestID = tokenID(used), pending.ID }), store.TokenEnded},
			"approval of a revoked token": {with("late", func(c *store.Claim) { c.Node.TokenID, c.RequestID = tokenID(revoked), pending.ID }), store.TokenEnded},
		} {
			if name == "request of another token" || name == "request of another key" {
				_, err := approve(t, db, other)
				must(t, err)
			}
			unchanged(t, db, name, func() {
				if got := tryClaim(t, db, c.claim); got != c.want {
					t.Errorf("%s: outcome %d, want %d", name, got, c.want)
				}
			})
		}
	})
}

func TestNJ_2_ApprovalOutlivesTheTokensTime(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		mint(t, db, tokenID(1), func(token *store.JoinToken) { token.ExpiresAt = noon.Add(time.Minute) })
		q := approved(t, db, newRequest(tokenID(1), "slow"))
		clock.Advance(time.Minute)
		c := newClaim(tokenID(1), "slow")
		if got := tryClaim(t, db, c); got != store.TokenEnded {
			t.Errorf("without the approval the outcome is %d", got)
		}
		c.RequestID = q.ID
		claim(t, db, c)
		if q := request(t, db, q.ID); q.Status != "consumed" || q.NodeID != c.Node.ID || q.EndedAt == nil || !q.EndedAt.Equal(noon.Add(time.Minute)) {
			t.Errorf("the request is %+v", q)
		}
	})
}

func TestNJ_2_ClaimForATokenOrPoolThatIsNotThere(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		mint(t, db, tokenID(1), nil)
		elsewhere := newClaim(tokenID(1), "lost")
		elsewhere.Node.PoolID = "nowhere"
		for _, c := range []store.Claim{newClaim(tokenID(9), "lost"), elsewhere} {
			unchanged(t, db, "a claim that fails", func() {
				if _, err := db.ClaimJoin(t.Context(), c); err == nil {
					t.Error("a node of nothing was made")
				}
			})
		}
	})
}

func TestNJ_3_Claim_WritesNodeCertificateLedgerAndEvent(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		mint(t, db, tokenID(1), nil)
		clock.Advance(time.Minute)
		eventsSince(t, db)
		c := newClaim(tokenID(1), "rack7")
		c.Node.Claims = store.Claims{ProductUUID: "U", Serial: "it's", MACs: []string{"a", "b"}, GPUUUIDs: []string{"g"}, Hostname: `h"\`, Environment: "host"}
		c.Node.Hosted, c.Node.Trust, c.Certificate.Trust = "kubernetes", "platform", "platform"
		c.Tells = append(c.Tells, store.Identifier{Kind: "mac", Value: "a"}, store.Identifier{Kind: "mac", Value: "a"})
		claim(t, db, c)

		want := c.Node
		want.CreatedAt, want.JoinedAt = clock.Now(), clock.Now()
		want.CertificateSerial, want.CertificateNotAfter = c.Certificate.Serial, &c.Certificate.NotAfter
		if got := node(t, db, "nd_rack7"); !reflect.DeepEqual(got, want) {
			t.Errorf("node %+v\nwant %+v", got, want)
		}
		wantCertificate := c.Certificate
		wantCertificate.CreatedAt, wantCertificate.NewKey = clock.Now(), true
		if got := certificate(t, db, c.Certificate.Serial); !reflect.DeepEqual(got, wantCertificate) {
			t.Errorf("certificate %+v\nwant %+v", got, wantCertificate)
		}
		use, err := db.JoinUse(t.Context(), tokenID(1), c.Certificate.CSRSHA256)
		must(t, err)
		if wantUse := (store.JoinUse{TokenID: tokenID(1), CSRSHA256: c.Certificate.CSRSHA256, NodeID: "nd_rack7", Serial: c.Certificate.Serial, ClaimedAt: clock.Now()}); use != wantUse {
			t.Errorf("use %+v, want %+v", use, wantUse)
		}
		if _, err := db.JoinUse(t.Context(), tokenID(1), sum("another")); true {
			wantCode(t, err, problem.NotFound)
		}
		data, err := json.Marshal(map[string]any{
			"nodeId": "nd_rack7", "tokenId": tokenID(1), "trust": "platform", "profile": "node-platform",
			"serial": c.Certificate.Serial, "sourceAddress": "192.0.2.7",
		})
		must(t, err)
		if got, want := eventsSince(t, db), []string{"security.node.joined nd_rack7 " + string(data)}; !slices.Equal(got, want) {
			t.Errorf("events %v, want %v", got, want)
		}
		if n := count(t, db, "node_identifiers WHERE node_id = 'nd_rack7' AND holder = ''"); n != 2 {
			t.Errorf("%d identifiers tell the node, want 2", n)
		}
	})
}

func TestNJ_1_JoinState_SaysWhatIsKnown(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		var tokens []store.JoinToken
		for n := range 2 {
			mint(t, db, tokenID(n), func(token *store.JoinToken) { token.MaxUses = 100 })
			token, err := db.JoinToken(t.Context(), tokenID(n))
			must(t, err)
			tokens = append(tokens, token)
		}
		joined(t, db, newClaim(tokenID(0), "node"))
		pending := deferred(t, db, newRequest(tokenID(0), "pending"))
		approved := approved(t, db, newRequest(tokenID(0), "approved"))
		denied, err := deny(t, db, deferred(t, db, newRequest(tokenID(0), "denied")))
		must(t, err)
		check := func(when string, token int, name, key, want string) {
			t.Helper()
			state, err := db.JoinState(t.Context(), tokens[token], sum("csr of "+name), sum("key of "+key))
			must(t, err)
			if got := fmt.Sprint(state.Used, " ", state.RequestID, " ", state.KeyTaken); got != want || state.PoolID != "lab" || state.Attestor != "token" {
				t.Errorf("%s, token %d, request %s, key %s: %s of %+v, want %s", when, token, name, key, got, state.Pool, want)
			}
		}
		check("new", 0, "new", "new", "false  false")
		check("joined", 0, "node", "node", "true  true")
		check("another request with its key", 0, "new", "node", "false  true")
		check("under another token", 1, "node", "node", "false  true")
		check("pending", 0, "pending", "pending", "false "+pending.ID+" false")
		check("pending under another token", 1, "pending", "pending", "false  true")
		check("approved", 0, "approved", "approved", "false "+approved.ID+" false")
		check("denied", 0, "denied", "denied", "false "+denied.ID+" false")
		check("denied, under another token", 1, "denied", "denied", "false  false")
		clock.Advance(store.RequestLife) // over, and not swept
		check("over", 0, "pending", "pending", "false  false")
		check("over", 1, "pending", "pending", "false  false")
		check("over", 0, "approved", "approved", "false  false")
		check("denied for ever", 0, "denied", "denied", "false "+denied.ID+" false")
		tokens[0].PoolID = "nowhere"
		_, err = db.JoinState(t.Context(), tokens[0], "", "")
		wantCode(t, err, problem.NotFound)
	})
}
