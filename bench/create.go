package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	createConnections = 16
	createRounds      = 3
	createSeconds     = 10
	warmUp            = 3 * time.Second
)

// createGoal: joinTokens.create over HTTP with 16 connections, against what the
// database does with the same statements and nothing else. Both sides run on the
// same database in turn, and bcserver gives positions to the events of both.
func createGoal(ctx context.Context, l *lab) (lines []line, err error) {
	if l.postgres == "" {
		return withoutPostgres(), nil
	}
	d, err := l.newDatabase(ctx)
	if err != nil {
		return nil, err
	}
	defer d.drop()
	p, err := l.serve(ctx, d.url)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	if err := p.makePool(); err != nil {
		return nil, err
	}
	statements, err := statementsOfCreate(ctx, l, d.url, p.key)
	if err != nil {
		return nil, err
	}
	peer, err := newPgbench(l, d.url, statements)
	if err != nil {
		return nil, err
	}
	fsync, err := d.setting(ctx, "fsync")
	if err != nil {
		return nil, err
	}
	if _, err := createLoad(ctx, p, warmUp); err != nil {
		return nil, err
	}
	var ours, theirs []float64
	var latency load
	for range createRounds {
		if err := d.settle(ctx); err != nil {
			return nil, err
		}
		if latency, err = createLoad(ctx, p, createSeconds*time.Second); err != nil {
			return nil, err
		}
		ours = append(ours, latency.perSecond)
		if err := d.settle(ctx); err != nil {
			return nil, err
		}
		tps, err := peer.run(ctx, d, createConnections, createSeconds)
		if err != nil {
			return nil, err
		}
		theirs = append(theirs, tps)
	}
	l1 := compared("16 connections, against pgbench", perSecond, ours, theirs, atLeast("0.5", 0.5))
	return []line{l1.withNote("aim 0.8; %d statements a call, fsync %s; rounds %.0f against %.0f; half of the calls within %s, 99 of 100 within %s; processor time a call: server %s, caller %s",
		len(statements), fsync, ours, theirs, latency.half.Round(10*time.Microsecond), latency.most.Round(10*time.Microsecond),
		latency.server.Round(time.Microsecond), latency.caller.Round(time.Microsecond))}, nil
}

// A load is how a server did under many callers.
type load struct {
	perSecond      float64
	half, most     time.Duration // half of the calls, and 99 of 100, were answered within
	server, caller time.Duration // processor time that a call took there
}

var createKeys atomic.Int64

// createLoad mints tokens on all connections for a time.
func createLoad(ctx context.Context, p *program, long time.Duration) (load, error) {
	var all []time.Duration
	var mu sync.Mutex
	began := time.Now()
	server, err := p.worked()
	if err != nil {
		return load{}, err
	}
	caller := ownWork()
	err = together(createConnections, func() error {
		c, err := p.dial()
		if err != nil {
			return err
		}
		defer c.close()
		var took []time.Duration
		for at := time.Now(); at.Sub(began) < long && ctx.Err() == nil; {
			if err := c.expect(200, createPath, tokenBody(fmt.Sprintf("bench-%d", createKeys.Add(1)))); err != nil {
				return err
			}
			now := time.Now()
			took = append(took, now.Sub(at))
			at = now
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, took...)
		return ctx.Err()
	})
	spent := time.Since(began)
	if err != nil {
		return load{}, err
	}
	caller = ownWork() - caller
	before := server
	if server, err = p.worked(); err != nil {
		return load{}, err
	}
	calls := time.Duration(len(all))
	slices.Sort(all)
	return load{float64(calls) / spent.Seconds(), all[calls/2], all[calls*99/100], (server - before) / calls, caller / calls}, nil
}

// together runs n of the same and returns the first error.
func together(n int, work func() error) error {
	errs := make(chan error, n)
	for range n {
		go func() { errs <- work() }()
	}
	var first error
	for range n {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}
