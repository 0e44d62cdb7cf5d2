package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

func TestWrite_FailsOrPanics_NothingIsWritten(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		broken := errors.New("broken")
		if err := db.Write(t.Context(), func(tx *store.Tx) error {
			must(t, createSite(t, tx, "acme", "berlin"))
			return broken
		}); err != broken {
			t.Errorf("error is %v, want the very one that the function returned", err)
		}
		func() {
			defer func() {
				if recover() != "broken" {
					t.Error("the panic did not come through")
				}
			}()
			_ = db.Write(t.Context(), func(tx *store.Tx) error {
				must(t, createSite(t, tx, "acme", "berlin"))
				panic("broken")
			})
		}()
		if n := count(t, db, "sites"); n != 0 {
			t.Errorf("%d sites were written", n)
		}
		write(t, db, func(tx *store.Tx) error { return createSite(t, tx, "acme", "berlin") })
	})
}

func TestWrite_FailedStatementIgnored_NothingIsWritten(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		err := db.Write(t.Context(), func(tx *store.Tx) error {
			must(t, createSite(t, tx, "acme", "berlin"))
			_ = tx.Exec(t.Context(), "INSERT INTO leases (name) VALUES ('half')")
			return nil
		})
		if err == nil || fault.From(err).Code != problem.Internal {
			t.Errorf("error is %v, want INTERNAL", err)
		}
		if n := count(t, db, "sites"); n != 0 {
			t.Error("half a transaction was written")
		}
	})
}

func TestWrite_NotFoundIsAnAnswer(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		write(t, db, func(tx *store.Tx) error {
			_, err := tx.Pool(t.Context(), "acme", "lab")
			wantCode(t, err, problem.NotFound)
			return createSite(t, tx, "acme", "berlin")
		})
	})
}

func TestWrite_Cancelled(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for name, inside := range map[string]bool{"before": false, "inside": true} {
			ctx, cancel := context.WithCancel(t.Context())
			if !inside {
				cancel()
			}
			err := db.Write(ctx, func(tx *store.Tx) error {
				if err := createSite(t, tx, "acme", "berlin"); err != nil {
					return err
				}
				cancel()
				return nil
			})
			if !errors.Is(err, context.Canceled) || fault.From(err).Code != problem.Unavailable {
				t.Errorf("%s: error is %v", name, err)
			}
		}
		if n := count(t, db, "sites"); n != 0 {
			t.Error("a cancelled transaction was written")
		}
		write(t, db, func(tx *store.Tx) error { return createSite(t, tx, "acme", "berlin") })
	})
}

func TestWrite_CancelledWhileWaiting(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		other := storetest.Replica(t, db)
		write(t, db, func(tx *store.Tx) error {
			if _, err := tx.PoolForUpdate(t.Context(), "acme", "lab"); err != nil {
				return err
			}
			for name, waiting := range map[string]*store.DB{"this handle": db, "another one": other} {
				ctx, cancel := context.WithCancel(t.Context())
				waits := make(chan struct{})
				ended := make(chan error)
				go func() {
					ended <- waiting.Write(ctx, func(tx *store.Tx) error { // SQLite waits here
						close(waits)
						_, err := tx.PoolForUpdate(ctx, "acme", "lab") // Postgres here
						return err
					})
				}()
				if isPostgres(db) {
					<-waits
				}
				cancel()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("%s: error is %v", name, err)
				}
			}
			return nil
		})
	})
}

func TestClose_CallsAfterwardsAreUnavailable(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		must(t, db.Close())
		_, err := db.Pool(t.Context(), "acme", "lab")
		wantCode(t, err, problem.Unavailable)
		wantCode(t, db.Write(t.Context(), func(*store.Tx) error { return nil }), problem.Unavailable)
		wantCode(t, db.Ready(t.Context()), problem.Unavailable)
	})
}

func TestStats_CountsConnections(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		write(t, db, func(*store.Tx) error {
			if s := db.Stats(); s.InUse != 1 || s.Open < 1 || s.Max < 4 {
				t.Errorf("stats %+v", s)
			}
			return nil
		})
		if s := db.Stats(); s.InUse != 0 || s.Idle < 1 {
			t.Errorf("stats %+v", s)
		}
	})
}
