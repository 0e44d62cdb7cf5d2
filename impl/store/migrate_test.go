package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
	"github.com/bettercompute/bettercompute/migrations"
)

func adminKey(ctx context.Context, tx *store.Tx, id string) error {
	_, err := tx.CreateAPIKey(ctx, store.APIKey{
		ID: id, SecretSHA256: hash(id), TenantID: "platform", Identity: "admin", Role: "platform-admin",
		CreatedAt: tx.Now(), CreatedBy: "platform/admin",
	})
	return err
}

// migrationFiles is how many migrations this binary knows.
func migrationFiles(t testing.TB) int {
	t.Helper()
	files, err := fs.Glob(migrations.FS, "*.sql")
	must(t, err)
	return len(files)
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
		if n, want := count(t, db, "schema_migrations"), migrationFiles(t); n != want {
			t.Errorf("%d rows in schema_migrations, want %d", n, want)
		}
		withLab(t, db)
		before := rows(t, db)
		must(t, db.Migrate(t.Context(), nil))
		unchangedSince(t, db, "migrating again", before)
	})
}

func TestMigrate_FromEveryReleaseBefore_RowsStay(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		for version := 1; version < migrationFiles(t); version++ {
			db := open(t, storetest.EmptyURL(t, kind))
			must(t, db.MigrateTo(t.Context(), version))
			withLab(t, db)
			mint(t, db, tokenID(1), nil)
			err := db.Ready(t.Context())
			wantCode(t, err, problem.Unavailable)
			must(t, db.Migrate(t.Context(), nil))
			must(t, db.Ready(t.Context()))
			claim(t, db, newClaim(tokenID(1), "upgraded"))
		}
	})
}

func TestMigrate_ManyReplicasAtOnce_EachCallsUnderTheLock(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		url := storetest.EmptyURL(t, kind)
		handles := []*store.DB{open(t, url), open(t, url)}
		var called, made atomic.Int64
		together(8, func(i int) {
			db := handles[i%2]
			err := db.Migrate(t.Context(), func(ctx context.Context, tx *store.Tx) error {
				called.Add(1)
				there, err := tx.AnyAPIKey(ctx)
				if err != nil || there {
					return err
				}
				made.Add(1)
				return adminKey(ctx, tx, "ak_"+strings.Repeat("0", 25)+string(rune('0'+i)))
			})
			if err == nil {
				err = db.Ready(t.Context())
			}
			if err == nil { // the queue is there when Migrate returns
				err = db.Write(t.Context(), func(tx *store.Tx) error { return tx.Exec(t.Context(), "DELETE FROM river_job") })
			}
			if err != nil {
				t.Error(err)
			}
		})
		if called.Load() != 8 || made.Load() != 1 || count(t, handles[0], "api_keys") != 1 {
			t.Errorf("called %d times, made %d keys, %d are there; want 8, 1 and 1", called.Load(), made.Load(), count(t, handles[0], "api_keys"))
		}
		if n := count(t, handles[0], "(SELECT line, version FROM river_migration GROUP BY line, version HAVING count(*) > 1) AS twice"); n != 0 {
			t.Errorf("%d migrations of the queue were applied twice", n)
		}
	})
}

func TestMigrate_FunctionFails_NothingIsDone(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		db := open(t, storetest.EmptyURL(t, kind))
		broken := errors.New("no room for the key file")
		err := db.Migrate(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			must(t, adminKey(ctx, tx, "ak_"+strings.Repeat("0", 26)))
			return broken
		})
		if !errors.Is(err, broken) {
			t.Errorf("error is %v, want that of the function", err)
		}
		wantCode(t, db.Ready(t.Context()), problem.Unavailable)
		if _, err := db.AnyAPIKey(t.Context()); err == nil {
			t.Error("there is a table of keys")
		}
		must(t, db.Migrate(t.Context(), func(ctx context.Context, tx *store.Tx) error {
			return adminKey(ctx, tx, "ak_"+strings.Repeat("0", 26))
		}))
		if n := count(t, db, "api_keys"); n != 1 {
			t.Errorf("%d keys, want the one of the second start", n)
		}
	})
}

func TestAnyAPIKey_RevokedKeysAreKeysToo(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		id := "ak_" + strings.Repeat("0", 26)
		check := func(want bool) {
			t.Helper()
			if got, err := db.AnyAPIKey(t.Context()); err != nil || got != want {
				t.Errorf("there is a key: %v, error %v; want %v", got, err, want)
			}
		}
		check(false)
		write(t, db, func(tx *store.Tx) error { return adminKey(t.Context(), tx, id) })
		check(true)
		write(t, db, func(tx *store.Tx) error {
			_, _, err := tx.RevokeAPIKey(t.Context(), "platform", id, "platform/admin")
			return err
		})
		check(true)
	})
}

func TestMigrate_RefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	known := migrationFiles(t)
	for _, c := range []struct{ name, change, want string }{
		{"newer", "INSERT INTO schema_migrations SELECT max(version) + 1, 'future', 'aa', max(applied_at) FROM schema_migrations", fmt.Sprintf("schema version %d (future) and this binary knows only up to %d", known+1, known)},
		{"changed", "UPDATE schema_migrations SET sha256 = 'aabbccddeeff0011'", "0001_joins has changed since it was applied to this database (sha256 aabbccddeeff…"},
		{"other", "UPDATE schema_migrations SET name = 'other'", "another line of releases"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *store.DB) {
				write(t, db, func(tx *store.Tx) error { return tx.Exec(t.Context(), c.change) })
				before := rows(t, db)
				err := db.Migrate(t.Context(), func(context.Context, *store.Tx) error {
					t.Error("the function was called")
					return nil
				})
				unchangedSince(t, db, "a migration that was refused", before)
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
