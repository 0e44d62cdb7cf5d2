package keyring

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/seal"
	"github.com/bettercompute/bettercompute/impl/store"
)

// stored is what the database keeps, as it keeps it.
type stored struct {
	wrapped []byte // the data keys
	rows    []store.CAKey
}

// read reads the rows before the data keys: newer ones open what older ones
// sealed, and not the other way round.
func read(ctx context.Context, from store.Reader) (s stored, err error) {
	if s.rows, err = from.CAKeys(ctx); err != nil {
		return stored{}, err
	}
	keyset, err := from.SealKeyset(ctx)
	if err != nil {
		return stored{}, err
	}
	s.wrapped = keyset.Wrapped
	return s, nil
}

func (s stored) equal(other stored) bool {
	return bytes.Equal(s.wrapped, other.wrapped) && slices.EqualFunc(s.rows, other.rows, func(a, b store.CAKey) bool {
		return a.ID == b.ID && bytes.Equal(a.SealedKey, b.SealedKey)
	})
}

// opened is what was stored, in the clear, and what opened it.
type opened struct {
	keys      seal.Keys
	box       *seal.Box
	materials []ca.Material
}

// open opens everything with the operator's keys.
func (s stored) open(sealKeys func() (seal.Keys, error)) (o opened, err error) {
	if o.keys, err = sealKeys(); err != nil {
		return opened{}, err
	}
	if o.box, err = openBox(o.keys, s.wrapped); err != nil {
		return opened{}, err
	}
	for _, row := range s.rows {
		key, err := o.box.Open(row.SealedKey, recordOf(row.ID))
		if err != nil {
			return opened{}, fmt.Errorf("keyring: the key of %s %s: %w", row.Name, row.ID, err)
		}
		o.materials = append(o.materials, ca.Material{
			ID: row.ID, Name: row.Name, Certificate: row.Certificate, Key: ca.NewPrivateKey(key), CreatedAt: row.CreatedAt,
		})
	}
	return o, nil
}

func openBox(keys seal.Keys, wrapped []byte) (*seal.Box, error) {
	box, err := seal.Open(keys, wrapped)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSealKey, err)
	}
	return box, nil
}

// put keeps materials, new ones or those that are there under another seal.
func put(ctx context.Context, tx *store.Tx, box *seal.Box, materials []ca.Material) error {
	for _, m := range materials {
		sealed, err := box.Seal(m.Key.Reveal(), recordOf(m.ID))
		if err != nil {
			return err
		}
		row := store.CAKey{ID: m.ID, Name: m.Name, Certificate: m.Certificate, SealedKey: sealed, CreatedAt: m.CreatedAt}
		if err := tx.PutCAKey(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// recordOf names a row for its seal, so that no sealed key can stand in another row.
func recordOf(id string) string { return "ca_keys/" + id }
