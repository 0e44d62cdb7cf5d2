package events_test

import (
	"context"
	"fmt"
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

func step(t *testing.T, f *events.Feed) {
	t.Helper()
	if err := f.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// publish makes a site, which is an event.
func publish(t *testing.T, db *store.DB, site string) {
	t.Helper()
	err := db.Write(t.Context(), func(tx *store.Tx) error {
		_, _, err := tx.CreateSite(t.Context(), store.Site{TenantID: "acme", SiteID: site, CreatedBy: "acme/ops"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// last is the last position that was given.
func last(t *testing.T, db *store.DB) int64 {
	t.Helper()
	n, err := db.LastPosition(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

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

// TestWatch_AQuietStreamIsAlive holds that a stream without news sends nil
// events, and goes on with those that come.
func TestWatch_AQuietStreamIsAlive(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		feed := events.NewFeed(db, "a", noLog)
		group := events.New(db, feed)
		group.SetHeartbeat(time.Millisecond)
		caller := iam.WithPrincipal(t.Context(), iam.Principal{Tenant: "acme", Name: "ops"})
		stream, err := group.Watch(caller, &wire.EventsWatchInput{TenantID: "acme"})
		if err != nil {
			t.Fatal(err)
		}
		quiet := 0
		for event, err := range stream {
			if err != nil {
				t.Fatal(err)
			}
			if event != nil && event.Type == "" && quiet == 0 {
				continue // where it begins
			}
			if event != nil {
				if event.Subject != "a" || quiet < 3 {
					t.Errorf("after %d comments comes %s", quiet, event.Subject)
				}
				break
			}
			if quiet++; quiet == 3 {
				publish(t, db, "a")
				step(t, feed)
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
		step(t, first)
		publish(t, db, "a")
		step(t, second)
		if n := last(t, db); n != 0 {
			t.Fatalf("the second gave position %d", n)
		}
		news, others := first.News(), second.News()
		step(t, first)
		if n := last(t, db); n != 1 {
			t.Fatalf("the first gave position %d", n)
		}
		step(t, second)
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
		publish(t, db, "b")
		third := events.NewFeed(storetest.Replica(t, db), "third", noLog)
		step(t, third)
		if n := last(t, db); n != 2 {
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
		step(t, events.NewFeed(db, "dead", noLog))
		publish(t, db, "a")
		for i, pause := range []time.Duration{9 * time.Second, time.Second} { // the lease is for ten
			clock.Advance(pause)
			step(t, events.NewFeed(storetest.Replica(t, db), fmt.Sprint("next", i), noLog))
			if n := last(t, db); n != int64(i) {
				t.Errorf("%v later %d events have positions, want %d", pause, n, i)
			}
		}
	})
}
