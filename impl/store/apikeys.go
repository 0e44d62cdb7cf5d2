package store

import (
	"context"
	"time"

	"github.com/bettercompute/bettercompute/gen/events"
)

// APIKey is a row of api_keys; see ApiKey in spec/types.md. Of the secret it
// has the SHA-256 alone.
type APIKey struct {
	ID           string `bun:",pk"`
	SecretSHA256 []byte `bun:"secret_sha256"`
	TenantID     string
	Identity     string
	Role         string
	PoolID       string `bun:",nullzero"` // empty: not limited to a pool
	CreatedAt    time.Time
	CreatedBy    string
	RevokedAt    *time.Time
}

func (k *APIKey) times() []*time.Time { return []*time.Time{&k.CreatedAt, k.RevokedAt} }

// subject is the tenant, also of a key for one pool: whoever may read a pool's
// events learns nothing of the keys.
func (k *APIKey) subject() subject {
	return subject{source: "/tenant/" + k.TenantID, id: k.ID, tenantID: k.TenantID}
}

// APIKey returns one key, of whatever tenant.
func (r Reader) APIKey(ctx context.Context, id string) (APIKey, error) {
	return one[APIKey](ctx, r, "API key", r.sql.NewSelect().Where("id = ?", id))
}

// APIKeyQuery selects a page of a tenant's keys.
type APIKeyQuery struct {
	TenantID        string
	After           string // the last id of the page before
	Limit           int
	IncludeInactive bool // also revoked ones
}

// APIKeys returns up to Limit keys in the order of their ids, and whether there are more.
func (r Reader) APIKeys(ctx context.Context, q APIKeyQuery) ([]APIKey, bool, error) {
	query := r.sql.NewSelect().Where("tenant_id = ? AND id > ?", q.TenantID, q.After).Order("id")
	if !q.IncludeInactive {
		query.Where("revoked_at IS NULL")
	}
	return page[APIKey](ctx, r, "API keys", q.Limit, query)
}

// CreateAPIKey writes a fresh key, of which CreatedAt (tx.Now()) is the
// caller's, and publishes security.api-key.created. Where the id is taken, it
// writes and publishes nothing and created is false.
func (tx *Tx) CreateAPIKey(ctx context.Context, key APIKey) (created bool, err error) {
	key.RevokedAt = nil
	created, err = tx.insert(ctx, "API key", &key)
	if err != nil || !created {
		return false, err
	}
	return true, tx.publish(ctx, key.subject(), events.SecurityAPIKeyCreated{
		KeyID:     key.ID,
		Identity:  key.Identity,
		Role:      key.Role,
		PoolID:    Optional[string](key.PoolID),
		CreatedBy: key.CreatedBy,
	})
}

// RevokeAPIKey ends a key now and publishes security.api-key.revoked. One that
// was revoked before comes back unchanged, with first false, and nothing is
// published. A key of another tenant is NOT_FOUND.
func (tx *Tx) RevokeAPIKey(ctx context.Context, tenantID, id, by string) (key APIKey, first bool, err error) {
	key, first, err = update[APIKey](ctx, tx, "API key", `UPDATE api_keys SET revoked_at = ?2
		WHERE id = ?1 AND tenant_id = ?0 AND revoked_at IS NULL`, tenantID, id, tx.Now())
	if err != nil {
		return APIKey{}, false, err
	}
	if !first {
		key, err = one[APIKey](ctx, tx.Reader, "API key", tx.sql.NewSelect().Where("id = ? AND tenant_id = ?", id, tenantID))
		return key, false, err
	}
	return key, true, tx.publish(ctx, key.subject(), events.SecurityAPIKeyRevoked{KeyID: id, RevokedBy: by})
}

// AnyAPIKey reports whether there is an API key at all.
func (r Reader) AnyAPIKey(ctx context.Context) (any bool, err error) {
	err = r.sql.NewRaw("SELECT EXISTS (SELECT 1 FROM api_keys)").Scan(ctx, &any)
	return any, r.failed(ctx, "look for API keys", err)
}
