// Package apikeys serves the group apiKeys (spec/apiKeys.md).
package apikeys

import (
	"context"
	"slices"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/policy"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/bearer"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/iam"
	"github.com/bettercompute/bettercompute/impl/ids"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// APIKeys implements [api.APIKeys].
type APIKeys struct{ db *store.DB }

// New returns the group.
func New(db *store.DB) *APIKeys { return &APIKeys{db} }

func keyID(caller iam.Principal, in *wire.APIKeysCreateInput) string {
	return ids.Derive("ak", in.TenantID, caller.Tenant, caller.Name, in.IdempotencyKey)
}

// ReplayCreate returns the record that an earlier call with this key made,
// without its bearer, or CONFLICT where that call asked for something else.
func (a *APIKeys) ReplayCreate(ctx context.Context, in *wire.APIKeysCreateInput) (*api.APIKeysCreateOutput, error) {
	stored, err := a.db.APIKey(ctx, keyID(iam.PrincipalFrom(ctx), in))
	if fault.Is(err, problem.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if stored.Identity != in.Identity || stored.Role != string(in.Role) || stored.PoolID != in.PoolID.Value {
		return nil, fault.Conflict("the idempotency key stands for an API key with another identity, role or pool")
	}
	return &api.APIKeysCreateOutput{APIKey: view(stored)}, nil
}

// Create makes a key that is worth no more than the caller's (JT-41).
func (a *APIKeys) Create(ctx context.Context, in *wire.APIKeysCreateInput) (*api.APIKeysCreateOutput, error) {
	caller := iam.PrincipalFrom(ctx)
	if violations := append(RoleFits(in), beyond(caller, in)...); len(violations) > 0 {
		return nil, fault.InvalidInput(violations...)
	}
	id := keyID(caller, in)
	secret, hash := bearer.Mint(bearer.APIKey, id)
	key := store.APIKey{
		ID:           id,
		SecretSHA256: hash[:],
		TenantID:     in.TenantID,
		Identity:     in.Identity,
		Role:         string(in.Role),
		PoolID:       in.PoolID.Value,
		CreatedBy:    caller.String(),
	}
	var created bool
	err := a.db.Write(ctx, func(tx *store.Tx) (err error) {
		key.CreatedAt = tx.Now()
		if in.PoolID.Set {
			if _, err := tx.Pool(ctx, in.TenantID, in.PoolID.Value); err != nil {
				return err
			}
		}
		created, err = tx.CreateAPIKey(ctx, key)
		return err
	})
	if err != nil {
		return nil, err
	}
	if !created { // another call with this key was faster
		return a.ReplayCreate(ctx, in)
	}
	text := secret.Reveal()
	return &api.APIKeysCreateOutput{APIKey: view(key), Key: &text}, nil
}

// RoleFits says what is wrong with a role for a tenant and pool, whoever asks.
func RoleFits(in *wire.APIKeysCreateInput) (violations strictjson.Violations) {
	role, _ := policy.RoleNamed(string(in.Role))
	if role.Tenant != "" && role.Tenant != in.TenantID {
		violations = append(violations, strictjson.Violation{
			Field: "role", Rule: problem.RuleGrant, Message: role.Name + " is for the tenant " + role.Tenant + " alone",
		})
	}
	if in.PoolID.Set && !role.Pool {
		violations = append(violations, strictjson.Violation{
			Field: "poolId", Rule: problem.RuleUnsupported, Message: "goes with the pool roles only; " + role.Name + " is not limited to a pool",
		})
	}
	return violations
}

// beyond says where a key would be worth more than the caller's own.
func beyond(caller iam.Principal, in *wire.APIKeysCreateInput) (violations strictjson.Violations) {
	if !mayGrant(caller, string(in.Role)) {
		violations = append(violations, strictjson.Violation{
			Field: "role", Rule: problem.RuleGrant, Message: "is more than " + caller.Role + " may hand on",
		})
	}
	if caller.PoolID != "" && in.PoolID.Value != caller.PoolID {
		violations = append(violations, strictjson.Violation{
			Field: "poolId", Rule: problem.RuleGrant, Message: "must be the pool that the caller's own key is limited to",
		})
	}
	return violations
}

func mayGrant(caller iam.Principal, role string) bool {
	own, _ := policy.RoleNamed(caller.Role)
	return slices.Contains(own.MayGrant, role)
}

// List returns a page of a tenant's keys.
func (a *APIKeys) List(ctx context.Context, in *wire.APIKeysListInput) (*api.APIKeysListOutput, error) {
	keys, more, err := a.db.APIKeys(ctx, store.APIKeyQuery{
		TenantID: in.TenantID, After: in.Cursor.Value, Limit: int(in.Limit), IncludeInactive: in.IncludeInactive,
	})
	if err != nil {
		return nil, err
	}
	out := &api.APIKeysListOutput{APIKeys: make([]api.APIKey, len(keys))}
	for i, key := range keys {
		out.APIKeys[i] = view(key)
	}
	if more {
		out.Cursor = &keys[len(keys)-1].ID
	}
	return out, nil
}

// Revoke ends a key at once. Whoever may not hand on a role may not take it away.
func (a *APIKeys) Revoke(ctx context.Context, in *wire.APIKeysRevokeInput) (*api.APIKeysRevokeOutput, error) {
	caller := iam.PrincipalFrom(ctx)
	var key store.APIKey
	err := a.db.Write(ctx, func(tx *store.Tx) error {
		revoked, _, err := tx.RevokeAPIKey(ctx, in.TenantID, in.KeyID, caller.String())
		if err == nil && !mayGrant(caller, revoked.Role) {
			return fault.PermissionDenied("revoke a key of the role " + revoked.Role)
		}
		key = revoked
		return err
	})
	if err != nil {
		return nil, err
	}
	return &api.APIKeysRevokeOutput{APIKey: view(key)}, nil
}

// view is a key as callers see it.
func view(k store.APIKey) api.APIKey {
	return api.APIKey{
		ID: k.ID, TenantID: k.TenantID, Identity: k.Identity, Role: wire.Role(k.Role), PoolID: store.Optional[string](k.PoolID),
		CreatedAt: k.CreatedAt, CreatedBy: k.CreatedBy, RevokedAt: k.RevokedAt,
	}
}
