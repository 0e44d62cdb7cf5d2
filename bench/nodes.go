package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	nodesPath  = "/api/compute/nodes/list"
	nodesLimit = 100
	nodesCalls = 400 // of each kind, on either side

	fewNodes  = 1_000
	manyNodes = 100_000
)

// A populated server has one pool with so many nodes.
type populated struct {
	*target
	calls *connection
	deep  string // the cursor in the middle
}

// nodesPostgresGoal: 100,000 nodes make a list or a join at most 1.5 times as
// slow as 1,000 do.
func nodesPostgresGoal(ctx context.Context, l *lab) ([]line, error) {
	if l.postgres == "" {
		return withoutPostgres(), nil
	}
	return nodesGoal(ctx, l, postgresNodes, l.newDatabase)
}

// nodesSQLiteGoal is the same on the embedded database.
func nodesSQLiteGoal(ctx context.Context, l *lab) ([]line, error) {
	return nodesGoal(ctx, l, sqliteNodes, l.newSQLite)
}

func nodesGoal(ctx context.Context, l *lab, seed seedNodes, make func(context.Context) (*database, error)) ([]line, error) {
	return fewAndMany(ctx, make, func(few, many *database) ([]line, error) { return l.compareNodes(ctx, seed, few, many) })
}

func (l *lab) compareNodes(ctx context.Context, seed seedNodes, fewDB, manyDB *database) ([]line, error) {
	few, err := l.populated(ctx, fewDB, seed, fewNodes)
	if err != nil {
		return nil, err
	}
	defer few.stop()
	many, err := l.populated(ctx, manyDB, seed, manyNodes)
	if err != nil {
		return nil, err
	}
	defer many.stop()

	var lines []line
	for _, kind := range []struct {
		name string
		does func(*populated) (func() error, error)
	}{
		{"first page", func(s *populated) (func() error, error) { return s.page(false), nil }},
		{"deep page", func(s *populated) (func() error, error) { return s.page(true), nil }},
		{"join", func(s *populated) (func() error, error) { return s.joining(ctx) }},
	} {
		ours, err1 := kind.does(many)
		peer, err2 := kind.does(few)
		if err1 != nil || err2 != nil {
			return nil, fmt.Errorf("%s: %v, %w", kind.name, err1, orUnexpected(err2))
		}
		oursTook, peerTook, err := inTurn(ctx, nodesCalls, ours, peer)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind.name, err)
		}
		lines = append(lines, compared(kind.name+" with 100,000 nodes, against 1,000", nanoseconds, oursTook, peerTook, atMost("1.5", 1.5)))
	}
	return lines, nil
}

// populated starts a server on a fresh database and fills its pool.
func (l *lab) populated(ctx context.Context, d *database, seed seedNodes, nodes int) (*populated, error) {
	t, err := l.serveJoins(ctx, d.url)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	s := &populated{target: t}
	for _, step := range []func() error{
		func() error { return seed(ctx, d.db, nodes) },
		func() error {
			return d.db.QueryRowContext(ctx, fmt.Sprintf("SELECT id FROM nodes ORDER BY id LIMIT 1 OFFSET %d", nodes/2)).Scan(&s.deep)
		},
		func() (err error) { s.calls, err = t.dial(); return err },
		s.check,
	} {
		if err := step(); err != nil {
			t.stop()
			return nil, err
		}
	}
	l.say("seeded %d nodes in %s", nodes, time.Since(began).Round(100*time.Millisecond))
	return s, nil
}

func (s *populated) body(deep bool) string { return listBody(nodesLimit, deep, s.deep) }

// check makes sure that the pages that are compared are full.
func (s *populated) check() error {
	for _, deep := range []bool{false, true} {
		status, answer, err := s.calls.post(nodesPath, s.body(deep))
		if err != nil {
			return err
		}
		var page struct{ Nodes []json.RawMessage }
		if err := json.Unmarshal(answer, &page); err != nil || status != http.StatusOK || len(page.Nodes) != nodesLimit {
			return fmt.Errorf("a list answers %d with %d nodes: %w", status, len(page.Nodes), orUnexpected(err))
		}
	}
	return nil
}

func (s *populated) page(deep bool) func() error {
	body := s.body(deep)
	return func() error { return s.calls.expect(http.StatusOK, nodesPath, body) }
}

// joining lets another machine join with each call.
func (s *populated) joining(ctx context.Context) (func() error, error) {
	next, err := s.withHotToken(ctx, nodesCalls)
	if err != nil {
		return nil, err
	}
	requests, err := made(nodesCalls, next)
	if err != nil {
		return nil, err
	}
	answers, i := bufio.NewReader(nil), 0
	return func() error {
		i++
		return s.send(requests[i-1], s.status, answers)
	}, nil
}

// inTurn does both n times and returns how long each took, in nanoseconds.
func inTurn(ctx context.Context, n int, ours, peer func() error) (oursTook, peerTook []float64, err error) {
	sides := []func() error{ours, peer}
	var took [2][]float64
	for range n {
		for i, do := range sides {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			began := time.Now()
			if err := do(); err != nil {
				return nil, nil, err
			}
			took[i] = append(took[i], float64(time.Since(began)))
		}
	}
	return took[0], took[1], nil
}
