package store_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

func TestDeferJoin_KeepsWhatTheOperatorSees(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		mint(t, db, tokenID(1), func(token *store.JoinToken) { token.MaxUses = 9 })
		q := newRequest(tokenID(1), "a")
		q.Claims = store.Claims{ProductUUID: "U", Serial: "To Be Filled By O.E.M.", MACs: []string{"m"}, GPUUUIDs: []string{"g"}, Hostname: "h", Environment: "host"}
		q.Placeholders = []store.PlaceholderMatch{{Field: "serial", Value: "it's", Rule: "r"}}
		q.Hosted, q.ReclaimsNodeID = "kubernetes", "nd_x"
		made := deferred(t, db, q)
		want := q
		want.ID, want.Status, want.Seen = made.ID, "pending", 1
		want.CreatedAt, want.LastSeenAt, want.ExpiresAt = noon, noon, noon.Add(24*time.Hour)
		if got := request(t, db, made.ID); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(made, want) {
			t.Errorf("request %+v\nmade    %+v\nwant    %+v", got, made, want)
		}
		if !strings.HasPrefix(made.ID, "jr_") || len(made.ID) != len("jr_")+26 {
			t.Errorf("id %s", made.ID)
		}
		clock.Advance(time.Minute)
		must(t, db.RequestCalledAgain(t.Context(), made.ID, "2001:db8::1"))
		want.Seen, want.LastSeenAt, want.SourceAddress = 2, clock.Now(), "2001:db8::1"
		if got := request(t, db, made.ID); !reflect.DeepEqual(got, want) {
			t.Errorf("called again: %+v\nwant %+v", got, want)
		}
		decide := func(call func(tx *store.Tx) (store.JoinRequest, error)) {
			t.Helper()
			var got store.JoinRequest
			write(t, db, func(tx *store.Tx) (err error) { got, err = call(tx); return err })
			if stored := request(t, db, made.ID); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(stored, want) {
				t.Errorf("decided %+v\nstored  %+v\nwant    %+v", got, stored, want)
			}
		}
		at := clock.Now()
		want.Status, want.DecidedAt, want.DecidedBy, want.Note, want.ExpiresAt = "approved", &at, "acme/ops", "rack 7", at.Add(time.Hour)
		for range 2 { // the second time nothing changes, whoever says it
			decide(func(tx *store.Tx) (store.JoinRequest, error) {
				return tx.ApproveRequest(t.Context(), "acme", "lab", made.ID, made.CSRSHA256, "acme/ops", "rack 7")
			})
			clock.Advance(time.Minute)
		}
		decided := clock.Now()
		want.Status, want.DecidedAt, want.DecidedBy, want.EndedAt = "denied", &decided, "acme/sec", &decided // the note stays
		decide(func(tx *store.Tx) (store.JoinRequest, error) {
			return tx.DenyRequest(t.Context(), "acme", "lab", made.ID, "acme/sec", "")
		})
		clock.Advance(time.Minute)
		decide(func(tx *store.Tx) (store.JoinRequest, error) {
			return tx.DenyRequest(t.Context(), "acme", "lab", made.ID, "acme/other", "again")
		})
	})
}

func TestJR_4_NewRequestOfTheSameMachineTakesThePlaceOfTheOld(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		other := lab()
		other.PoolID = "other"
		write(t, db, func(tx *store.Tx) error { _, _, err := tx.CreatePool(t.Context(), other); return err })
		mint(t, db, tokenID(1), func(token *store.JoinToken) { token.MaxUses = 9 })
		mint(t, db, tokenID(2), func(token *store.JoinToken) { token.MaxUses = 9 })
		mint(t, db, tokenID(3), func(token *store.JoinToken) { token.MaxUses, token.PoolID = 9, "other" })
		of := func(token int, csr, machine string) store.JoinRequest {
			q := newRequest(tokenID(token), csr)
			if q.MachineSHA256 = machine; token == 3 {
				q.PoolID = "other"
			}
			return q
		}
		status := func(q store.JoinRequest) string {
			t.Helper()
			got, err := db.JoinRequest(t.Context(), "acme", q.PoolID, q.ID)
			must(t, err)
			return got.Status
		}
		elsewhere, stranger := deferred(t, db, of(3, "elsewhere", "m")), deferred(t, db, of(1, "stranger", "n"))
		first := deferred(t, db, of(1, "first", "m"))
		second := approved(t, db, of(1, "second", "m"))
		third := deferred(t, db, of(2, "third", "m")) // with another token of the pool
		if got := fmt.Sprint(status(first), " ", status(second), " ", status(third)); got != "canceled canceled pending" {
			t.Errorf("requests are %s", got)
		}
		if got := fmt.Sprint(status(elsewhere), " ", status(stranger)); got != "pending pending" {
			t.Errorf("requests of another pool and another machine are %s", got)
		}
		none1, none2 := deferred(t, db, of(1, "none1", "")), deferred(t, db, of(1, "none2", "")) // nothing tells them
		if got := fmt.Sprint(status(none1), " ", status(none2)); got != "pending pending" {
			t.Errorf("requests of machines that nothing tells are %s", got)
		}
		// A refused request of the machine does not come back, and cancels nothing on its way.
		denied := deferred(t, db, of(1, "denied", "m"))
		_, err := deny(t, db, denied)
		must(t, err)
		last := deferred(t, db, of(1, "last", "m"))
		unchanged(t, db, "a request that was denied", func() {
			if _, outcome := tryDefer(t, db, of(1, "denied", "m")); outcome != store.WasDecided {
				t.Errorf("outcome %d", outcome)
			}
		})
		if got := status(last); got != "pending" {
			t.Errorf("the request is %s", got)
		}
	})
}

func TestJR_4_TokenThatHasEnded_NothingWaits(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		for n := range 4 {
			mint(t, db, tokenID(n), func(token *store.JoinToken) {
				if n != 3 {
					token.ExpiresAt = noon.Add(2 * time.Hour)
				}
			})
		}
		claim(t, db, newClaim(tokenID(1), "used"))
		revoke(t, db, tokenID(2))
		clock.Advance(time.Hour)
		for name, n := range map[string]int{"used up": 1, "revoked": 2, "expired": 3, "unknown": 9} {
			unchanged(t, db, name, func() {
				if made, outcome := tryDefer(t, db, newRequest(tokenID(n), "a")); outcome != store.NoUsesLeft || made.ID != "" {
					t.Errorf("%s: outcome %d, made %+v", name, outcome, made)
				}
			})
		}
		deferred(t, db, newRequest(tokenID(0), "a"))
	})
}

func TestJR_4_QueueIsCapped(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		long := func(maxUses int64) func(token *store.JoinToken) {
			return func(token *store.JoinToken) { token.MaxUses, token.ExpiresAt = maxUses, noon.Add(48*time.Hour) }
		}
		full := func(q store.JoinRequest) {
			t.Helper()
			unchanged(t, db, "a full queue", func() {
				if _, outcome := tryDefer(t, db, q); outcome != store.QueueFull {
					t.Errorf("outcome %d, want QueueFull", outcome)
				}
			})
		}
		mint(t, db, tokenID(1), long(4))
		claim(t, db, newClaim(tokenID(1), "direct")) // three uses are left
		var waiting []store.JoinRequest
		for i := range 3 {
			waiting = append(waiting, deferred(t, db, newRequest(tokenID(1), fmt.Sprint(i))))
		}
		full(newRequest(tokenID(1), "3"))
		again := newRequest(tokenID(1), "0") // who waits already keeps its place, with another key or other claims
		again.CSRSHA256 = sum("reinstalled")
		deferred(t, db, again)
		again.ClaimsSHA256 = sum("changed")
		deferred(t, db, again)
		full(newRequest(tokenID(1), "3"))
		_, err := deny(t, db, waiting[1])
		must(t, err)
		deferred(t, db, newRequest(tokenID(1), "3"))
		full(newRequest(tokenID(1), "4"))
		clock.Advance(store.RequestLife) // what is over takes no place, swept or not
		for i := range 3 {
			deferred(t, db, newRequest(tokenID(1), fmt.Sprint("next", i)))
		}
		full(newRequest(tokenID(1), "4"))

		mint(t, db, tokenID(2), long(1)) // a machine that changes its claims for ever fills no table
		q := newRequest(tokenID(2), "changing")
		copyRequest(t, db, deferred(t, db, q), 0, 98)
		q.ClaimsSHA256 = "the hundredth"
		deferred(t, db, q)
		q.ClaimsSHA256 = "one too many"
		full(q)
	})
}

func TestJR_4_QueueIsCapped_ReplicasAtOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		const perPool, tokens = 1000, 16
		for n := range tokens + 2 {
			mint(t, db, tokenID(n), func(token *store.JoinToken) { token.MaxUses = 10_000 })
		}
		mint(t, db, tokenID(99), func(token *store.JoinToken) { token.MaxUses = 5 })
		handles := replicas(t, db)
		flood := func(n int, token func(i int) string) string {
			t.Helper()
			outcomes := make([]store.DeferOutcome, n)
			together(n, func(i int) {
				var err error
				if _, outcomes[i], err = handles[i%2].DeferJoin(t.Context(), newRequest(token(i), fmt.Sprint(token(i), i))); err != nil {
					t.Error(err)
				}
			})
			return tally(outcomes)
		}
		if got, want := flood(16, func(int) string { return tokenID(99) }), fmt.Sprintf("%d:5 %d:11", store.Deferred, store.QueueFull); got != want {
			t.Errorf("of a token with five uses: %s, want %s", got, want)
		}
		if n := count(t, db, "join_requests WHERE ended_at IS NULL"); n != 5 {
			t.Errorf("%d wait", n)
		}
		// The pool is full but for seven, with as many that have ended.
		last := deferred(t, db, newRequest(tokenID(tokens), "pattern"))
		copyRequest(t, db, last, 987, 100)
		if got, want := flood(16, func(i int) string { return tokenID(i % tokens) }), fmt.Sprintf("%d:7 %d:9", store.Deferred, store.QueueFull); got != want {
			t.Errorf("of the pool: %s, want %s", got, want)
		}
		if n := count(t, db, "join_requests WHERE ended_at IS NULL"); n != perPool {
			t.Errorf("%d wait, want %d", n, perPool)
		}
	})
}

// Of many calls with one request at once one makes it, and the others look again.
func TestJR_4_OneRequestPerTokenAndCSR(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		mint(t, db, tokenID(1), func(token *store.JoinToken) { token.MaxUses = 100 })
		handles := replicas(t, db)
		for round := range 5 {
			outcomes := make([]store.DeferOutcome, 8)
			together(8, func(i int) {
				var err error
				if _, outcomes[i], err = handles[i%2].DeferJoin(t.Context(), newRequest(tokenID(1), fmt.Sprint(round))); err != nil {
					t.Error(err)
				}
			})
			if got, want := tally(outcomes), fmt.Sprintf("%d:1 %d:7", store.Deferred, store.WasDecided); got != want {
				t.Fatalf("round %d: %s, want %s", round, got, want)
			}
		}
	})
}

func TestJoinRequests_PagesInTheOrderOfTheirIDs(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		mint(t, db, tokenID(1), func(token *store.JoinToken) { token.MaxUses, token.ExpiresAt = 100, noon.Add(48*time.Hour) })
		names := map[string]string{}
		var ids []string
		for i := range 7 { // 1 and 4 are denied
			clock.Advance(time.Millisecond)
			q := deferred(t, db, newRequest(tokenID(1), fmt.Sprint(i)))
			names[q.ID] = fmt.Sprint(i)
			if ids = append(ids, q.ID); i%3 == 1 {
				_, err := deny(t, db, q)
				must(t, err)
			}
		}
		check := func(q store.JoinRequestQuery, want string) {
			t.Helper()
			q.TenantID, q.PoolID = "acme", "lab"
			page, more, err := db.JoinRequests(t.Context(), q)
			must(t, err)
			var got []string
			for _, q := range page {
				got = append(got, names[q.ID])
			}
			if got := fmt.Sprint(got, more); got != want {
				t.Errorf("%+v: %s, want %s", q, got, want)
			}
		}
		check(store.JoinRequestQuery{Limit: 5}, "[0 2 3 5 6] false")
		check(store.JoinRequestQuery{Limit: 2}, "[0 2] true")
		check(store.JoinRequestQuery{Limit: 2, After: ids[2]}, "[3 5] true")
		check(store.JoinRequestQuery{Limit: 2, After: ids[5]}, "[6] false")
		check(store.JoinRequestQuery{Limit: 3, IncludeEnded: true}, "[0 1 2] true")
		check(store.JoinRequestQuery{Limit: 9, IncludeEnded: true, After: ids[3]}, "[4 5 6] false")
		clock.Advance(store.RequestLife - 2*time.Millisecond) // 0 to 4 are over, and nobody has noted it
		check(store.JoinRequestQuery{Limit: 5}, "[5 6] false")
		for _, at := range [][2]string{{"acme", "other"}, {"umbrella", "lab"}} {
			page, more, err := db.JoinRequests(t.Context(), store.JoinRequestQuery{TenantID: at[0], PoolID: at[1], Limit: 9, IncludeEnded: true})
			if must(t, err); len(page) != 0 || more {
				t.Errorf("%v has %+v", at, page)
			}
		}
	})
}
