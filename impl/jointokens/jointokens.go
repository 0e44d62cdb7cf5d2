// Package jointokens serves the group joinTokens (spec/joinTokens.md).
package jointokens

import (
	"context"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/bearer"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/iam"
	"github.com/bettercompute/bettercompute/impl/ids"
	"github.com/bettercompute/bettercompute/impl/placeholder"
	"github.com/bettercompute/bettercompute/impl/store"
)

// JoinTokens implements [api.JoinTokens].
type JoinTokens struct {
	db           *store.DB
	placeholders *placeholder.List
}

// New returns the group; placeholders are the identifiers that pin nothing.
func New(db *store.DB, placeholders *placeholder.List) *JoinTokens {
	return &JoinTokens{db, placeholders}
}

// tokenID derives the id from the tenant, the calling identity and the key (JT-22).
func tokenID(caller iam.Principal, in *wire.JoinTokensCreateInput) string {
	return ids.Derive("jt", in.TenantID, caller.Tenant, caller.Name, in.IdempotencyKey)
}

// ReplayCreate returns the record that an earlier call with this key made,
// without its bearer, or CONFLICT where that call asked for something else (JT-23).
func (j *JoinTokens) ReplayCreate(ctx context.Context, in *wire.JoinTokensCreateInput) (*api.JoinTokensCreateOutput, error) {
	stored, err := j.db.JoinToken(ctx, tokenID(iam.PrincipalFrom(ctx), in))
	if fault.Is(err, problem.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if differs := difference(stored, in); differs != "" {
		return nil, fault.Conflict("the idempotency key stands for a join token with another " + differs)
	}
	return &api.JoinTokensCreateOutput{JoinToken: view(stored)}, nil
}

// Create mints a token (JT-20…24).
func (j *JoinTokens) Create(ctx context.Context, in *wire.JoinTokensCreateInput) (*api.JoinTokensCreateOutput, error) {
	caller := iam.PrincipalFrom(ctx)
	id := tokenID(caller, in)
	secret, hash := bearer.Mint(bearer.JoinToken, id)
	var token store.JoinToken
	var created bool
	err := j.db.Write(ctx, func(tx *store.Tx) error {
		pool, err := tx.Pool(ctx, in.TenantID, in.PoolID)
		if err != nil {
			return err
		}
		if pool.Agent != string(wire.AgentBcd) {
			return fault.InvalidState("the machines of this pool run no daemon: its agent is " + pool.Agent)
		}
		if violations := j.placeholdersIn(in, pool); len(violations) > 0 {
			return fault.InvalidInput(violations...)
		}
		token = store.JoinToken{
			ID:           id,
			TenantID:     in.TenantID,
			PoolID:       in.PoolID,
			SecretSHA256: hash[:],
			MaxUses:      in.MaxUses,
			Expect:       expectOf(in),
			AllowReclaim: in.AllowReclaim,
			Hosted:       string(in.Hosted.Value),
			CreatedAt:    tx.Now(),
			CreatedBy:    caller.String(),
			ExpiresAt:    tx.Now().Add(time.Duration(in.TTLSeconds) * time.Second),
		}
		created, err = tx.MintToken(ctx, token)
		return err
	})
	if err != nil {
		return nil, err
	}
	if !created { // another call with this key was faster
		return j.ReplayCreate(ctx, in)
	}
	text := secret.Reveal()
	return &api.JoinTokensCreateOutput{JoinToken: view(token), Token: &text}, nil
}

// List returns a page of a pool's tokens (JT-30).
func (j *JoinTokens) List(ctx context.Context, in *wire.JoinTokensListInput) (*api.JoinTokensListOutput, error) {
	tokens, more, err := j.db.JoinTokens(ctx, store.JoinTokenQuery{
		TenantID:        in.TenantID,
		PoolID:          in.PoolID,
		After:           in.Cursor.Value,
		Limit:           int(in.Limit),
		IncludeInactive: in.IncludeInactive,
	})
	if err != nil {
		return nil, err
	}
	out := &api.JoinTokensListOutput{JoinTokens: make([]api.JoinToken, len(tokens))}
	for i, token := range tokens {
		out.JoinTokens[i] = view(token)
	}
	if more {
		out.Cursor = &tokens[len(tokens)-1].ID
	}
	return out, nil
}

// Revoke ends a token at once (JT-31).
func (j *JoinTokens) Revoke(ctx context.Context, in *wire.JoinTokensRevokeInput) (*api.JoinTokensRevokeOutput, error) {
	var token store.JoinToken
	err := j.db.Write(ctx, func(tx *store.Tx) (err error) {
		token, _, err = tx.RevokeToken(ctx, in.TenantID, in.PoolID, in.TokenID, iam.PrincipalFrom(ctx).String())
		return err
	})
	if err != nil {
		return nil, err
	}
	return &api.JoinTokensRevokeOutput{JoinToken: view(token)}, nil
}

// sweepBatch is how many ended tokens are marked in one transaction.
const sweepBatch = 1000

// Sweep marks the tokens that have ended, so that the live ones stand alone.
// Whether a token is live is never asked of that mark.
func (j *JoinTokens) Sweep(ctx context.Context) error {
	for {
		n, err := j.db.EndJoinTokens(ctx, sweepBatch)
		if err != nil || n < sweepBatch {
			return err
		}
	}
}
