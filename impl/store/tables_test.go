package store_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

func TestSites_CreatedOnceReadAndListed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := storetest.ClockOf(db)
		clock.Set(noon)
		var created atomic.Int64
		together(16, func(i int) {
			err := db.Write(t.Context(), func(tx *store.Tx) error {
				site, made, err := tx.CreateSite(t.Context(), store.Site{TenantID: "acme", SiteID: "berlin", Custom: true, CreatedBy: "acme/ops"})
				if made {
					created.Add(1)
				}
				if err == nil && site != (store.Site{TenantID: "acme", SiteID: "berlin", Custom: true, CreatedAt: noon, CreatedBy: "acme/ops"}) {
					t.Errorf("stored %+v", site)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
		if n := count(t, db, "events WHERE type = 'compute.site.created'"); created.Load() != 1 || n != 1 {
			t.Errorf("created %d times, published %d times", created.Load(), n)
		}
		clock.Advance(time.Hour)
		write(t, db, func(tx *store.Tx) error {
			site, made, err := tx.CreateSite(t.Context(), store.Site{TenantID: "acme", SiteID: "berlin", CreatedBy: "acme/other"})
			if made || !site.Custom || site.CreatedBy != "acme/ops" {
				t.Errorf("created: %v, stored %+v", made, site)
			}
			return err
		})
		if _, err := db.Site(t.Context(), "acme", "Berlin"); true {
			wantCode(t, err, problem.NotFound)
		}
		if site, err := db.Site(t.Context(), "acme", "berlin"); err != nil || !site.CreatedAt.Equal(noon) {
			t.Errorf("site %+v, error %v", site, err)
		}
	})
}

// Both databases must agree on the order of ids, or a cursor of one is wrong.
func TestLists_InTheOrderOfBytes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		want := []string{"0", "9", "A", "B", "a", "a-b", "a.b", "a1", "a:b", "aB", "a_b", "ab", "b"}
		write(t, db, func(tx *store.Tx) error {
			for i := range want {
				if err := createSite(t, tx, "acme", want[(i*5+3)%len(want)]); err != nil {
					return err
				}
			}
			return createSite(t, tx, "Acme", "elsewhere")
		})
		var got []string
		for after := ""; ; {
			rows, more, err := db.Sites(t.Context(), store.SiteQuery{TenantID: "acme", After: after, Limit: 4})
			must(t, err)
			for _, row := range rows {
				got = append(got, row.SiteID)
			}
			if !more {
				break
			}
			after = rows[len(rows)-1].SiteID
		}
		if !slices.Equal(got, want) {
			t.Errorf("order is %v, want %v", got, want)
		}
	})
}

func TestAPIKeys_CreatedListedRevokedOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		storetest.ClockOf(db).Set(noon)
		id := func(n int) string { return fmt.Sprintf("ak_%026d", n) }
		create := func(n int, poolID string) (created bool) {
			write(t, db, func(tx *store.Tx) (err error) {
				created, err = tx.CreateAPIKey(t.Context(), store.APIKey{
					ID: id(n), SecretSHA256: hash(id(n)), TenantID: "acme", Identity: "ci", Role: "pool-operator",
					PoolID: poolID, CreatedAt: tx.Now(), CreatedBy: "acme/ops",
				})
				return err
			})
			return created
		}
		for n, poolID := range []string{"", "lab", "lab"} {
			if !create(n, poolID) || create(n, poolID) {
				t.Errorf("key %d was not created exactly once", n)
			}
		}
		var first atomic.Int64
		together(8, func(int) {
			err := db.Write(t.Context(), func(tx *store.Tx) error {
				key, one, err := tx.RevokeAPIKey(t.Context(), "acme", id(1), "acme/ops")
				if one {
					first.Add(1)
				}
				if err == nil && (key.RevokedAt == nil || !key.RevokedAt.Equal(noon) || key.PoolID != "lab") {
					t.Errorf("revoked %+v", key)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
		if n := count(t, db, "events WHERE type = 'security.api-key.revoked'"); first.Load() != 1 || n != 1 {
			t.Errorf("first %d times, published %d times", first.Load(), n)
		}
		wantCode(t, db.Write(t.Context(), func(tx *store.Tx) error {
			_, _, err := tx.RevokeAPIKey(t.Context(), "umbrella", id(0), "umbrella/ops")
			return err
		}), problem.NotFound)

		list := func(q store.APIKeyQuery) string {
			q.TenantID = "acme"
			rows, more, err := db.APIKeys(t.Context(), q)
			must(t, err)
			var all []string
			for _, row := range rows {
				all = append(all, strings.TrimLeft(row.ID, "ak_0")+row.PoolID)
			}
			return fmt.Sprint(all, more)
		}
		if got := list(store.APIKeyQuery{Limit: 9}) + list(store.APIKeyQuery{Limit: 1}) + list(store.APIKeyQuery{Limit: 2, After: id(0), IncludeInactive: true}); got != "[ 2lab] false[] true[1lab 2lab] false" {
			t.Errorf("listed %s", got)
		}
		if key, err := db.APIKey(t.Context(), id(0)); err != nil || !slices.Equal(key.SecretSHA256, hash(id(0))) || key.PoolID != "" || key.RevokedAt != nil {
			t.Errorf("key %+v, error %v", key, err)
		}
		positioned(t, db)
		for _, event := range eventsOf(t, db, "acme") {
			if event.Source != "/tenant/acme" || event.PoolID != "" {
				t.Errorf("event %+v is not the tenant's", event)
			}
		}
	})
}

func TestLeases_OneOwnerAtATime(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := storetest.ClockOf(db)
		clock.Set(noon)
		handles := []*store.DB{db, storetest.Replica(t, db)}
		acquire := func(owner string) bool {
			t.Helper()
			held, err := db.AcquireLease(t.Context(), "sequencer", owner, time.Minute)
			must(t, err)
			return held
		}
		var held atomic.Int64
		together(8, func(i int) {
			got, err := handles[i%2].AcquireLease(t.Context(), "race", fmt.Sprint(i), time.Minute)
			if err != nil {
				t.Error(err)
			}
			if got {
				held.Add(1)
			}
		})
		if held.Load() != 1 {
			t.Errorf("%d owners hold one lease", held.Load())
		}
		steps := []struct {
			owner string
			after time.Duration
			want  bool
		}{
			{"a", 0, true}, {"b", 0, false}, {"a", 30 * time.Second, true}, // renewed
			{"b", 59 * time.Second, false}, {"b", time.Second, true}, {"a", 0, false},
		}
		for i, step := range steps {
			clock.Advance(step.after)
			if got := acquire(step.owner); got != step.want {
				t.Errorf("step %d: %s holds the lease: %v", i, step.owner, got)
			}
		}
		must(t, db.ReleaseLease(t.Context(), "sequencer", "a")) // not the owner
		if acquire("a") {
			t.Error("another owner could release the lease")
		}
		must(t, db.ReleaseLease(t.Context(), "sequencer", "b"))
		if !acquire("a") {
			t.Error("a released lease was not free")
		}
	})
}
