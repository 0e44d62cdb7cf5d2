package keyring

import (
	"context"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/seal"
	"github.com/bettercompute/bettercompute/impl/store"
)

// Make makes what a database does not have yet: its data keys, and a CA unless
// that is in files. Where it has them, it only makes sure that the operator's
// keys open them; if they do not, the error is ErrSealKey.
//
// It runs in the transaction of a migration, under the lock: the first writer wins.
func Make(ctx context.Context, tx *store.Tx, config Config) error {
	keys, err := config.SealKeys()
	if err != nil {
		return err
	}
	keyset, err := tx.SealKeyset(ctx)
	if fault.Is(err, problem.NotFound) {
		if keyset.Wrapped, err = seal.NewKeyset(keys); err == nil {
			err = tx.PutSealKeyset(ctx, keyset.Wrapped)
		}
	}
	if err != nil {
		return err
	}
	box, err := openBox(keys, keyset.Wrapped)
	if err != nil || config.CADir != "" {
		return err
	}
	rows, err := tx.CAKeys(ctx)
	if err != nil || len(rows) > 0 {
		return err
	}
	materials, err := ca.Generate(tx.Now())
	if err != nil {
		return err
	}
	return put(ctx, tx, box, materials)
}
