package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// awkwardTimes are written with fractions of every length, in other zones, and
// around the edges of seconds, in their order.
var awkwardTimes = []time.Time{
	time.Date(2, 1, 1, 0, 0, 0, 0, time.UTC),
	time.Date(1969, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
	time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC),
	time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC),
	time.Date(2026, 3, 1, 9, 0, 0, 1_000, time.UTC),
	time.Date(2026, 3, 1, 9, 0, 0, 9_000, time.UTC),
	time.Date(2026, 3, 1, 9, 0, 0, 10_000, time.UTC),
	time.Date(2026, 3, 1, 9, 0, 0, 99_999_000, time.UTC),
	time.Date(2026, 3, 1, 9, 0, 0, 100_000_000, time.UTC),
	time.Date(2026, 3, 1, 14, 30, 0, 123_456_000, time.FixedZone("", 5*3600+1800)), // 09:00:00.123456
	time.Date(2026, 3, 1, 9, 0, 0, 123_456_999, time.UTC),                          // the same microsecond
	time.Date(2026, 3, 1, 9, 0, 0, 123_457_000, time.UTC),
	time.Date(2026, 3, 1, 9, 0, 0, 999_999_999, time.UTC),
	time.Date(2026, 3, 1, 1, 0, 1, 0, time.FixedZone("", -8*3600)), // 09:00:01
	time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
}

func TestTimes_ExactInMicrosecondsAndInOrder(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		want := make([]time.Time, len(awkwardTimes))
		for i, at := range awkwardTimes {
			want[i] = at.UTC().Truncate(time.Microsecond)
			mint(t, db, tokenID(i), func(token *store.JoinToken) { token.ExpiresAt = at })
			token, err := db.JoinToken(t.Context(), tokenID(i))
			must(t, err)
			if token.ExpiresAt != want[i] { // the same value, not only the same moment
				t.Errorf("%v came back as %v", at, token.ExpiresAt)
			}
		}
		var ids []string
		must(t, db.Query(t.Context(), "SELECT id FROM join_tokens ORDER BY expires_at, id").Scan(&ids))
		if !slices.IsSorted(ids) || len(ids) != len(want) {
			t.Errorf("in the order of expiry: %v", ids)
		}
		for i, at := range want {
			later := 0
			for _, other := range want {
				if other.After(at) {
					later++
				}
			}
			rows, _, err := db.JoinTokens(t.Context(), store.JoinTokenQuery{TenantID: "acme", PoolID: "lab", Limit: 100, Now: awkwardTimes[i]})
			must(t, err)
			if len(rows) != later {
				t.Errorf("%d tokens expire after %v, want %d", len(rows), at, later)
			}
		}
	})
}

func TestTx_NowIsMicrosecondsInUTC(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		storetest.ClockOf(db).Set(time.Date(2026, 3, 1, 13, 0, 0, 1_999, time.FixedZone("", 3600)))
		write(t, db, func(tx *store.Tx) error {
			if want := noon.Add(time.Microsecond); tx.Now() != want {
				t.Errorf("now is %v, want %v", tx.Now(), want)
			}
			site, _, err := tx.CreateSite(t.Context(), store.Site{TenantID: "acme", SiteID: "berlin"})
			if site.CreatedAt != tx.Now() {
				t.Errorf("created at %v, want %v", site.CreatedAt, tx.Now())
			}
			return err
		})
	})
}
