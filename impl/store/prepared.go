package store

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"time"

	"github.com/uptrace/bun"
)

// ask runs a SELECT that every join runs; text has a ? for each of args. SQLite
// takes longer to understand such a text than to answer it, so outside
// transactions it is prepared there. There may be only so many different texts.
func ask[T any](ctx context.Context, r Reader, doing, text string, args ...any) (rows []T, err error) {
	if r.prepared == nil {
		err = r.sql.NewRaw(text, args...).Scan(ctx, &rows)
	} else {
		err = r.prepared.scan(ctx, &rows, text, args)
	}
	return rows, r.failed(ctx, doing, err)
}

// prepared keeps statements prepared, for each connection that has run them.
type prepared struct {
	db  *bun.DB
	log trace

	mu     sync.Mutex
	byText map[string]*sql.Stmt
}

func (p *prepared) scan(ctx context.Context, rows any, text string, args []any) (err error) {
	if p.log.enabled(ctx) {
		event := &bun.QueryEvent{Query: p.db.QueryGen().FormatQuery(text, args...), StartTime: time.Now()}
		defer func() {
			event.Err = err
			p.log.AfterQuery(ctx, event)
		}()
	}
	statement, err := p.statement(ctx, text)
	if err != nil {
		return err
	}
	values := make([]any, len(args))
	for i, arg := range args {
		values[i] = arg
		if at, ok := arg.(time.Time); ok { // as all times are written
			values[i] = strings.Trim(string(p.db.Dialect().AppendTime(nil, at)), "'")
		}
	}
	found, err := statement.QueryContext(ctx, values...)
	if err != nil {
		return err
	}
	return p.db.ScanRows(ctx, found, rows)
}

func (p *prepared) statement(ctx context.Context, text string) (*sql.Stmt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.byText[text]; known != nil {
		return known, nil
	}
	statement, err := p.db.DB.PrepareContext(ctx, text)
	if err == nil {
		p.byText[text] = statement
	}
	return statement, err
}
