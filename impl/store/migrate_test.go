package store_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

func adminKey(ctx context.Context, tx *store.Tx, id string) error {
	_, err := tx.CreateAPIKey(ctx, store.APIKey{
		ID: id, SecretSHA256: hash(id), TenantID: "platform", Identity: "admin", Role: "platform-admin",
		CreatedAt: tx.Now(), CreatedBy: "platform/admin",
	})
	return err
}

func TestMigrate_FromEmptyAndAgain(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		db := open(t, storetest.EmptyURL(t, kind))
		wantCode(t, db.Ready(t.Context()), problem.Unavailable)
		for range 2 {
			must(t, db.Migrate(t.Context(), nil))
			must(t, db.Ready(t.Context()))
		}
		if n := count(t, db, "schema_migrations"); n != 1 {
			t.Errorf("%d rows in schema_migrations, want 1", n)
		}
		withLab(t, db)
	})
}

func TestMigrate_ManyReplicasAtOnce_FirstStartOnce(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		url := storetest.EmptyURL(t, kind)
		handles := []*store.DB{open(t, url), open(t, url)}
		var called atomic.Int64
		together(8, func(i int) {
			db := handles[i%2]
			err := db.Migrate(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				called.Add(1)
				return adminKey(ctx, tx, "ak_"+strings.Repeat("0", 25)+string(rune('0'+i)))
			})
			if err == nil {
				err = db.Ready(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
		if called.Load() != 1 || count(t, handles[0], "api_keys") != 1 {
			t.Errorf("first start was called %d times and made %d keys, want one each", called.Load(), count(t, handles[0], "api_keys"))
		}
	})
}

func TestMigrate_FirstStartFails_NothingIsDone(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		db := open(t, storetest.EmptyURL(t, kind))
		broken := errors.New("no room for the key file")
		err := db.Migrate(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			must(t, adminKey(ctx, tx, "ak_"+strings.Repeat("0", 26)))
			return broken
		})
		if !errors.Is(err, broken) {
			t.Errorf("error is %v, want that of the first start", err)
		}
		wantCode(t, db.Ready(t.Context()), problem.Unavailable)
		must(t, db.Migrate(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			return adminKey(ctx, tx, "ak_"+strings.Repeat("0", 26))
		}))
		if n := count(t, db, "api_keys"); n != 1 {
			t.Errorf("%d keys, want the one of the second start", n)
		}
	})
}

func TestMigrate_RevokedKeysAreKeysToo(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		id := "ak_" + strings.Repeat("0", 26)
		write(t, db, func(tx *store.Tx) error { return adminKey(t.Context(), tx, id) })
		write(t, db, func(tx *store.Tx) error {
			_, _, err := tx.RevokeAPIKey(t.Context(), "platform", id, "platform/admin")
			return err
		})
		must(t, db.Migrate(t.Context(), func(context.Context, *store.Tx) error {
			t.Error("called although there was a key once")
			return nil
		}))
	})
}

func TestMigrate_RefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, change, want string }{
		{"newer", "INSERT INTO schema_migrations SELECT 2, 'future', 'aa', applied_at FROM schema_migrations", "schema version 2 (future) and this binary knows only up to 1"},
		{"changed", "UPDATE schema_migrations SET sha256 = 'aabbccddeeff0011'", "0001_joins has changed since it was applied to this database (sha256 aabbccddeeff…"},
		{"other", "UPDATE schema_migrations SET name = 'other'", "another line of releases"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *store.DB) {
				write(t, db, func(tx *store.Tx) error { return tx.Exec(t.Context(), c.change) })
				err := db.Migrate(t.Context(), func(context.Context, *store.Tx) error {
					t.Error("first start was called")
					return nil
				})
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("Migrate says %v, want …%s…", err, c.want)
				}
				err = db.Ready(t.Context())
				wantCode(t, err, problem.Unavailable)
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("Ready says %v, want …%s…", err, c.want)
				}
			})
		})
	}
}
