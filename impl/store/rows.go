package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/bettercompute/bettercompute/impl/fault"
)

// record is a row that knows its times, so that they can be kept in one form.
type record interface{ times() []*time.Time }

// pointerTo is a record's pointer type.
type pointerTo[T any] interface {
	*T
	record
}

// inUTC puts the times of a row in the form in which both databases keep them:
// UTC and whole microseconds, cut off, not rounded. Absent ones may be nil.
func inUTC(row record) {
	for _, at := range row.times() {
		if at != nil {
			*at = at.UTC().Truncate(time.Microsecond)
		}
	}
}

// one returns the row that query selects; without one it is NOT_FOUND: there
// is no such what.
func one[T any, P pointerTo[T]](ctx context.Context, r Reader, what string, query *bun.SelectQuery) (T, error) {
	var row T
	err := query.Model(P(&row)).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return row, fault.NotFound(what)
	}
	if err != nil {
		return row, r.failed(ctx, "read "+what, err)
	}
	inUTC(P(&row))
	return row, nil
}

// askOne is ask for a single row; without one it is NOT_FOUND, as of one.
func askOne[T any, P pointerTo[T]](ctx context.Context, r Reader, what, text string, args ...any) (row T, err error) {
	rows, err := ask[T](ctx, r, "read "+what, text, args...)
	if err != nil {
		return row, err
	}
	if len(rows) == 0 {
		return row, fault.NotFound(what)
	}
	inUTC(P(&rows[0]))
	return rows[0], nil
}

// locking makes query keep others from changing the row that it selects until
// the transaction ends. They may still read it and refer to it.
func (tx *Tx) locking(query *bun.SelectQuery) *bun.SelectQuery {
	if tx.dialect.lockRow != "" {
		query.For(tx.dialect.lockRow)
	}
	return query
}

// page returns the first limit rows of query, and whether there are more.
func page[T any, P pointerTo[T]](ctx context.Context, r Reader, what string, limit int, query *bun.SelectQuery) ([]T, bool, error) {
	var rows []T
	if err := query.Model(&rows).Limit(int64(limit) + 1).Scan(ctx); err != nil {
		return nil, false, r.failed(ctx, "list "+what, err)
	}
	more := len(rows) > limit
	rows = rows[:min(len(rows), limit)]
	for i := range rows {
		inUTC(P(&rows[i]))
	}
	return rows, more, nil
}

// insert writes a row and reports whether it is new: false where a row of the
// same key is there already, also one that was committed a moment ago.
func (tx *Tx) insert(ctx context.Context, what string, row record) (bool, error) {
	inUTC(row)
	n, err := changed(tx.insertion(row).Exec(ctx))
	return n == 1, tx.failed(ctx, "insert "+what, err)
}

// insertion is the statement that inserts rows, but for those that are there already.
func (tx *Tx) insertion(rows any) *bun.InsertQuery {
	return tx.sql.NewInsert().Model(rows).On("CONFLICT DO NOTHING").Returning("NULL")
}

// insertFor is insert for a row that belongs to another one, the owner:
// where that is missing, it is NOT_FOUND.
func (tx *Tx) insertFor(ctx context.Context, what, owner string, row record) (bool, error) {
	created, err := tx.insert(ctx, what, row)
	if err != nil && refersToNothing(err) {
		return false, fault.NotFound(owner)
	}
	return created, err
}

// update runs an UPDATE … RETURNING * of at most one row and reports whether
// there was one; row is what it became.
func update[T any, P pointerTo[T]](ctx context.Context, tx *Tx, what, statement string, args ...any) (row T, found bool, err error) {
	err = tx.sql.NewRaw(statement+" RETURNING *", args...).Scan(ctx, P(&row))
	if errors.Is(err, sql.ErrNoRows) {
		return row, false, nil
	}
	if err != nil {
		return row, false, tx.failed(ctx, "update "+what, err)
	}
	inUTC(P(&row))
	return row, true, nil
}

// exec runs a statement and returns how many rows it changed.
func (tx *Tx) exec(ctx context.Context, doing, statement string, args ...any) (int, error) {
	n, err := changed(tx.sql.ExecContext(ctx, statement, args...))
	return n, tx.failed(ctx, doing, err)
}

// execAll runs statements that depend on no answer in one round trip to the
// database, in their order, and returns how many rows the last one changed.
func (tx *Tx) execAll(ctx context.Context, doing string, statements ...fmt.Stringer) (int, error) {
	texts := make([]string, len(statements))
	for i, s := range statements {
		texts[i] = s.String()
	}
	n, err := changed(tx.sql.ExecContext(ctx, strings.Join(texts, ";\n")))
	return n, tx.failed(ctx, doing, err)
}

// exec is a change of a single statement, which needs no transaction around it.
func (db *DB) exec(ctx context.Context, doing, statement string, args ...any) (n int, err error) {
	err = db.changes.statement(ctx, func(conn bun.IDB) error {
		n, err = changed(conn.ExecContext(ctx, statement, args...))
		return failure(ctx, doing, err)
	})
	return n, err
}

// changed is how many rows a statement changed.
func changed(result sql.Result, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// Optional is nil for the empty text, which in a row stands for what is not there.
func Optional[T ~string](text string) *T {
	if text == "" {
		return nil
	}
	value := T(text)
	return &value
}
