package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/events"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

func TestMintToken_JT23_OneRowPerKey(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		handles := []*store.DB{db, storetest.Replica(t, db)}
		for round := range 50 {
			id := tokenID(round)
			var created atomic.Int64
			records := make([]store.JoinToken, 32)
			together(32, func(i int) {
				db := handles[i%2]
				err := db.Write(t.Context(), func(tx *store.Tx) error {
					token := token(tx, id)
					token.SecretSHA256 = hash(fmt.Sprint(i))
					made, err := tx.MintToken(t.Context(), token)
					if made {
						created.Add(1)
					}
					if err == nil {
						records[i], err = tx.JoinToken(t.Context(), id)
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
			if created.Load() != 1 {
				t.Fatalf("round %d: %d of 32 made the row", round, created.Load())
			}
			for _, record := range records {
				if !slices.Equal(record.SecretSHA256, records[0].SecretSHA256) || !record.CreatedAt.Equal(records[0].CreatedAt) {
					t.Fatalf("round %d: two records of one token", round)
				}
			}
		}
		if rows, published := count(t, db, "join_tokens"), count(t, db, "events WHERE type = 'security.join-token.created'"); rows != 50 || published != 50 {
			t.Errorf("%d rows and %d events, want 50 each", rows, published)
		}
	})
}

func TestMintToken_JT24_Publishes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		storetest.ClockOf(db).Set(noon)
		withLab(t, db)
		positioned(t, db) // transactions of one time are in no order of their own
		mint(t, db, tokenID(1), nil)
		positioned(t, db)
		mint(t, db, tokenID(2), func(token *store.JoinToken) {
			token.Expect = store.Expect{ProductUUID: "u", Serial: "s", MAC: "m", GPUUUID: "g"}
			token.Hosted, token.AllowReclaim, token.MaxUses = "kubernetes", true, 7
		})
		kubernetes := "kubernetes"
		want := []events.SecurityJoinTokenCreated{
			{TokenID: tokenID(1), CreatedBy: "acme/ops", MaxUses: 1, ExpiresAt: noon.Add(time.Hour)},
			{TokenID: tokenID(2), CreatedBy: "acme/ops", MaxUses: 7, ExpiresAt: noon.Add(time.Hour), Pinned: true, AllowReclaim: true, Hosted: &kubernetes},
		}
		positioned(t, db)
		got := eventsOf(t, db, "acme")[2:]
		if len(got) != 2 {
			t.Fatalf("%d events, want 2", len(got))
		}
		for i, event := range got {
			var fields map[string]any
			must(t, json.Unmarshal(event.Data, &fields))
			if _, set := fields["hosted"]; set != (i == 1) {
				t.Errorf("event %d: hosted is set: %v", i, set)
			}
			wanted, err := json.Marshal(want[i])
			must(t, err)
			var data events.SecurityJoinTokenCreated
			must(t, json.Unmarshal(event.Data, &data))
			if back, _ := json.Marshal(data); string(back) != string(wanted) {
				t.Errorf("event %d holds %s, want %s", i, back, wanted)
			}
			if event.Type != "security.join-token.created" || event.Source != "/compute-pool/acme/lab" ||
				event.Subject != tokenID(i+1) || event.PoolID != "lab" || !event.Time.Equal(noon) {
				t.Errorf("event %d is %+v", i, event)
			}
		}
		stored, err := db.JoinToken(t.Context(), tokenID(2))
		must(t, err)
		if stored.Expect != (store.Expect{ProductUUID: "u", Serial: "s", MAC: "m", GPUUUID: "g"}) || stored.Hosted != "kubernetes" ||
			!slices.Equal(stored.SecretSHA256, hash(tokenID(2))) || stored.MaxUses != 7 || !stored.AllowReclaim || !stored.ExpiresAt.Equal(noon.Add(time.Hour)) {
			t.Errorf("stored %+v", stored)
		}
		if n := count(t, db, "join_tokens WHERE hosted IS NULL AND expect_product_uuid IS NULL AND expect_serial IS NULL AND expect_mac IS NULL AND expect_gpu_uuid IS NULL"); n != 1 {
			t.Errorf("%d rows have NULL for what is not set, want 1", n)
		}
	})
}

func TestMintToken_UnknownPool_NotFound(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		err := db.Write(t.Context(), func(tx *store.Tx) error {
			_, err := tx.MintToken(t.Context(), token(tx, tokenID(1)))
			return err
		})
		wantCode(t, err, problem.NotFound)
	})
}

func TestJoinTokens_UsesNeverExceedMaxUses(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		mint(t, db, tokenID(1), nil)
		spend := func(tx *store.Tx) error {
			return tx.Exec(t.Context(), "UPDATE join_tokens SET uses = uses + 1")
		}
		write(t, db, spend)
		if err := db.Write(t.Context(), spend); err == nil {
			t.Error("a second use of a token for one was written")
		}
	})
}

func TestJoinTokens_JT30_LivenessPagesAndCursor(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := storetest.ClockOf(db)
		clock.Set(noon)
		withLab(t, db)
		other := lab()
		other.PoolID = "other"
		write(t, db, func(tx *store.Tx) error { _, _, err := tx.CreatePool(t.Context(), other); return err })
		for n := range 10 { // 0, 3, 6, 9 expire first; 1, 4, 7 are revoked; 2, 5, 8 live
			mint(t, db, tokenID(n), func(token *store.JoinToken) {
				if n%3 == 0 {
					token.ExpiresAt = noon.Add(time.Minute)
				}
			})
			if n%3 == 1 {
				revoke(t, db, tokenID(n))
			}
		}
		mint(t, db, tokenID(10), func(token *store.JoinToken) { token.PoolID = "other" })
		mint(t, db, tokenID(11), nil)
		write(t, db, func(tx *store.Tx) error { // used up
			return tx.Exec(t.Context(), "UPDATE join_tokens SET uses = max_uses WHERE id = ?", tokenID(11))
		})
		list := func(q store.JoinTokenQuery) string {
			q.TenantID, q.PoolID = "acme", "lab"
			rows, more, err := db.JoinTokens(t.Context(), q)
			must(t, err)
			text := ""
			for _, row := range rows {
				text += " " + row.ID[len(row.ID)-2:]
			}
			return fmt.Sprint(text, " ", more)
		}
		check := func(name, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		check("all live", list(store.JoinTokenQuery{Limit: 100}), " 00 02 03 05 06 08 09 false")
		check("exactly all", list(store.JoinTokenQuery{Limit: 7}), " 00 02 03 05 06 08 09 false")
		check("first page", list(store.JoinTokenQuery{Limit: 3}), " 00 02 03 true")
		check("next page", list(store.JoinTokenQuery{Limit: 3, After: tokenID(3)}), " 05 06 08 true")
		check("last page", list(store.JoinTokenQuery{Limit: 3, After: tokenID(8)}), " 09 false")
		check("inactive too", list(store.JoinTokenQuery{Limit: 100, IncludeInactive: true}), " 00 01 02 03 04 05 06 07 08 09 11 false")
		check("asked for a time", list(store.JoinTokenQuery{Limit: 100, Now: noon.Add(2 * time.Minute)}), " 02 05 08 false")

		clock.Set(noon.Add(time.Minute)) // live is now < expiresAt, and now they are equal
		check("expired, not marked", list(store.JoinTokenQuery{Limit: 100}), " 02 05 08 false")
		n, err := db.EndJoinTokens(t.Context(), 3)
		must(t, err)
		m, err := db.EndJoinTokens(t.Context(), 100)
		must(t, err)
		if n != 3 || m != 2 {
			t.Errorf("ended %d, then %d tokens; want 3, then 2", n, m)
		}
		again, err := db.EndJoinTokens(t.Context(), 100)
		must(t, err)
		if again != 0 || count(t, db, "join_tokens WHERE ended_at IS NULL") != 4 {
			t.Errorf("ended %d tokens again", again)
		}
		check("expired, marked", list(store.JoinTokenQuery{Limit: 100}), " 02 05 08 false")
		check("marked, inactive too", list(store.JoinTokenQuery{Limit: 5, IncludeInactive: true, After: tokenID(4)}), " 05 06 07 08 09 true")
	})
}

func TestEndJoinTokens_ReplicasAtOnce_EachOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := storetest.ClockOf(db)
		clock.Set(noon)
		withLab(t, db)
		for n := range 100 {
			mint(t, db, tokenID(n), nil)
		}
		clock.Advance(time.Hour)
		handles := []*store.DB{db, storetest.Replica(t, db)}
		var ended atomic.Int64
		together(8, func(i int) {
			for range 8 {
				n, err := handles[i%2].EndJoinTokens(t.Context(), 5)
				if err != nil {
					t.Error(err)
				}
				ended.Add(int64(n))
			}
		})
		for { // rows that the others held locked were left for a later run
			n, err := db.EndJoinTokens(t.Context(), 5)
			must(t, err)
			if n == 0 {
				break
			}
			ended.Add(int64(n))
		}
		if ended.Load() != 100 {
			t.Errorf("ended %d tokens, want each of the 100 once", ended.Load())
		}
	})
}
