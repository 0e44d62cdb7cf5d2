package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

func TestWithDecision_RecordedOnceWithTheChange(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		storetest.ClockOf(db).Set(noon)
		first := store.Decision{RequestID: "r1", Principal: "acme/ops", Action: "compute:pools:update", Resource: "compute-pool/acme/lab", Policies: []string{"tenant-admin", "it's"}}
		second := first
		second.Action, second.Policies = "compute:pools:vouch", nil
		ctx := store.WithDecision(store.WithDecision(t.Context(), first), second)
		nothing := func(*store.Tx) error { return nil }
		something := func(tx *store.Tx) error {
			_, _, err := tx.CreateSite(t.Context(), store.Site{TenantID: "acme", SiteID: "berlin", CreatedBy: "acme/ops"})
			return err
		}

		broken := errors.New("broken")
		if err := db.Write(ctx, func(*store.Tx) error { return broken }); !errors.Is(err, broken) {
			t.Errorf("error is %v", err)
		}
		if n := count(t, db, "decisions"); n != 0 {
			t.Errorf("%d decisions of a change that was not made", n)
		}
		must(t, db.Write(ctx, nothing))
		if n := count(t, db, "decisions"); n != 0 {
			t.Errorf("%d decisions of a call that changed nothing", n)
		}
		for range 3 {
			must(t, db.Write(ctx, something))
		}
		must(t, db.Write(t.Context(), nothing))
		list, more, err := db.Decisions(t.Context(), store.DecisionQuery{Limit: 10})
		must(t, err)
		if len(list) != 2 || more {
			t.Fatalf("%d decisions, want 2", len(list))
		}
		for i, want := range []store.Decision{first, second} {
			got := list[i]
			if got.RequestID != want.RequestID || got.Principal != want.Principal || got.Action != want.Action || got.Resource != want.Resource ||
				!slices.Equal(got.Policies, want.Policies) || !got.At.Equal(noon) {
				t.Errorf("decision %d is %+v, want %+v", i, got, want)
			}
		}
		page, more, err := db.Decisions(t.Context(), store.DecisionQuery{After: list[0].ID, Limit: 1})
		must(t, err)
		if len(page) != 1 || more || page[0].ID != list[1].ID {
			t.Errorf("next page %+v, more %v", page, more)
		}
	})
}

func TestRecordDenials_CountsThatAreAlike(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		storetest.ClockOf(db).Set(noon)
		denial := func(reason string, n int64, at time.Time) store.Denial {
			return store.Denial{Principal: "acme/ops", Action: "compute:join-tokens:create", Resource: "compute-pool/umbrella/hive", Reason: reason, Count: n, FirstAt: at, LastAt: at}
		}
		must(t, db.RecordDenials(t.Context(), nil))
		must(t, db.RecordDenials(t.Context(), []store.Denial{
			denial("foreign tenant", 2, noon), denial("no role", 1, time.Time{}), denial("foreign tenant", 3, noon.Add(time.Second)),
		}))
		must(t, db.RecordDenials(t.Context(), []store.Denial{denial("foreign tenant", 1, noon.Add(-time.Second))}))
		list, more, err := db.Denials(t.Context(), 10)
		must(t, err)
		if len(list) != 2 || more {
			t.Fatalf("denials %+v", list)
		}
		if d := list[0]; d.Reason != "foreign tenant" || d.Count != 6 || !d.FirstAt.Equal(noon.Add(-time.Second)) || !d.LastAt.Equal(noon.Add(time.Second)) {
			t.Errorf("denial %+v", d)
		}
		if d := list[1]; d.Count != 1 || !d.FirstAt.Equal(noon) || !d.LastAt.Equal(noon) {
			t.Errorf("denial %+v", d)
		}
	})
}

// One event tells of all joins that were refused alike since the last flush.
func TestJR_6_RecordDenials_OneEventPerCause(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		atNoon(db)
		join := func(token int, cause, address string, count int64, at time.Duration) store.Denial {
			return store.Denial{
				Principal: "join-token/" + tokenID(token), Action: "nodes.join", Resource: "compute-pool/acme/lab", Reason: cause, Count: count,
				FirstAt: noon.Add(at), LastAt: noon.Add(at), Join: store.RejectedJoin{TokenID: tokenID(token), TenantID: "acme", PoolID: "lab"}, SourceAddress: address,
			}
		}
		event := func(token int, cause, address string, count int) string {
			return fmt.Sprintf(`security.join.rejected %s {"cause":%q,"count":%d,"sourceAddress":%q,"tokenId":%q}`, tokenID(token), cause, count, address, tokenID(token))
		}
		denials := []store.Denial{join(1, "expired", "192.0.2.9", 1, time.Minute), join(2, "exhausted", "192.0.2.2", 2, 0)}
		for i := range 50 { // of those alike the last one tells the address, in whatever order they come
			denials = append(denials, join(1, "exhausted", fmt.Sprint("192.0.2.", i), 1, time.Duration(i*7%50)*time.Second))
		}
		denials = append(denials, join(1, "expired", "192.0.2.1", 1, 0))
		denials = append(denials, store.Denial{Principal: "stranger", Action: "nodes.join", Resource: "", Reason: "unknown", Count: 3, SourceAddress: "192.0.2.3"})
		must(t, db.RecordDenials(t.Context(), denials))
		got := eventsSince(t, db)
		want := []string{event(1, "exhausted", "192.0.2.7", 50), event(1, "expired", "192.0.2.9", 2), event(2, "exhausted", "192.0.2.2", 2)}
		if !slices.Equal(got, want) {
			t.Errorf("events %s\nwant %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		denials = nil
		for i := range 50 { // of one moment
			denials = append(denials, join(1, "exhausted", fmt.Sprint("192.0.2.", i), 1, time.Hour))
		}
		must(t, db.RecordDenials(t.Context(), denials))
		if got, want := eventsSince(t, db), []string{event(1, "exhausted", "192.0.2.49", 50)}; !slices.Equal(got, want) {
			t.Errorf("of the next flush: %v, want %v", got, want)
		}
		if n := count(t, db, "denials WHERE count = 100"); n != 1 {
			t.Errorf("%d denials have the sum of both", n)
		}
		page, err := db.Events(t.Context(), store.EventQuery{TenantID: "acme", PoolID: "lab", Limit: 10})
		if must(t, err); len(page.Events) != 4 {
			t.Errorf("the pool has %d events", len(page.Events))
		}
	})
}

func TestRecordDenials_ReplicasAtOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		handles := []*store.DB{db, storetest.Replica(t, db)}
		together(8, func(i int) {
			var denials []store.Denial
			for n := range 20 {
				denials = append(denials, store.Denial{Principal: fmt.Sprint((n*7 + i*3) % 20), Action: "a", Count: 1})
			}
			if err := handles[i%2].RecordDenials(t.Context(), denials); err != nil {
				t.Error(err)
			}
		})
		if n := count(t, db, "denials WHERE count = 8"); n != 20 {
			t.Errorf("%d of 20 denials were counted 8 times", n)
		}
	})
}

func TestRecordDenials_Bounded(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := storetest.ClockOf(db)
		clock.Set(noon)
		denials := make([]store.Denial, store.MaxDenials)
		for i := range denials {
			denials[i] = store.Denial{Principal: fmt.Sprint("old ", i), Count: 1}
		}
		must(t, db.RecordDenials(t.Context(), denials))
		clock.Advance(time.Second)
		must(t, db.RecordDenials(t.Context(), []store.Denial{{Principal: "new", Count: 1}, {Principal: "old 7", Count: 1}}))
		if n := count(t, db, "denials"); n != store.MaxDenials {
			t.Errorf("%d denials are kept, want %d", n, store.MaxDenials)
		}
		if n := count(t, db, "denials WHERE principal = 'new' OR principal = 'old 7' AND count = 2"); n != 2 {
			t.Error("the latest denials were not kept")
		}
	})
}
