package events

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/bettercompute/bettercompute/impl/store"
)

const (
	// sequencerLease names the lease of the one replica that gives positions.
	sequencerLease = "event-sequencer"
	leaseTerm      = 10 * time.Second
	leaseRenewal   = leaseTerm / 3
	// feedPause is how long an event waits at most before it is looked for.
	feedPause = 200 * time.Millisecond
	feedBatch = 500
)

// A Feed gives committed events their positions, on the replica that holds the
// lease, and wakes the streams of its own replica. A position is given after
// the commit, so that a slow transaction is never skipped.
type Feed struct {
	db    *store.DB
	log   *slog.Logger
	owner string // this replica, as the lease has it

	mu   sync.Mutex
	news chan struct{} // closed when there is something new

	held    bool      // this replica gives positions
	renewAt time.Time // when the lease is asked for again
	last    int64     // the last position seen
}

// NewFeed returns a feed that does nothing until it is run.
func NewFeed(db *store.DB, owner string, log *slog.Logger) *Feed {
	return &Feed{db: db, log: log, owner: owner, news: make(chan struct{})}
}

// News returns a channel that is closed as soon as there may be new events.
// Ask for it before reading, so that nothing falls in between.
func (f *Feed) News() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.news
}

func (f *Feed) wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.news)
	f.news = make(chan struct{})
}

// Run works until ctx ends, and then gives the lease up.
func (f *Feed) Run(ctx context.Context) {
	tick := time.NewTicker(feedPause)
	defer tick.Stop()
	for ctx.Err() == nil {
		step, cancel := context.WithTimeout(ctx, leaseTerm) // a connection may have gone silent for ever
		err := f.Step(step)
		cancel()
		if err != nil && ctx.Err() == nil {
			f.log.WarnContext(ctx, "events wait for the database", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := f.db.ReleaseLease(ending, sequencerLease, f.owner); err != nil {
		f.log.WarnContext(ending, "the event lease was not given up and will lapse", "error", err)
	}
}

// Step does what Run does once. It is exported for tests, which have no time to wait.
func (f *Feed) Step(ctx context.Context) error {
	if now := time.Now(); !now.Before(f.renewAt) {
		held, err := f.db.AcquireLease(ctx, sequencerLease, f.owner, leaseTerm)
		if err != nil {
			f.held = false
			return err
		}
		f.held, f.renewAt = held, now.Add(leaseRenewal)
	}
	for f.held {
		n, err := f.db.PositionEvents(ctx, feedBatch)
		if err != nil {
			return err
		}
		if n < feedBatch {
			break
		}
	}
	last, err := f.db.LastPosition(ctx)
	if err != nil {
		return err
	}
	if last != f.last {
		f.last = last
		f.wake()
	}
	return nil
}
