package store

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/bettercompute/bettercompute/gen/events"
	"github.com/bettercompute/bettercompute/impl/ids"
)

// Event is a row of events; see Event in spec/types.md.
type Event struct {
	ID       string `bun:",pk"`
	Position *int64 // nil until PositionEvents has seen it
	Type     string
	TenantID string
	PoolID   string `bun:",nullzero"` // empty: of the tenant as a whole
	Source   string
	Subject  string
	Time     time.Time
	Data     json.RawMessage // equal as JSON on both databases, not byte by byte
}

func (e *Event) times() []*time.Time { return []*time.Time{&e.Time} }

// subject is what an event is about.
type subject struct {
	source   string // the resource
	id       string // of the thing that changed
	tenantID string
	poolID   string // empty: the event is the tenant's
}

func poolSubject(tenantID, poolID, id string) subject {
	return subject{source: "/compute-pool/" + tenantID + "/" + poolID, id: id, tenantID: tenantID, poolID: poolID}
}

// news is an event that is to be published.
type news struct {
	about   subject
	payload events.Payload
}

// publish writes the event of a change, in the change's transaction.
func (tx *Tx) publish(ctx context.Context, about subject, payload events.Payload) error {
	return tx.publishAll(ctx, []news{{about, payload}})
}

// publishAll is publish for any number of events, in their order.
func (tx *Tx) publishAll(ctx context.Context, all []news) error {
	if len(all) == 0 {
		return nil
	}
	statement, err := tx.publication(ctx, all...)
	if err != nil {
		return err
	}
	_, err = statement.Exec(ctx)
	return tx.failed(ctx, "insert events", err)
}

// publication is the statement that publishes events.
func (tx *Tx) publication(ctx context.Context, all ...news) (*bun.InsertQuery, error) {
	rows := make([]Event, len(all))
	for i, n := range all {
		data, err := json.Marshal(n.payload)
		if err != nil {
			return nil, tx.failed(ctx, "encode event", err)
		}
		tx.lastEvent = nextID(tx.lastEvent, "evt", tx.Now())
		rows[i] = Event{
			ID:       tx.lastEvent,
			Type:     n.payload.EventType(),
			TenantID: n.about.tenantID,
			PoolID:   n.about.poolID,
			Source:   n.about.source,
			Subject:  n.about.id,
			Time:     tx.Now(),
			Data:     data,
		}
	}
	return tx.insertion(&rows), nil
}

// nextID returns the id that follows last, as rows of one transaction have one
// time and keep their order by their ids; a fresh one where last is empty.
func nextID(last, prefix string, at time.Time) string {
	if last == "" {
		return ids.New(prefix, at)
	}
	const digits = "0123456789abcdefghjkmnpqrstvwxyz"
	id := []byte(last)
	for i := len(id) - 1; id[i] != '_'; i-- { // add one, carrying over
		if d := strings.IndexByte(digits, id[i]) + 1; d < len(digits) {
			id[i] = digits[d]
			break
		}
		id[i] = digits[0]
	}
	return string(id)
}

// EventQuery selects a page of a tenant's events.
type EventQuery struct {
	TenantID string
	PoolID   string   // empty: of all pools, and of none
	Types    []string // empty: all
	After    int64    // the position of the last event of the page before
	Limit    int
}

// EventPage is what a query for events found.
type EventPage struct {
	Events []Event // in the order of their positions
	UpTo   int64   // the position up to which it looked, to go on from
	More   bool    // whether there are events behind UpTo
}

// eventWindow is how many of a tenant's or pool's events one query with types
// looks at, so that looking for rare ones costs no more than finding many.
const eventWindow = 5000

// Events returns up to Limit events. With types it looks at a bounded number
// of events, so that it may find fewer than there are, or none, and say that
// there are more. Events without a position do not appear yet.
func (r Reader) Events(ctx context.Context, q EventQuery) (EventPage, error) {
	scope := func(query *bun.SelectQuery) *bun.SelectQuery {
		query.Where("tenant_id = ? AND position > ?", q.TenantID, q.After).Order("position")
		if q.PoolID != "" {
			query.Where("pool_id = ?", q.PoolID)
		}
		return query
	}
	found := EventPage{UpTo: q.After}
	query := scope(r.sql.NewSelect())
	if len(q.Types) > 0 {
		window := scope(r.sql.NewSelect().Model((*Event)(nil)).Column("position")).Limit(eventWindow)
		var seen int
		err := r.sql.NewSelect().ColumnExpr("count(*), coalesce(max(position), ?)", q.After).
			TableExpr("(?) AS seen", window).Scan(ctx, &seen, &found.UpTo)
		if err != nil {
			return EventPage{}, r.failed(ctx, "look through events", err)
		}
		found.More = seen == eventWindow
		query.Where("position <= ?", found.UpTo).Where("type IN (?)", bun.List(q.Types))
	}
	events, more, err := page[Event](ctx, r, "events", q.Limit, query)
	if err != nil {
		return EventPage{}, err
	}
	if found.Events = events; more || len(q.Types) == 0 && len(events) > 0 {
		found.UpTo, found.More = *events[len(events)-1].Position, more
	}
	return found, nil
}

// LastPosition is the last position given to an event; 0 before the first.
func (r Reader) LastPosition(ctx context.Context) (last int64, err error) {
	err = r.sql.NewRaw("SELECT last FROM event_position").Scan(ctx, &last)
	return last, r.failed(ctx, "read event position", err)
}

// PositionEvents gives the next positions to up to limit events that have been
// committed and have none, in the order of their times and ids, and returns how
// many there were. Positions have no gaps and become visible in their order,
// from any number of replicas, so that a reader who goes on from the last one
// it saw misses nothing: an event whose transaction took longer comes later.
func (db *DB) PositionEvents(ctx context.Context, limit int) (n int, err error) {
	var waiting bool
	err = db.sql.NewRaw("SELECT EXISTS (SELECT 1 FROM events WHERE position IS NULL)").Scan(ctx, &waiting)
	if err != nil || !waiting {
		return 0, db.failed(ctx, "look for new events", err)
	}
	err = db.Write(ctx, func(tx *Tx) error {
		// The lock comes first, in its own statement: the next one then sees
		// all that the last holder of the lock has committed.
		var last int64
		err := tx.sql.NewRaw("SELECT last FROM event_position"+tx.dialect.forUpdate).Scan(ctx, &last)
		if err != nil {
			return tx.failed(ctx, "lock event position", err)
		}
		n, err = tx.exec(ctx, "position events", `UPDATE events SET position = ? + fresh.n
			FROM (SELECT id, row_number() OVER (ORDER BY time, id) AS n
				FROM events WHERE position IS NULL ORDER BY time, id LIMIT ?) AS fresh
			WHERE events.id = fresh.id`, last, limit)
		if err != nil || n == 0 {
			return err
		}
		_, err = tx.exec(ctx, "advance event position", "UPDATE event_position SET last = ?", last+int64(n))
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
