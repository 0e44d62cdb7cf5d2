package store_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// createSite makes one event of a tenant.
func createSite(t testing.TB, tx *store.Tx, tenantID, siteID string) error {
	t.Helper()
	_, _, err := tx.CreateSite(t.Context(), store.Site{TenantID: tenantID, SiteID: siteID, CreatedBy: tenantID + "/ops"})
	return err
}

func subjects(list []store.Event) (all []string) {
	for _, event := range list {
		all = append(all, event.Subject)
	}
	return all
}

func TestPositionEvents_SlowTransactionIsNeverSkipped(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		onlyPostgres(t, db) // SQLite has one writer, so nobody overtakes it
		clock := storetest.ClockOf(db)
		clock.Set(noon)
		written, release := make(chan struct{}), make(chan struct{})
		slow := make(chan error)
		go func() {
			slow <- db.Write(t.Context(), func(tx *store.Tx) error {
				err := createSite(t, tx, "acme", "slow")
				close(written)
				<-release
				return err
			})
		}()
		<-written
		clock.Advance(time.Second)
		var seen []string
		var cursor int64
		read := func() {
			t.Helper()
			page, err := db.Events(t.Context(), store.EventQuery{TenantID: "acme", After: cursor, Limit: 100})
			must(t, err)
			seen = append(seen, subjects(page.Events)...)
			cursor = page.UpTo
		}
		for _, id := range []string{"a", "b"} {
			write(t, db, func(tx *store.Tx) error { return createSite(t, tx, "acme", id) })
			positioned(t, db)
			read()
		}
		close(release)
		must(t, <-slow)
		write(t, db, func(tx *store.Tx) error { return createSite(t, tx, "acme", "c") })
		positioned(t, db)
		read()
		if want := []string{"a", "b", "slow", "c"}; !slices.Equal(seen, want) {
			t.Errorf("a reader saw %v, want %v", seen, want)
		}
	})
}

func TestPositionEvents_ReplicasAtOnce_NoGapNoTwinInOrder(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		handles := []*store.DB{db, storetest.Replica(t, db)}
		const writers, each = 6, 20
		var left atomic.Int64
		left.Store(writers)
		var read []int64
		together(writers+3, func(i int) {
			db := handles[i%2]
			switch {
			case i < writers:
				defer left.Add(-1)
				for n := range each {
					err := db.Write(t.Context(), func(tx *store.Tx) error {
						return createSite(t, tx, "acme", fmt.Sprintf("%d-%d", i, n))
					})
					if err != nil {
						t.Error(err)
					}
				}
			case i < writers+2:
				for left.Load() > 0 {
					if _, err := db.PositionEvents(t.Context(), 7); err != nil {
						t.Error(err)
						return
					}
				}
			default: // a reader who only ever goes on
				for cursor := int64(0); left.Load() > 0; {
					page, err := db.Events(t.Context(), store.EventQuery{TenantID: "acme", After: cursor, Limit: 5})
					if err != nil {
						t.Error(err)
						return
					}
					for _, event := range page.Events {
						cursor = *event.Position
						read = append(read, cursor)
					}
				}
			}
		})
		for i, position := range read {
			if position != int64(i+1) {
				t.Fatalf("the reader met position %d as number %d", position, i+1)
			}
		}
		positioned(t, db)
		list := eventsOf(t, db, "acme")
		for i, event := range list {
			if *event.Position != int64(i+1) {
				t.Fatalf("event %d has position %d", i+1, *event.Position)
			}
		}
		last, err := db.LastPosition(t.Context())
		must(t, err)
		if len(list) != writers*each || last != writers*each {
			t.Errorf("%d events, last position %d; want %d", len(list), last, writers*each)
		}
	})
}

func TestPositionEvents_ByTimeThenID(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := storetest.ClockOf(db)
		for i, after := range []time.Duration{3 * time.Microsecond, 0, time.Second, 30 * time.Microsecond} {
			clock.Set(noon.Add(after))
			write(t, db, func(tx *store.Tx) error { return createSite(t, tx, "acme", fmt.Sprint(i)) })
		}
		clock.Advance(time.Microsecond)
		write(t, db, func(tx *store.Tx) error {
			for _, id := range []string{"e", "d", "c", "b", "a"} { // one transaction, one time: in the order of its changes
				if err := createSite(t, tx, "acme", id); err != nil {
					return err
				}
			}
			return nil
		})
		positioned(t, db)
		if got, want := subjects(eventsOf(t, db, "acme")), []string{"1", "0", "3", "e", "d", "c", "b", "a", "2"}; !slices.Equal(got, want) {
			t.Errorf("order is %v, want %v", got, want)
		}
	})
}

func TestNextID_ComesAfterTheLast(t *testing.T) {
	t.Parallel()
	for last, want := range map[string]string{
		"evt_01abc":   "evt_01abd",
		"evt_01abh":   "evt_01abj",
		"evt_01abz":   "evt_01ac0",
		"evt_01zzz":   "evt_02000",
		"evt_0hzz9zz": "evt_0hzza00",
	} {
		if got := store.NextID(last, "evt", noon); got != want || got <= last {
			t.Errorf("after %s comes %s, want %s", last, got, want)
		}
	}
	if id := store.NextID("", "evt", noon); len(id) != len("evt_")+26 {
		t.Errorf("a fresh id is %q", id)
	}
}

func TestEvents_OfTenantOfPoolOfTypes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		mint(t, db, tokenID(1), nil)
		write(t, db, func(tx *store.Tx) error { return createSite(t, tx, "umbrella", "hive") })
		mint(t, db, tokenID(2), nil)
		if list := eventsOf(t, db, "acme"); len(list) != 0 {
			t.Errorf("%d events were seen before they had a position", len(list))
		}
		positioned(t, db)
		for _, c := range []struct {
			query store.EventQuery
			want  string
		}{
			{store.EventQuery{TenantID: "acme", Limit: 10}, "[berlin lab " + tokenID(1) + " " + tokenID(2) + "] false"},
			{store.EventQuery{TenantID: "acme", PoolID: "lab", Limit: 10}, "[lab " + tokenID(1) + " " + tokenID(2) + "] false"},
			{store.EventQuery{TenantID: "acme", PoolID: "lab", Limit: 2}, "[lab " + tokenID(1) + "] true"},
			{store.EventQuery{TenantID: "acme", PoolID: "lab", After: 3, Limit: 2}, "[" + tokenID(2) + "] false"},
			{store.EventQuery{TenantID: "acme", Types: []string{"compute.site.created", "compute.pool.created"}, Limit: 10}, "[berlin lab] false"},
			{store.EventQuery{TenantID: "acme", Types: []string{"it's not there"}, Limit: 10}, "[] false"},
			{store.EventQuery{TenantID: "umbrella", Limit: 10}, "[hive] false"},
			{store.EventQuery{TenantID: "umbrella", PoolID: "lab", Limit: 10}, "[] false"},
		} {
			page, err := db.Events(t.Context(), c.query)
			must(t, err)
			if got := fmt.Sprint(subjects(page.Events), page.More); got != c.want {
				t.Errorf("%+v: %s, want %s", c.query, got, c.want)
			}
		}
	})
}

// TestEvents_TypesLookAtABoundedNumber holds that looking for a rare type goes
// through many events in steps, each of which says how far it came.
func TestEvents_TypesLookAtABoundedNumber(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const many = 12_000 // more than two steps
		write(t, db, func(tx *store.Tx) error { return createSite(t, tx, "acme", "berlin") })
		write(t, db, func(tx *store.Tx) error {
			return tx.Exec(t.Context(), `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
				INSERT INTO events (id, type, tenant_id, source, subject, time, data)
				SELECT 'evt_' || n, type, tenant_id, source, subject, time, data FROM numbers, events`, many-1)
		})
		write(t, db, func(tx *store.Tx) error { _, _, err := tx.CreatePool(t.Context(), lab()); return err })
		for {
			n, err := db.PositionEvents(t.Context(), 5000)
			must(t, err)
			if n == 0 {
				break
			}
		}
		query := store.EventQuery{TenantID: "acme", Types: []string{"compute.pool.created"}, Limit: 10}
		var found []string
		steps := 0
		for more := true; more; steps++ {
			page, err := db.Events(t.Context(), query)
			must(t, err)
			if page.UpTo <= query.After {
				t.Fatalf("step %d stays at %d", steps, query.After)
			}
			found, more, query.After = append(found, subjects(page.Events)...), page.More, page.UpTo
		}
		if fmt.Sprint(found) != "[lab]" || steps != 3 || query.After != many+1 {
			t.Errorf("%v in %d steps, up to %d", found, steps, query.After)
		}
		page, err := db.Events(t.Context(), query)
		if must(t, err); len(page.Events) > 0 || page.More || page.UpTo != query.After {
			t.Errorf("behind the end: %+v", page)
		}
	})
}
