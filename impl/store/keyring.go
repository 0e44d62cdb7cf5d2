package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"
)

// SealKeyset is the row of seal_keysets: the data keys under which secrets are
// sealed, themselves encrypted under the operator's seal key.
type SealKeyset struct {
	ID        int64 `bun:",pk"` // 1
	Wrapped   []byte
	UpdatedAt time.Time
}

func (k *SealKeyset) times() []*time.Time { return []*time.Time{&k.UpdatedAt} }

// CAKey is a row of ca_keys: a certified key of the node CA.
type CAKey struct {
	bun.BaseModel `bun:"table:ca_keys,alias:ca_key"`
	ID            string `bun:",pk"`
	Name          string // root, node-platform, …
	Certificate   []byte // DER
	SealedKey     []byte // never in the clear
	CreatedAt     time.Time
}

func (k *CAKey) times() []*time.Time { return []*time.Time{&k.CreatedAt} }

// SealKeyset returns the wrapped data keys, or NOT_FOUND before the first start.
func (r Reader) SealKeyset(ctx context.Context) (SealKeyset, error) {
	return one[SealKeyset](ctx, r, "seal keyset", r.sql.NewSelect().Where("id = 1"))
}

// PutSealKeyset keeps the wrapped data keys in place of those before.
func (tx *Tx) PutSealKeyset(ctx context.Context, wrapped []byte) error {
	_, err := tx.sql.NewInsert().Model(&SealKeyset{ID: 1, Wrapped: wrapped, UpdatedAt: tx.Now()}).
		On("CONFLICT (id) DO UPDATE").Set("wrapped = EXCLUDED.wrapped, updated_at = EXCLUDED.updated_at").Returning("NULL").Exec(ctx)
	return tx.failed(ctx, "keep seal keyset", err)
}

// CAKeys returns all keys of the CA in the order in which they were made.
func (r Reader) CAKeys(ctx context.Context) ([]CAKey, error) {
	const all = 1000 // a CA has a handful
	keys, _, err := page[CAKey](ctx, r, "CA keys", all, r.sql.NewSelect().Order("created_at", "id"))
	return keys, err
}

// PutCAKey keeps a key of the CA; of one that is there the sealed key is replaced.
func (tx *Tx) PutCAKey(ctx context.Context, key CAKey) error {
	inUTC(&key)
	_, err := tx.sql.NewInsert().Model(&key).
		On("CONFLICT (id) DO UPDATE").Set("sealed_key = EXCLUDED.sealed_key").Returning("NULL").Exec(ctx)
	return tx.failed(ctx, "keep CA key", err)
}

// LockKeyring makes every other change of keys wait until the transaction ends,
// as a migration and the first start do.
func (tx *Tx) LockKeyring(ctx context.Context) error { return tx.lockSchema(ctx) }
