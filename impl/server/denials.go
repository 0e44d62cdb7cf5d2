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
	counts map[store.Denial]*tally // by denials without count and address
	lost   int64                   // refusals beyond maxDenials kinds
}

// A tally is how often something was refused, and to whom at last.
type tally struct {
	count   int64
	address string
}

func (d *denials) add(denial store.Denial) {
	address := denial.SourceAddress
	denial.SourceAddress = ""
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addLocked(denial, tally{1, address})
}

func (d *denials) addLocked(denial store.Denial, more tally) {
	t := d.counts[denial]
	switch {
	case t != nil:
	case len(d.counts) >= maxDenials:
		d.lost += more.count
		return
	default:
		t = &tally{}
		d.counts[denial] = t
	}
	t.count += more.count
	t.address = more.address
}

// flush writes the counts. What cannot be written is kept for the next time.
func (d *denials) flush(ctx context.Context) error {
	d.mu.Lock()
	counts, lost := d.counts, d.lost
	d.counts, d.lost = map[store.Denial]*tally{}, 0
	d.mu.Unlock()
	if lost > 0 {
		d.log.WarnContext(ctx, "refusals were of too many kinds to be recorded", "count", lost)
	}
	if len(counts) == 0 {
		return nil
	}
	var rows []store.Denial
	for denial, t := range counts {
		denial.Count, denial.SourceAddress = t.count, t.address
		rows = append(rows, denial)
	}
	err := d.db.RecordDenials(ctx, rows)
	if err == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for denial, t := range counts {
		if later := d.counts[denial]; later != nil {
			t.address = later.address
		}
		d.addLocked(denial, *t)
	}
	return err
}
