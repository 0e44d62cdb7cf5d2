package events_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/events"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/iam"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

var noLog = slog.New(slog.NewTextHandler(io.Discard, nil))

// TestWatch_ACallerWhoIsGoneHoldsNothing opens many streams whose callers are
// gone before the first message is asked for.
func TestWatch_ACallerWhoIsGoneHoldsNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		group := events.New(db, events.NewFeed(db, "a", noLog))
		caller := iam.WithPrincipal(t.Context(), iam.Principal{Tenant: "acme", Name: "ops"})
		deadline := time.Now().Add(30 * time.Second)
		for opened := 0; opened < 200; {
			ctx, leave := context.WithCancel(caller)
			_, err := group.Watch(ctx, &wire.EventsWatchInput{TenantID: "acme"})
			leave()
			switch {
			case err == nil:
				opened++
			case !fault.Is(err, problem.RateLimited): // leaving takes a moment
				t.Fatal(err)
			case time.Now().After(deadline):
				t.Fatalf("after %d streams there is no room", opened)
			}
		}
	})
}

// TestFeed_OneReplicaGivesPositions holds that only the holder of the lease
// gives positions, that all are woken, and that another takes over.
func TestFeed_OneReplicaGivesPositions(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		first := events.NewFeed(db, "first", noLog)
		second := events.NewFeed(storetest.Replica(t, db), "second", noLog)
		step := func(f *events.Feed) {
			t.Helper()
			if err := f.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		publish := func(site string) {
			t.Helper()
			err := db.Write(t.Context(), func(tx *store.Tx) error {
				_, _, err := tx.CreateSite(t.Context(), store.Site{TenantID: "acme", SiteID: site, CreatedBy: "acme/ops"})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		last := func() int64 {
			t.Helper()
			n, err := db.LastPosition(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		step(first)
		publish("a")
		step(second)
		if n := last(); n != 0 {
			t.Fatalf("the second gave position %d", n)
		}
		news, others := first.News(), second.News()
		step(first)
		if n := last(); n != 1 {
			t.Fatalf("the first gave position %d", n)
		}
		step(second)
		for _, woken := range []<-chan struct{}{news, others} {
			select {
			case <-woken:
			default:
				t.Error("a replica was not woken")
			}
		}
		select {
		case <-first.News():
			t.Error("woken without news")
		default:
		}

		// A run that ends gives the lease up: the next replica has it at once.
		ctx, end := context.WithCancel(t.Context())
		end()
		first.Run(ctx)
		publish("b")
		third := events.NewFeed(storetest.Replica(t, db), "third", noLog)
		step(third)
		if n := last(); n != 2 {
			t.Errorf("the third gave position %d", n)
		}
	})
}

// TestFeed_ALeaseLapses holds that a replica that died is followed by another
// after the lease's time.
func TestFeed_ALeaseLapses(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := storetest.ClockOf(db)
		clock.Set(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		dead := events.NewFeed(db, "dead", noLog)
		if err := dead.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		for after, takes := range map[time.Duration]bool{9 * time.Second: false, 10 * time.Second: true} {
			clock.Set(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(after))
			held, err := db.AcquireLease(t.Context(), "event-sequencer", "next", 0)
			if err != nil || held != takes {
				t.Errorf("after %v the next one has it: %v (error: %v)", after, held, err)
			}
		}
	})
}
