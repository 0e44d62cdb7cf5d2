package store_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

func revoke(t testing.TB, db *store.DB, id string) (token store.JoinToken, first bool) {
	t.Helper()
	write(t, db, func(tx *store.Tx) (err error) {
		token, first, err = tx.RevokeToken(t.Context(), "acme", "lab", id, "acme/ops")
		return err
	})
	return token, first
}

func TestRevokeToken_JT31_OnceAndUnchanged(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := storetest.ClockOf(db)
		clock.Set(noon)
		withLab(t, db)
		mint(t, db, tokenID(1), nil)
		clock.Advance(time.Minute)
		token, first := revoke(t, db, tokenID(1))
		if !first || token.RevokedAt == nil || !token.RevokedAt.Equal(noon.Add(time.Minute)) || token.EndedAt == nil || token.Live(clock.Now()) {
			t.Errorf("first: %v, token %+v", first, token)
		}
		clock.Advance(time.Minute)
		again, first := revoke(t, db, tokenID(1))
		if first || !again.RevokedAt.Equal(noon.Add(time.Minute)) {
			t.Errorf("first: %v, token %+v", first, again)
		}
		if n := count(t, db, "events WHERE type = 'security.join-token.revoked'"); n != 1 {
			t.Errorf("published %d times", n)
		}
	})
}

func TestRevokeToken_JT31_ElsewhereIsNotFound(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		mint(t, db, tokenID(1), nil)
		for _, at := range [][3]string{{"acme", "lab", tokenID(2)}, {"acme", "other", tokenID(1)}, {"umbrella", "lab", tokenID(1)}} {
			err := db.Write(t.Context(), func(tx *store.Tx) error {
				_, _, err := tx.RevokeToken(t.Context(), at[0], at[1], at[2], "acme/ops")
				return err
			})
			wantCode(t, err, problem.NotFound)
		}
		if token, err := db.JoinToken(t.Context(), tokenID(1)); err != nil || token.RevokedAt != nil {
			t.Errorf("token %+v, error %v", token, err)
		}
	})
}

func TestRevokeToken_JT31_ParallelPublishesOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		handles := []*store.DB{db, storetest.Replica(t, db)}
		for round := range 20 {
			mint(t, db, tokenID(round), nil)
			var first atomic.Int64
			at := make([]time.Time, 16)
			together(16, func(i int) {
				err := handles[i%2].Write(t.Context(), func(tx *store.Tx) error {
					token, one, err := tx.RevokeToken(t.Context(), "acme", "lab", tokenID(round), "acme/ops")
					if one {
						first.Add(1)
					}
					if err == nil {
						at[i] = *token.RevokedAt
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
			if first.Load() != 1 || slices.ContainsFunc(at, func(other time.Time) bool { return !other.Equal(at[0]) }) {
				t.Fatalf("round %d: %d were first; times %v", round, first.Load(), at)
			}
		}
		if n := count(t, db, "events WHERE type = 'security.join-token.revoked'"); n != 20 {
			t.Errorf("published %d times, want 20", n)
		}
	})
}
