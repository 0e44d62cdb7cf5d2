package server

import (
	"context"
	"log/slog"
	"sync"

	"github.com/bettercompute/bettercompute/impl/store"
)

// maxDenials is how many kinds of refusal are kept apart between two flushes.
const maxDenials = 1000

// denials counts refusals that are alike, so that a caller who is refused
// cannot make us write once for each call.
type denials struct {
	db  *store.DB
	log *slog.Logger

	mu     sync.Mutex
	counts map[store.Denial]int64
	lost   int64 // refusals beyond maxDenials kinds
}

func (d *denials) add(denial store.Denial) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.counts[denial]; !known && len(d.counts) >= maxDenials {
		d.lost++
		return
	}
	d.counts[denial]++
}

// flush writes the counts. What cannot be written is kept for the next time.
func (d *denials) flush(ctx context.Context) error {
	d.mu.Lock()
	counts, lost := d.counts, d.lost
	d.counts, d.lost = map[store.Denial]int64{}, 0
	d.mu.Unlock()
	if lost > 0 {
		d.log.WarnContext(ctx, "refusals were of too many kinds to be recorded", "count", lost)
	}
	if len(counts) == 0 {
		return nil
	}
	var rows []store.Denial
	for denial, count := range counts {
		denial.Count = count
		rows = append(rows, denial)
	}
	err := d.db.RecordDenials(ctx, rows)
	if err == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for denial, count := range counts {
		if len(d.counts) < maxDenials {
			d.counts[denial] += count
		}
	}
	return err
}
