package store

import (
	"context"
	"log/slog"
	"time"

	"github.com/uptrace/bun"
)

// LevelTrace is the level at which statements are logged, with their values:
// hashes may be among them, secrets never, as none reaches the store.
const LevelTrace = slog.Level(-8)

// trace logs every statement. Its log may be nil.
type trace struct{ log *slog.Logger }

func (t trace) enabled(ctx context.Context) bool {
	return t.log != nil && t.log.Enabled(ctx, LevelTrace)
}

// BeforeQuery implements [bun.QueryHook].
func (trace) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

// AfterQuery implements [bun.QueryHook].
func (t trace) AfterQuery(ctx context.Context, event *bun.QueryEvent) {
	if !t.enabled(ctx) {
		return
	}
	fields := []slog.Attr{slog.String("sql", event.Query), slog.Duration("took", time.Since(event.StartTime))}
	if event.Err != nil {
		fields = append(fields, slog.Any("error", event.Err))
	}
	t.log.LogAttrs(ctx, LevelTrace, "statement", fields...)
}
