package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// A lineup is all that take part in a comparison of joins.
type lineup struct {
	ours         []*ours
	peerPostgres *contender // nil without Postgres
	peerBadger   *contender
	fsync        string // of Postgres
	ends         []func()
}

// ours is one bcserver, which machines join with one token or with many.
type ours struct {
	name      string
	url       string
	database  *database // nil on SQLite
	target    *target
	hot, many *contender
}

func (f *lineup) close() {
	for i := len(f.ends) - 1; i >= 0; i-- {
		f.ends[i]()
	}
}

func (f *lineup) everyone() (all []*contender) {
	for _, o := range f.ours {
		all = append(all, o.hot, o.many)
	}
	if f.peerPostgres != nil {
		all = append(all, f.peerPostgres)
	}
	return append(all, f.peerBadger)
}

// newLineup starts everyone. It is to be closed even after an error.
func (l *lab) newLineup(ctx context.Context) (*lineup, error) {
	f := &lineup{fsync: "left out"}
	stepCA, err := l.installStepCA(ctx)
	if err != nil {
		return f, err
	}
	dir, err := l.folder("joins")
	if err != nil {
		return f, err
	}
	if err := f.addOurs(ctx, l, "SQLite", "sqlite:"+filepath.Join(dir, "bench.db"), nil); err != nil {
		return f, err
	}
	if f.peerBadger, err = f.addStepCA(ctx, l, stepCA, "step-ca on badgerv2", stepCADatabase{Type: "badgerv2"}, nil); err != nil {
		return f, err
	}
	if l.postgres == "" {
		return f, nil
	}
	d, err := f.newDatabase(ctx, l)
	if err != nil {
		return f, err
	}
	if f.fsync, err = d.setting(ctx, "fsync"); err != nil {
		return f, err
	}
	if err := f.addOurs(ctx, l, "Postgres", d.url, d); err != nil {
		return f, err
	}
	if d, err = f.newDatabase(ctx, l); err != nil {
		return f, err
	}
	f.peerPostgres, err = f.addStepCA(ctx, l, stepCA, "step-ca on Postgres", stepCADatabase{"postgresql", d.url}, func(ctx context.Context) error {
		_, err := d.db.ExecContext(ctx, "CHECKPOINT")
		return err
	})
	return f, err
}

func (f *lineup) newDatabase(ctx context.Context, l *lab) (*database, error) {
	d, err := l.newDatabase(ctx)
	if err == nil {
		f.ends = append(f.ends, d.drop)
	}
	return d, err
}

func (f *lineup) addStepCA(ctx context.Context, l *lab, binary, name string, db stepCADatabase, settle func(context.Context) error) (*contender, error) {
	ca, err := l.serveStepCA(ctx, binary, db)
	if err != nil {
		return nil, err
	}
	f.ends = append(f.ends, func() { ca.stop() })
	prepared := func(context.Context, int) (prepare, error) { return ca.prepare, nil }
	return &contender{name: name, target: ca.target, prepared: prepared, settle: settle}, nil
}

func (f *lineup) addOurs(ctx context.Context, l *lab, name, url string, d *database) error {
	t, err := l.serveJoins(ctx, url)
	if err != nil {
		return err
	}
	f.ends = append(f.ends, func() { t.stop() })
	o := &ours{name: name, url: url, database: d, target: t}
	var settle func(context.Context) error
	if d != nil {
		settle = d.settle
	}
	o.hot = &contender{name: name + ", one hot token", target: t, settle: settle, prepared: t.withHotToken}
	o.many = &contender{name: name + ", a token each", target: t, settle: settle, prepared: t.withTokens}
	f.ours = append(f.ours, o)
	return nil
}

// withHotToken prepares joins that all use one token.
func (t *target) withHotToken(ctx context.Context, n int) (prepare, error) {
	if n > hotUses {
		return nil, fmt.Errorf("one token admits %d machines at most: %w", hotUses, errUnexpected)
	}
	tokens, err := t.mint(ctx, 1, hotUses)
	return t.joins(tokens), err
}

// withTokens prepares joins that each use a token of their own.
func (t *target) withTokens(ctx context.Context, n int) (prepare, error) {
	tokens, err := t.mint(ctx, n, 1)
	return t.joins(tokens), err
}

// profiled writes a CPU profile of joins with one hot token beside the results.
// It is taken after the rounds, from a server of its own on the same database.
func (o *ours) profiled(ctx context.Context, l *lab) (line, error) {
	binary, err := l.profiled(ctx)
	if err != nil {
		return line{}, err
	}
	file, err := filepath.Abs("join-" + o.name + ".pprof")
	if err != nil {
		return line{}, err
	}
	t, err := l.startTLS(ctx, binary, o.url, o.target.key, profileVariable+"="+file)
	if err != nil {
		return line{}, err
	}
	var done load
	c := &contender{name: o.name + ", profiled", target: t, prepared: t.withHotToken, settle: o.hot.settle}
	var summary string
	_, err = c.do(ctx, joinRequests, func(ctx context.Context, requests [][]byte) (load, error) {
		summary, err = profile(ctx, t, binary, file, func() (err error) {
			done, err = t.load(ctx, requests)
			return err
		})
		return done, err
	})
	if err := errors.Join(err, t.stop()); err != nil {
		return line{}, err
	}
	return line{Name: o.name + ", CPU profile", Result: infoResult, Note: fmt.Sprintf("%s at %.0f/s: %s", filepath.Base(file), done.perSecond, summary)}, nil
}
