// Package events serves the group events (spec/events.md) and gives events their positions.
package events

import (
	"context"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/iam"
	"github.com/bettercompute/bettercompute/impl/store"
)

const (
	cursorPrefix = "ev_"
	watchPage    = 200
	// heartbeat is how often a quiet stream shows that it is alive.
	heartbeat = 15 * time.Second
)

// Events implements [api.Events].
type Events struct {
	db        *store.DB
	feed      *Feed
	streams   *streams
	heartbeat time.Duration
}

// New returns the group; feed wakes its streams.
func New(db *store.DB, feed *Feed) *Events {
	return &Events{db, feed, newStreams(), heartbeat}
}

// List returns the events after a position, and the position to go on from.
func (e *Events) List(ctx context.Context, in *wire.EventsListInput) (*api.EventsListOutput, error) {
	page, err := e.db.Events(ctx, store.EventQuery{
		TenantID: in.TenantID, PoolID: in.PoolID.Value, Types: in.Types, After: position(in.After.Value), Limit: int(in.Limit),
	})
	if err != nil {
		return nil, err
	}
	out := &api.EventsListOutput{Events: make([]api.Event, len(page.Events)), Cursor: cursor(page.UpTo)}
	for i, event := range page.Events {
		out.Events[i] = view(event)
	}
	return out, nil
}

// Watch streams the events after a position, or from now on, until ctx ends;
// before them comes an event that has only that position. A database that
// cannot be reached for a while delays the stream and does not end it.
func (e *Events) Watch(ctx context.Context, in *wire.EventsWatchInput) (iter.Seq2[*api.Event, error], error) {
	release, err := e.streams.take(iam.PrincipalFrom(ctx))
	if err != nil {
		return nil, err
	}
	// Not at the end of the sequence: whoever asked may be gone before it begins.
	context.AfterFunc(ctx, release)
	after := position(in.After.Value)
	if !in.After.Set {
		if after, err = e.db.LastPosition(ctx); err != nil {
			return nil, err
		}
	}
	query := store.EventQuery{TenantID: in.TenantID, PoolID: in.PoolID.Value, Types: in.Types, After: after, Limit: watchPage}
	return func(yield func(*api.Event, error) bool) {
		if !yield(&api.Event{Cursor: cursor(after)}, nil) {
			return
		}
		for {
			news := e.feed.News()
			page, err := e.db.Events(ctx, query)
			for _, row := range page.Events {
				event := view(row)
				if !yield(&event, nil) {
					return
				}
			}
			if err == nil {
				query.After = page.UpTo
			}
			if page.More {
				continue
			}
			if !e.wait(ctx, news, yield) {
				return
			}
		}
	}, nil
}

// wait returns when there may be something new, or false when the stream is over.
func (e *Events) wait(ctx context.Context, news <-chan struct{}, yield func(*api.Event, error) bool) bool {
	timer := time.NewTimer(e.heartbeat)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-news:
		return true
	case <-timer.C:
		return yield(nil, nil)
	}
}

// position is the number in a cursor, which the decoder has checked; 0 for none.
func position(cursor string) int64 {
	n, _ := strconv.ParseInt(strings.TrimPrefix(cursor, cursorPrefix), 10, 64)
	return n
}

func cursor(position int64) string { return cursorPrefix + strconv.FormatInt(position, 10) }

// view is an event as callers see it.
func view(e store.Event) api.Event {
	out := api.Event{
		Specversion:     api.EventSpecversionN10,
		ID:              e.ID,
		Source:          e.Source,
		Type:            e.Type,
		Subject:         e.Subject,
		Time:            e.Time,
		Datacontenttype: api.EventDatacontenttypeApplicationJSON,
		Tenantid:        e.TenantID,
		Cursor:          cursor(*e.Position),
		Data:            e.Data,
	}
	if e.PoolID != "" {
		out.Poolid = &e.PoolID
	}
	return out
}
