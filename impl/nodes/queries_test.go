package nodes_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/bearer"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// A tally counts the statements that the store logs.
type tally struct {
	slog.Handler
	statements atomic.Int64
}

func (t *tally) Enabled(context.Context, slog.Level) bool { return true }

func (t *tally) Handle(context.Context, slog.Record) error {
	t.statements.Add(1)
	return nil
}

// misspelt changes one character of a token.
func misspelt(bearer string) string {
	wrong := "x"
	if bearer[20] == 'x' {
		wrong = "y"
	}
	return bearer[:20] + wrong + bearer[21:]
}

// TestNJ_1_SameWorkForEveryToken holds that a token that is unknown, one with
// another secret and one that was revoked take the same answer and the same one
// query, and that a typo takes none.
func TestNJ_1_SameWorkForEveryToken(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		count := &tally{Handler: slog.DiscardHandler}
		p := start(storetest.Open(t, store.Config{URL: storetest.URL(t, kind), Log: slog.New(count)}), newCA(t, noon))
		pool := p.pool(t, nil)
		tok, revoked := p.mint(t, pool, nil), p.mint(t, pool, nil)
		p.revoke(t, revoked)
		another := func(id string) string {
			secret, _ := bearer.Mint(bearer.JoinToken, id)
			return "Bearer " + secret.Reveal()
		}
		texts := map[string]bool{}
		for name, c := range map[string]struct {
			bearer string
			want   int64
		}{
			"unknown": {another(uniqueID()), 1}, "wrong secret": {another(tok.ID), 1}, "revoked": {revoked.bearer, 1},
			"wrong secret of a revoked one": {another(revoked.ID), 1}, "a typo": {misspelt(tok.bearer), 0}, "none": {"", 0},
		} {
			before := count.statements.Load()
			_, err := p.Arrive(t.Context(), c.bearer, address)
			wantCode(t, err, problem.Unauthenticated)
			texts[err.Error()] = true
			if took := count.statements.Load() - before; took != c.want {
				t.Errorf("%s takes %d queries, want %d", name, took, c.want)
			}
		}
		if len(texts) != 1 {
			t.Errorf("there are several answers: %v", texts)
		}
	})
}
