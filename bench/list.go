package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
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
	few, err := l.newDatabase(ctx)
	if err != nil {
		return nil, err
	}
	defer few.drop()
	many, err := l.newDatabase(ctx)
	if err != nil {
		return nil, err
	}
	defer many.drop()
	unmarked := func(ctx context.Context, n int) error {
		_, err := many.db.ExecContext(ctx, fmt.Sprintf(`UPDATE join_tokens SET ended_at = NULL
			WHERE id IN (SELECT id FROM join_tokens WHERE ended_at IS NOT NULL ORDER BY secret_sha256 LIMIT %d)`, n))
		return err
	}
	return listGoal(ctx, l, seedPostgres, few.url, few.db, many.url, many.db, unmarked)
}

// listSQLiteGoal is the same on the embedded database.
func listSQLiteGoal(ctx context.Context, l *lab) ([]line, error) {
	dir, err := l.folder("sqlite")
	if err != nil {
		return nil, err
	}
	var files [2]string
	var dbs [2]*sql.DB
	for i, name := range []string{"few.db", "many.db"} {
		files[i] = filepath.Join(dir, name)
		if dbs[i], err = sql.Open("sqlite", "file:"+files[i]+"?_busy_timeout=30000&_journal_mode=WAL"); err != nil {
			return nil, err
		}
		defer dbs[i].Close()
	}
	return listGoal(ctx, l, seedSQLite, "sqlite:"+files[0], dbs[0], "sqlite:"+files[1], dbs[1], nil)
}

// listGoal seeds both databases and compares their pages. With unmarked, it then
// looks at a moment in which one in a hundred tokens has expired and is not swept.
func listGoal(ctx context.Context, l *lab, seed func(context.Context, *sql.DB, population) error,
	fewURL string, fewDB *sql.DB, manyURL string, manyDB *sql.DB, unmarked func(context.Context, int) error) ([]line, error) {
	few, err := l.pooled(ctx, fewURL, fewDB, seed, fewTokens)
	if err != nil {
		return nil, err
	}
	defer few.stop()
	many, err := l.pooled(ctx, manyURL, manyDB, seed, manyTokens)
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
		ours, peer, err := comparePages(ctx, many, few, kind.deep)
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
	again, err := l.serve(ctx, manyURL)
	if err != nil {
		return nil, err
	}
	stopMany = again.stop
	many = &pooled{program: again, deep: many.deep}
	if many.calls, err = again.dial(); err != nil {
		return nil, err
	}
	ours, peer, err := comparePages(ctx, many, few, true)
	if err != nil {
		return nil, err
	}
	return append(lines, compared("deep page, 1 % expired and not swept yet", nanoseconds, ours, peer, information)), nil
}

// pooled starts a server on a fresh database and fills its pool.
func (l *lab) pooled(ctx context.Context, url string, db *sql.DB, seed func(context.Context, *sql.DB, population) error, p population) (*pooled, error) {
	server, err := l.serve(ctx, url)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	s := &pooled{program: server}
	for _, step := range []func() error{
		server.makePool,
		func() error { return seed(ctx, db, p) },
		func() (err error) { s.deep, err = middle(ctx, db, p); return err },
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

func (s *pooled) body(deep bool) string {
	cursor := ""
	if deep {
		cursor = `,"cursor":"` + s.deep + `"`
	}
	return fmt.Sprintf(`{"tenantId":%q,"poolId":%q,"limit":%d%s}`, tenant, pool, listLimit, cursor)
}

// comparePages asks both for the same page in turn and returns how long each call
// took, in nanoseconds.
func comparePages(ctx context.Context, ours, peer *pooled, deep bool) (oursTook, peerTook []float64, err error) {
	times := map[*pooled][]float64{}
	for range listCalls {
		for _, s := range []*pooled{ours, peer} {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			began := time.Now()
			if err := s.calls.expect(200, listPath, s.body(deep)); err != nil {
				return nil, nil, err
			}
			times[s] = append(times[s], float64(time.Since(began)))
		}
	}
	return times[ours], times[peer], nil
}
