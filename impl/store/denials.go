package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/bettercompute/bettercompute/gen/events"
)

// maxDenials bounds the table: beyond it, those that were not repeated for the
// longest time are forgotten.
const maxDenials = 10_000

// Denial is a row of denials: refusals that are alike, and how many there were.
type Denial struct {
	Principal string `bun:",pk"`
	Action    string `bun:",pk"`
	Resource  string `bun:",pk"`
	Reason    string `bun:",pk"`
	Count     int64
	FirstAt   time.Time
	LastAt    time.Time

	Join          RejectedJoin `bun:"-"` // where it was a join with a token that there is
	SourceAddress string       `bun:"-"` // of the last of them; only for joins
}

// RejectedJoin is what a join was refused for.
type RejectedJoin struct{ TokenID, TenantID, PoolID string }

func (d *Denial) times() []*time.Time { return []*time.Time{&d.FirstAt, &d.LastAt} }

// RecordDenials adds refusals to the counts of those that are alike, and
// publishes one security.join.rejected for those of joins (JR-6). Without times
// they happened now.
func (db *DB) RecordDenials(ctx context.Context, denials []Denial) error {
	if len(denials) == 0 {
		return nil
	}
	return db.Write(ctx, func(tx *Tx) error {
		rows := addUp(denials, tx.Now())
		_, err := tx.sql.NewInsert().Model(&rows).Returning("NULL").
			On("CONFLICT (principal, action, resource, reason) DO UPDATE").
			Set("count = denial.count + EXCLUDED.count").
			Set("first_at = CASE WHEN EXCLUDED.first_at < denial.first_at THEN EXCLUDED.first_at ELSE denial.first_at END").
			Set("last_at = CASE WHEN EXCLUDED.last_at > denial.last_at THEN EXCLUDED.last_at ELSE denial.last_at END").
			Exec(ctx)
		if err != nil {
			return tx.failed(ctx, "record denials", err)
		}
		if err := tx.publishAll(ctx, rejections(rows)); err != nil {
			return err
		}
		_, err = tx.exec(ctx, "forget denials", `DELETE FROM denials WHERE (principal, action, resource, reason) IN (
			SELECT principal, action, resource, reason FROM denials ORDER BY last_at DESC LIMIT ? OFFSET ?)`,
			maxDenials, maxDenials)
		return err
	})
}

// rejections are the events of refused joins.
func rejections(rows []Denial) (all []news) {
	for _, row := range rows {
		if row.Join != (RejectedJoin{}) {
			all = append(all, news{poolSubject(row.Join.TenantID, row.Join.PoolID, row.Join.TokenID), events.SecurityJoinRejected{
				TokenID: row.Join.TokenID, Cause: row.Reason, Count: row.Count, SourceAddress: row.SourceAddress,
			}})
		}
	}
	return all
}

// addUp makes one row of all that are alike, in an order that is the same for
// every replica, so that two of them cannot wait for each other.
func addUp(denials []Denial, now time.Time) []Denial {
	rows := slices.Clone(denials)
	for i := range rows {
		if rows[i].LastAt.IsZero() {
			rows[i].LastAt = now
		}
		if rows[i].FirstAt.IsZero() {
			rows[i].FirstAt = rows[i].LastAt
		}
		inUTC(&rows[i])
	}
	slices.SortStableFunc(rows, alike)
	sum := rows[:1]
	for _, row := range rows[1:] {
		last := &sum[len(sum)-1]
		if alike(*last, row) != 0 {
			sum = append(sum, row)
			continue
		}
		last.Count += row.Count
		if !row.LastAt.Before(last.LastAt) {
			last.SourceAddress = row.SourceAddress
		}
		if row.FirstAt.Before(last.FirstAt) {
			last.FirstAt = row.FirstAt
		}
		if row.LastAt.After(last.LastAt) {
			last.LastAt = row.LastAt
		}
	}
	return sum
}

func alike(a, b Denial) int {
	return cmp.Or(
		cmp.Compare(a.Principal, b.Principal), cmp.Compare(a.Action, b.Action),
		cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Reason, b.Reason))
}

// Denials returns up to limit denials, the latest first, and whether there are more.
func (r Reader) Denials(ctx context.Context, limit int) ([]Denial, bool, error) {
	return page[Denial](ctx, r, "denials", limit, r.sql.NewSelect().
		Order("last_at DESC", "principal", "action", "resource", "reason"))
}
