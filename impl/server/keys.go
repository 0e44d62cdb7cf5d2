package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/bettercompute/bettercompute/gen/policy"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/apikeys"
	"github.com/bettercompute/bettercompute/impl/bearer"
	"github.com/bettercompute/bettercompute/impl/ids"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// A KeyRequest is a key that an operator makes at the machine itself.
type KeyRequest struct {
	Tenant   string `json:"tenantId"`
	Identity string `json:"identity"`
	Role     string `json:"role"`
	Pool     string `json:"poolId,omitempty"`
	Key      string `json:"idempotencyKey"`
}

// CreateKey creates an API key without asking anybody: whoever has the database
// has everything. The rules of apiKeys.create hold all the same; what breaks
// them is refused with [strictjson.Violations].
func CreateKey(ctx context.Context, config Config, request KeyRequest) (key bearer.Bearer, err error) {
	request.Key = rand.Text()
	body, err := json.Marshal(request)
	if err != nil {
		return key, err
	}
	var in wire.APIKeysCreateInput
	if err := in.DecodeStrict(string(body), strictjson.All); err != nil {
		return key, err
	}
	if violations := apikeys.RoleFits(&in); len(violations) > 0 {
		return key, violations
	}
	db, err := OpenMigrated(ctx, config)
	if err != nil {
		return key, err
	}
	err = db.Write(ctx, func(tx *store.Tx) error {
		if in.PoolID.Set {
			if _, err := tx.Pool(ctx, in.TenantID, in.PoolID.Value); err != nil {
				return fmt.Errorf("--pool %s: %w", in.PoolID.Value, err)
			}
		}
		id := ids.New("ak", tx.Now())
		secret, hash := bearer.Mint(bearer.APIKey, id)
		key = secret
		_, err := tx.CreateAPIKey(ctx, store.APIKey{
			ID: id, SecretSHA256: hash[:], TenantID: in.TenantID, Identity: in.Identity, Role: string(in.Role),
			PoolID: in.PoolID.Value, CreatedAt: tx.Now(), CreatedBy: policy.PlatformTenant + "/bcserver",
		})
		return err
	})
	return key, errors.Join(err, db.Close())
}
