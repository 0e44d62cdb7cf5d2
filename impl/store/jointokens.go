package store

import (
	"context"
	"time"

	"github.com/bettercompute/bettercompute/gen/events"
)

// JoinToken is a row of join_tokens; see JoinToken in spec/types.md. Of the
// secret it has the SHA-256 alone (JT-03).
type JoinToken struct {
	ID           string `bun:",pk"`
	TenantID     string
	PoolID       string
	SecretSHA256 []byte `bun:"secret_sha256"`
	MaxUses      int64
	Uses         int64  // never more than MaxUses; the table holds that too
	Expect       Expect `bun:"embed:expect_"`
	AllowReclaim bool
	Hosted       string `bun:",nullzero"` // empty: not hosted
	CreatedAt    time.Time
	CreatedBy    string
	ExpiresAt    time.Time
	RevokedAt    *time.Time
	EndedAt      *time.Time // set some time after the token ended; Live does not ask it
}

// Expect pins a token to a machine; what is empty is not asked for.
type Expect struct {
	ProductUUID string `bun:"product_uuid,nullzero"`
	Serial      string `bun:"serial,nullzero"`
	MAC         string `bun:"mac,nullzero"`
	GPUUUID     string `bun:"gpu_uuid,nullzero"`
}

// Pinned reports whether anything is expected.
func (e Expect) Pinned() bool { return e != Expect{} }

// Live reports whether a machine could join with the token at a time (JT-30).
func (t *JoinToken) Live(now time.Time) bool {
	return t.RevokedAt == nil && t.Uses < t.MaxUses && now.Before(t.ExpiresAt)
}

func (t *JoinToken) times() []*time.Time {
	return []*time.Time{&t.CreatedAt, &t.ExpiresAt, t.RevokedAt, t.EndedAt}
}

func (t *JoinToken) subject() subject { return poolSubject(t.TenantID, t.PoolID, t.ID) }

// JoinToken returns one token, of whatever tenant.
func (r Reader) JoinToken(ctx context.Context, id string) (JoinToken, error) {
	return askOne[JoinToken](ctx, r, "join token", "SELECT * FROM join_tokens WHERE id = ?", id)
}

// JoinTokenQuery selects a page of a pool's tokens.
type JoinTokenQuery struct {
	TenantID, PoolID string
	After            string // the last id of the page before
	Limit            int
	IncludeInactive  bool      // also those that are not live
	Now              time.Time // when they must be live; zero: now
}

// JoinTokens returns up to Limit tokens in the order of their ids, and whether
// there are more (JT-30).
func (r Reader) JoinTokens(ctx context.Context, q JoinTokenQuery) ([]JoinToken, bool, error) {
	query := r.sql.NewSelect().
		Where("tenant_id = ? AND pool_id = ? AND id > ?", q.TenantID, q.PoolID, q.After).Order("id")
	if !q.IncludeInactive {
		if q.Now.IsZero() {
			q.Now = r.now()
		}
		query.Where("ended_at IS NULL AND revoked_at IS NULL AND uses < max_uses AND expires_at > ?", q.Now)
	}
	return page[JoinToken](ctx, r, "join tokens", q.Limit, query)
}

// MintToken writes a fresh token, of which CreatedAt (tx.Now()) and ExpiresAt
// are the caller's, and publishes security.join-token.created (JT-24). Where
// the id is taken, it writes and publishes nothing and created is false: the
// row is there to be read, also if another transaction wrote it meanwhile
// (JT-23). A pool that does not exist is NOT_FOUND.
func (tx *Tx) MintToken(ctx context.Context, token JoinToken) (created bool, err error) {
	token.Uses, token.RevokedAt, token.EndedAt = 0, nil, nil
	created, err = tx.insertFor(ctx, "join token", "pool", &token)
	if err != nil || !created {
		return false, err
	}
	return true, tx.publish(ctx, token.subject(), events.SecurityJoinTokenCreated{
		TokenID:      token.ID,
		CreatedBy:    token.CreatedBy,
		MaxUses:      token.MaxUses,
		ExpiresAt:    token.ExpiresAt,
		Pinned:       token.Expect.Pinned(),
		AllowReclaim: token.AllowReclaim,
		Hosted:       Optional[string](token.Hosted),
	})
}

// RevokeToken ends a token now, cancels its join requests (JR-5) and publishes
// security.join-token.revoked. One that was revoked before comes back unchanged,
// with first false, and nothing is published. A token of another tenant or pool
// is NOT_FOUND (JT-31).
func (tx *Tx) RevokeToken(ctx context.Context, tenantID, poolID, id, by string) (token JoinToken, first bool, err error) {
	token, first, err = update[JoinToken](ctx, tx, "join token", `UPDATE join_tokens
		SET revoked_at = ?3, ended_at = coalesce(ended_at, ?3)
		WHERE id = ?2 AND tenant_id = ?0 AND pool_id = ?1 AND revoked_at IS NULL`, tenantID, poolID, id, tx.Now())
	if err != nil {
		return JoinToken{}, false, err
	}
	if !first {
		token, err = one[JoinToken](ctx, tx.Reader, "join token", tx.sql.NewSelect().
			Where("id = ? AND tenant_id = ? AND pool_id = ?", id, tenantID, poolID))
		return token, false, err
	}
	if err := tx.cancelRequests(ctx, "token_revoked", "token_id = ?1", id); err != nil {
		return JoinToken{}, false, err
	}
	return token, true, tx.publish(ctx, token.subject(), events.SecurityJoinTokenRevoked{TokenID: id, RevokedBy: by})
}

// EndJoinTokens marks up to limit tokens that have expired, are used up or were
// revoked, so that they no longer stand between the live ones, and returns how
// many there were. Replicas may run it at the same time, any number of times.
func (db *DB) EndJoinTokens(ctx context.Context, limit int) (n int, err error) {
	err = db.Write(ctx, func(tx *Tx) error {
		expired, err := tx.endJoinTokens(ctx, "max_uses > 0 AND expires_at <= ? ORDER BY expires_at LIMIT ?", tx.Now(), limit)
		if err != nil {
			return err
		}
		spent, err := tx.endJoinTokens(ctx, "(max_uses - uses = 0 OR revoked_at IS NOT NULL) LIMIT ?", limit-expired)
		n = expired + spent
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// endJoinTokens marks the tokens that which selects. The batch is materialized:
// Postgres may run a subquery that locks rows more than once, and then it
// selects more of them each time.
func (tx *Tx) endJoinTokens(ctx context.Context, which string, args ...any) (int, error) {
	return tx.exec(ctx, "end join tokens", `WITH batch AS MATERIALIZED (
			SELECT id FROM join_tokens WHERE ended_at IS NULL AND `+which+tx.dialect.skipLocked+`)
		UPDATE join_tokens SET ended_at = ? WHERE id IN (SELECT id FROM batch)`, append(args, tx.Now())...)
}
