package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	listPath  = "/api/compute/joinTokens/list"
	listLimit = 100
	listCalls = 400 // of each kind, on either side
)

// A pooled server serves one pool of a known population.
type pooled struct {
	*program
	calls *connection
	deep  string // the cursor in the middle of the live tokens
}

// listPostgresGoal: a page of a pool that has seen a million tokens takes no
// longer than one of a small pool.
func listPostgresGoal(ctx context.Context, l *lab) ([]line, error) {
	if l.postgres == "" {
		return withoutPostgres(), nil
	}
	return fewAndMany(ctx, l.newDatabase, func(few, many *database) ([]line, error) {
		unmarked := func(ctx context.Context, n int) error {
			_, err := many.db.ExecContext(ctx, fmt.Sprintf(`UPDATE join_tokens SET ended_at = NULL
				WHERE id IN (SELECT id FROM join_tokens WHERE ended_at IS NOT NULL ORDER BY secret_sha256 LIMIT %d)`, n))
			return err
		}
		return l.compareLists(ctx, seedPostgres, few, many, unmarked)
	})
}

// listSQLiteGoal is the same on the embedded database.
func listSQLiteGoal(ctx context.Context, l *lab) ([]line, error) {
	return fewAndMany(ctx, l.newSQLite, func(few, many *database) ([]line, error) {
		return l.compareLists(ctx, seedSQLite, few, many, nil)
	})
}

// seedTokens fills the pool with a population of tokens.
type seedTokens func(context.Context, *sql.DB, population) error

// compareLists seeds both databases and compares their pages. With unmarked, it
// then looks at a moment in which one in a hundred tokens has expired and is not swept.
func (l *lab) compareLists(ctx context.Context, seed seedTokens, fewDB, manyDB *database, unmarked func(context.Context, int) error) ([]line, error) {
	few, err := l.pooled(ctx, fewDB, seed, fewTokens)
	if err != nil {
		return nil, err
	}
	defer few.stop()
	many, err := l.pooled(ctx, manyDB, seed, manyTokens)
	if err != nil {
		return nil, err
	}
	stopMany := many.stop
	defer func() { stopMany() }()

	var lines []line
	for _, kind := range []struct {
		name string
		deep bool
	}{{"first page", false}, {"deep page", true}} {
		ours, peer, err := inTurn(ctx, listCalls, many.page(kind.deep), few.page(kind.deep))
		if err != nil {
			return nil, err
		}
		lines = append(lines, compared(kind.name+" of 1,000,000 tokens, against 1,000", nanoseconds, ours, peer, atMost("2", 2)))
	}
	if unmarked == nil {
		return lines, nil
	}
	// The sweep would mark them half a minute after a start: be done before.
	stopMany()
	stopMany = func() error { return nil }
	expired := manyTokens.tokens / 100
	if err := unmarked(ctx, expired); err != nil {
		return nil, err
	}
	again, err := l.serve(ctx, manyDB.url)
	if err != nil {
		return nil, err
	}
	stopMany = again.stop
	many = &pooled{program: again, deep: many.deep}
	if many.calls, err = again.dial(); err != nil {
		return nil, err
	}
	ours, peer, err := inTurn(ctx, listCalls, many.page(true), few.page(true))
	if err != nil {
		return nil, err
	}
	return append(lines, compared("deep page, 1 % expired and not swept yet", nanoseconds, ours, peer, information)), nil
}

// pooled starts a server on a fresh database and fills its pool.
func (l *lab) pooled(ctx context.Context, d *database, seed seedTokens, p population) (*pooled, error) {
	server, err := l.serve(ctx, d.url)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	s := &pooled{program: server}
	for _, step := range []func() error{
		server.makePool,
		func() error { return seed(ctx, d.db, p) },
		func() (err error) { s.deep, err = middle(ctx, d.db, p); return err },
		func() (err error) { s.calls, err = server.dial(); return err },
		func() error { return s.check() },
	} {
		if err := step(); err != nil {
			server.stop()
			return nil, err
		}
	}
	l.say("seeded %d tokens in %s", p.tokens, time.Since(began).Round(100*time.Millisecond))
	return s, nil
}

// check makes sure that the pages that are compared are full.
func (s *pooled) check() error {
	for _, deep := range []bool{false, true} {
		status, answer, err := s.calls.post(listPath, s.body(deep))
		if err != nil {
			return err
		}
		var page struct{ JoinTokens []json.RawMessage }
		if err := json.Unmarshal(answer, &page); err != nil || status != 200 || len(page.JoinTokens) != listLimit {
			return fmt.Errorf("a list answers %d with %d tokens: %w", status, len(page.JoinTokens), orUnexpected(err))
		}
	}
	return nil
}

func (s *pooled) body(deep bool) string { return listBody(listLimit, deep, s.deep) }

func (s *pooled) page(deep bool) func() error {
	body := s.body(deep)
	return func() error { return s.calls.expect(http.StatusOK, listPath, body) }
}

// listBody asks for the first page of the pool, or for the one behind a cursor.
func listBody(limit int, deep bool, cursor string) string {
	after := ""
	if deep {
		after = `,"cursor":"` + cursor + `"`
	}
	return fmt.Sprintf(`{"tenantId":%q,"poolId":%q,"limit":%d%s}`, tenant, pool, limit, after)
}
