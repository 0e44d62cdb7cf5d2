package store_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

func TestPools_CreatedOnceUpdatedOnChange(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := storetest.ClockOf(db)
		clock.Set(noon)
		withLab(t, db)
		want := lab()
		want.CreatedAt, want.UpdatedAt = noon, noon
		clock.Advance(time.Hour)
		update := func(pool store.Pool) (stored store.Pool, changed bool) {
			t.Helper()
			write(t, db, func(tx *store.Tx) error {
				locked, err := tx.PoolForUpdate(t.Context(), pool.TenantID, pool.PoolID)
				if err != nil {
					return err
				}
				if locked != want {
					t.Errorf("locked %+v, want %+v", locked, want)
				}
				stored, changed, err = tx.UpdatePool(t.Context(), pool, "acme/ops")
				return err
			})
			return stored, changed
		}
		if stored, changed := update(lab()); changed || stored != want {
			t.Errorf("the same policy: changed %v, stored %+v", changed, stored)
		}
		pool := lab()
		pool.Attestor, pool.PlatformOperated, pool.AllowVirtualMachines, pool.Erase = "discovery", true, true, "waived"
		stored, changed := update(pool)
		want = pool
		want.CreatedAt, want.UpdatedAt = noon, noon.Add(time.Hour)
		if !changed || stored != want {
			t.Errorf("changed %v, stored %+v, want %+v", changed, stored, want)
		}
		if read, err := db.Pool(t.Context(), "acme", "lab"); err != nil || read != want {
			t.Errorf("read %+v, %v", read, err)
		}
		write(t, db, func(tx *store.Tx) error {
			stored, created, err := tx.CreatePool(t.Context(), lab())
			if created || stored != want {
				t.Errorf("created %v, stored %+v", created, stored)
			}
			return err
		})
		positioned(t, db)
		list := eventsOf(t, db, "acme")
		if len(list) != 3 || list[1].Type != "compute.pool.created" || list[2].Type != "compute.pool.updated" {
			t.Fatalf("events %+v", list)
		}
		var data, wanted any
		must(t, json.Unmarshal(list[2].Data, &data))
		must(t, json.Unmarshal([]byte(`{"poolId":"lab","updatedBy":"acme/ops","policy":{"attestor":"discovery","kubernetes":{"platformOperated":true},"allowVirtualMachines":true,"erase":"waived"}}`), &wanted))
		if fmt.Sprint(data) != fmt.Sprint(wanted) {
			t.Errorf("event holds %v, want %v", data, wanted)
		}
	})
}

func TestPools_KnowWhetherTheirSiteIsCustom(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for _, custom := range []bool{false, true} {
			pool := lab()
			pool.SiteID, pool.PoolID = fmt.Sprint("site-", custom), fmt.Sprint("pool-", custom)
			pool.SiteCustom = !custom // what the caller says of it does not count
			write(t, db, func(tx *store.Tx) error {
				if _, _, err := tx.CreateSite(t.Context(), store.Site{TenantID: "acme", SiteID: pool.SiteID, Custom: custom}); err != nil {
					return err
				}
				created, _, err := tx.CreatePool(t.Context(), pool)
				must(t, err)
				pool.Erase = "waived"
				updated, _, err := tx.UpdatePool(t.Context(), pool, "acme/ops")
				must(t, err)
				locked, err := tx.PoolForUpdate(t.Context(), pool.TenantID, pool.PoolID)
				must(t, err)
				page, _, err := tx.Pools(t.Context(), store.PoolQuery{TenantID: "acme", After: pool.PoolID[:len(pool.PoolID)-1], Limit: 1})
				must(t, err)
				for i, got := range append(page, created, updated, locked) {
					if got.SiteCustom != custom {
						t.Errorf("site custom %v: pool %d says %v", custom, i, got.SiteCustom)
					}
				}
				return nil
			})
		}
	})
}

func TestPools_UnknownIsNotFound(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for name, change := range map[string]func(tx *store.Tx) error{
			"create": func(tx *store.Tx) error { _, _, err := tx.CreatePool(t.Context(), lab()); return err }, // no such site
			"read":   func(tx *store.Tx) error { _, err := tx.Pool(t.Context(), "acme", "lab"); return err },
			"lock":   func(tx *store.Tx) error { _, err := tx.PoolForUpdate(t.Context(), "acme", "lab"); return err },
			"update": func(tx *store.Tx) error { _, _, err := tx.UpdatePool(t.Context(), lab(), "acme/ops"); return err },
		} {
			t.Log(name)
			wantCode(t, db.Write(t.Context(), change), problem.NotFound)
		}
	})
}

func TestPoolForUpdate_DoesNotHoldUpMinting(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		onlyPostgres(t, db) // SQLite has one writer
		withLab(t, db)
		write(t, db, func(tx *store.Tx) error {
			_, err := tx.PoolForUpdate(t.Context(), "acme", "lab")
			mint(t, db, tokenID(1), nil) // hangs where the foreign key waits for the lock
			return err
		})
	})
}
