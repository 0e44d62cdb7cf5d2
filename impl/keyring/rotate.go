package keyring

import (
	"context"

	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/store"
)

// RotateCA makes new issuers under the same root and returns the CA that has
// them. The former ones stay, to verify what they signed.
func RotateCA(ctx context.Context, db *store.DB, config Config) (authority *ca.Authority, err error) {
	err = change(ctx, db, config, func(tx *store.Tx, o opened) error {
		made, err := ca.Rotate(o.materials, tx.Now())
		if err != nil {
			return err
		}
		if authority, err = ca.New(append(o.materials, made...)); err != nil {
			return err
		}
		return put(ctx, tx, o.box, made)
	})
	return authority, err
}

// RotateSeal seals every secret with a fresh data key and wraps the data keys
// under the first of the operator's keys. The data key before it is kept until
// the next rotation: a server that has read the former data keys opens with the
// new ones what was sealed under either.
func RotateSeal(ctx context.Context, db *store.DB, config Config) error {
	return change(ctx, db, config, func(tx *store.Tx, o opened) error {
		_, newest, err := o.box.Drop(o.keys)
		if err != nil {
			return err
		}
		wrapped, next, err := newest.Rotate(o.keys)
		if err != nil {
			return err
		}
		if err := tx.PutSealKeyset(ctx, wrapped); err != nil {
			return err
		}
		return put(ctx, tx, next, o.materials)
	})
}

// change runs fn on what is stored, in one transaction, one at a time.
func change(ctx context.Context, db *store.DB, config Config, fn func(*store.Tx, opened) error) error {
	return db.Write(ctx, func(tx *store.Tx) error {
		if err := tx.LockKeyring(ctx); err != nil {
			return err
		}
		s, err := read(ctx, tx.Reader)
		if err != nil {
			return err
		}
		o, err := s.open(config.SealKeys)
		if err != nil {
			return err
		}
		return fn(tx, o)
	})
}
