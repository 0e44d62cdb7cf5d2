package store

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/uptrace/bun"
)

// groupLimit is how many changes are committed together at most: how long the
// first of them may wait for the last.
const groupLimit = 64

// A groupCommit runs changes one after another on the single writing connection
// of SQLite, and commits together those that wait for each other, so that the
// disk is waited for once. One that fails takes nothing else with it, and none
// has succeeded before the commit. A change that nobody waits behind is
// committed at once.
type groupCommit struct {
	db   *bun.DB
	open *group // belongs to the change whose turn it is; nil between groups

	mu    sync.Mutex
	taken bool            // it is some change's turn
	queue []chan struct{} // of changes that wait for theirs, closed when it comes
}

// newGroupCommit takes a handle of its own, see uninterrupted.
func newGroupCommit(writer *bun.DB) *groupCommit {
	return &groupCommit{db: writer.WithQueryHook(uninterrupted{})}
}

// uninterrupted lets every statement end, as SQLite rolls back a transaction of
// which it breaks one off. Only the first one waits for others.
type uninterrupted struct{}

// BeforeQuery implements [bun.QueryHook].
func (uninterrupted) BeforeQuery(ctx context.Context, event *bun.QueryEvent) context.Context {
	if event.Query == "BEGIN" {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// AfterQuery implements [bun.QueryHook].
func (uninterrupted) AfterQuery(context.Context, *bun.QueryEvent) {}

func (c *groupCommit) transact(ctx context.Context, fn func(bun.IDB) error) error {
	joined, err := c.turn(ctx, fn)
	if joined == nil {
		return err
	}
	<-joined.done // also where it failed: that may be due to those before it
	if joined.err != nil {
		return failure(ctx, "commit", joined.err)
	}
	return err
}

func (c *groupCommit) statement(ctx context.Context, fn func(bun.IDB) error) error {
	return c.transact(ctx, fn)
}

// turn runs fn when its turn comes, and returns the group that it is part of:
// nil where it failed before anything else was in the group.
func (c *groupCommit) turn(ctx context.Context, fn func(bun.IDB) error) (*group, error) {
	if err := c.takeTurn(ctx); err != nil {
		return nil, failure(ctx, "begin", err)
	}
	defer c.passTurn()
	if c.open == nil {
		begun, err := begin(ctx, c.db)
		if err != nil {
			return nil, failure(ctx, "begin", err)
		}
		c.open = begun
	}
	err := c.open.run(ctx, fn)
	if c.open.size == 0 {
		return nil, err
	}
	return c.open, err
}

func (c *groupCommit) takeTurn(ctx context.Context) error {
	c.mu.Lock()
	if !c.taken {
		c.taken = true
		c.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	c.queue = append(c.queue, turn)
	c.mu.Unlock()

	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.queue, turn)
	if i < 0 {
		return nil // it came at the same moment, and is to be passed on
	}
	c.queue = slices.Delete(c.queue, i, i+1)
	return ctx.Err()
}

// passTurn lets the next change run, in the same group where there is one.
func (c *groupCommit) passTurn() {
	runtime.Gosched() // who is about to write may catch up
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open != nil && (len(c.queue) == 0 || c.open.ends()) {
		c.mu.Unlock() // they may queue up behind the commit, and leave again
		c.open.commit()
		c.open = nil
		c.mu.Lock()
	}
	if c.taken = len(c.queue) > 0; c.taken {
		close(c.queue[0])
		c.queue = c.queue[1:]
	}
}

// A group is a transaction of several changes.
type group struct {
	tx   bun.Tx
	size int   // how many changes have run in it
	err  error // why nothing of it was written
	done chan struct{}
}

// begin takes the write lock of the database, for which it may have to wait:
// that ends with ctx. The transaction is for others, too, and outlives it.
func begin(ctx context.Context, db *bun.DB) (*group, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, end)
	tx, err := db.BeginTx(life, nil)
	if !release() {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		end() // which rolls back
		return nil, err
	}
	return &group{tx: tx, done: make(chan struct{})}, nil
}

// run makes fn part of the group. Where it fails or panics, what it did is
// undone: with the group, as long as nothing else is in it, and otherwise back
// to a savepoint.
func (g *group) run(ctx context.Context, fn func(bun.IDB) error) error {
	if g.size > 0 {
		if err := g.exec(ctx, "SAVEPOINT change"); err != nil {
			g.err = err
			return failure(ctx, "begin", err)
		}
	}
	err := errUnfinished
	defer func() {
		if err != nil {
			g.undo(ctx, err)
		}
	}()
	if err = fn(g.tx); err != nil {
		return err
	}
	if err = ctx.Err(); err == nil && g.size > 0 {
		err = g.exec(ctx, "RELEASE change")
	}
	if err != nil {
		return failure(ctx, "commit", err)
	}
	g.size++
	return nil
}

var errUnfinished = errors.New("store: a change was not finished")

// undo ends the group where SQLite itself has rolled it back: then there is no
// savepoint to go back to.
func (g *group) undo(ctx context.Context, cause error) {
	if g.size == 0 {
		g.err = cause
		return
	}
	if err := g.exec(ctx, "ROLLBACK TO change"); err != nil {
		g.err = errors.Join(cause, err)
	}
	g.size++
}

func (g *group) exec(ctx context.Context, statement string) error {
	_, err := g.tx.ExecContext(ctx, statement)
	return err
}

// ends reports whether no further change is to run in the group.
func (g *group) ends() bool { return g.size >= groupLimit || g.err != nil }

// commit writes the group, or nothing of it, and tells those who wait.
func (g *group) commit() {
	defer close(g.done)
	if g.err != nil {
		_ = g.tx.Rollback() // fails only where there is nothing left to roll back
		return
	}
	g.err = g.tx.Commit()
}
