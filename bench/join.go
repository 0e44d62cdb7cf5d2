package main

import (
	"context"
	"fmt"
)

const (
	joinRequests = 4000 // of a round
	joinWarmUp   = 1000
	joinRounds   = 3

	steadyRate     = 50 // joins a second
	steadyRequests = 30 * steadyRate

	hotUses = 10_000 // the most that one token can have
)

// A contender certifies machines, for a comparison.
type contender struct {
	name     string
	target   *target
	prepared func(ctx context.Context, n int) (prepare, error) // makes what n requests need, such as tokens
	settle   func(ctx context.Context) error                   // brings it to rest before a round; nil: needs none

	rounds []load
	steady load
}

// do lets n machines join. All that they send is made before the clock starts.
func (c *contender) do(ctx context.Context, n int, send func(context.Context, [][]byte) (load, error)) (load, error) {
	fail := func(err error) (load, error) { return load{}, fmt.Errorf("%s: %w", c.name, err) }
	next, err := c.prepared(ctx, n)
	if err != nil {
		return fail(err)
	}
	requests, err := made(n, next)
	if err != nil {
		return fail(err)
	}
	if c.settle != nil {
		if err := c.settle(ctx); err != nil {
			return fail(err)
		}
	}
	l, err := send(ctx, requests)
	if err != nil {
		return fail(err)
	}
	return l, nil
}

func (c *contender) perSecond() (all []float64) {
	for _, l := range c.rounds {
		all = append(all, l.perSecond)
	}
	return all
}

// joinGoal: machines that join over TLS, against a certificate authority that
// signs for one-time tokens and writes no nodes, ledger or events. Everyone takes
// turns, on fresh connections of 16 clients.
func joinGoal(ctx context.Context, l *lab) ([]line, error) {
	all, err := l.newLineup(ctx)
	defer all.close()
	if err != nil {
		return nil, err
	}
	everyone := all.everyone()
	for _, c := range everyone {
		if _, err := c.do(ctx, joinWarmUp, c.target.load); err != nil {
			return nil, err
		}
	}
	for range joinRounds {
		for _, c := range everyone {
			done, err := c.do(ctx, joinRequests, c.target.load)
			if err != nil {
				return nil, err
			}
			c.rounds = append(c.rounds, done)
			l.say("%s: %s", c.name, done.text())
		}
	}
	for _, c := range everyone {
		c.steady, err = c.do(ctx, steadyRequests, func(ctx context.Context, requests [][]byte) (load, error) {
			return c.target.steady(ctx, requests, steadyRate)
		})
		if err != nil {
			return nil, err
		}
	}
	lines := all.lines()
	for _, o := range all.ours {
		summary, err := o.profiled(ctx, l)
		if err != nil {
			return nil, err
		}
		lines = append(lines, summary)
	}
	if l.postgres == "" {
		lines = append(lines, withoutPostgres()...)
	}
	return lines, nil
}

// lines are ours against step-ca, both on the same database and on the one that
// it comes with.
func (f *lineup) lines() (lines []line) {
	against := func(ours, peer *contender, where string, b bound) {
		lines = append(lines, compared(ours.name+", against step-ca on "+where, perSecond, ours.perSecond(), peer.perSecond(), b).
			withNote("fsync %s; ours %s; step-ca %s", f.fsync, ours.rounds[joinRounds-1].text(), peer.rounds[joinRounds-1].text()))
	}
	steady := func(ours, peer *contender, where string) {
		lines = append(lines, bounded(fmt.Sprintf("%s, p99 at %d/s, against step-ca on %s", ours.name, steadyRate, where),
			nanoseconds, float64(ours.steady.most), float64(peer.steady.most), information).
			withNote("half within %s, step-ca %s", significant(ours.steady.half), significant(peer.steady.half)))
	}
	for _, o := range f.ours {
		for _, c := range []*contender{o.hot, o.many} {
			if f.peerPostgres != nil && o.database != nil {
				against(c, f.peerPostgres, "the same Postgres", atLeast("1", 1))
				against(c, f.peerBadger, "badgerv2", atLeast("0.5", 0.5))
				steady(c, f.peerPostgres, "the same Postgres")
			} else {
				against(c, f.peerBadger, "badgerv2", atLeast("0.8", 0.8))
				steady(c, f.peerBadger, "badgerv2")
			}
		}
	}
	return lines
}

// text says how a server did, in one part of a note.
func (l load) text() string {
	return fmt.Sprintf("%.0f/s, half within %s, 99 of 100 within %s, processor time a join: server %s, caller %s",
		l.perSecond, significant(l.half), significant(l.most), significant(l.server), significant(l.caller))
}
