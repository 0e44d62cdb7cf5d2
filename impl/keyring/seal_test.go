package keyring_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/keyring"
	"github.com/bettercompute/bettercompute/impl/seal"
)

// TestRotateSeal holds that every row is sealed anew, that the CA is the same,
// and that a running server goes on, through any number of rotations.
func TestRotateSeal(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bench) {
		k := b.open(t)
		tenant := issuing(t, k.Authority(), ca.NodeTenant)
		for range 3 {
			keyset, rows := b.stored(t)
			b.rotateSeal(t)
			again, after := b.stored(t)
			if bytes.Equal(again, keyset) {
				t.Error("the data keys are the same")
			}
			for i, row := range after {
				if row.ID != rows[i].ID || bytes.Equal(row.SealedKey, rows[i].SealedKey) || !bytes.Equal(row.Certificate, rows[i].Certificate) || !row.CreatedAt.Equal(rows[i].CreatedAt) {
					t.Errorf("%s became %+v", rows[i].ID, row)
				}
			}
			node(t, k.Authority(), time.Now()) // as it was
			refresh(t, k)
			if issuing(t, k.Authority(), ca.NodeTenant) != tenant || issuing(t, b.open(t).Authority(), ca.NodeTenant) != tenant {
				t.Error("another issuer issues")
			}
		}
		// What is sealed opens with the newest data key, and the one before is still there.
		keyset, rows := b.stored(t)
		keys, err := b.file.keys()
		if err != nil {
			t.Fatal(err)
		}
		box, err := seal.Open(keys, keyset)
		if err != nil {
			t.Fatal(err)
		}
		_, newest, err := box.Drop(keys)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if _, err := newest.Open(row.SealedKey, "ca_keys/"+row.ID); err != nil {
				t.Errorf("%s: %v", row.ID, err)
			}
		}
	})
}

// TestRotateSeal_NewSealKey holds how a seal key is replaced without a stop: the
// new one above the old one in the file, a rotation, and then the old one goes.
func TestRotateSeal_NewSealKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bench) {
		replica := b
		replica.file = &file{text: b.file.text}
		replica.config.SealKeys = replica.file.keys
		k := replica.open(t)
		old, fresh := b.file.text, seal.NewKeyText()
		b.file.write(fresh + old)
		b.rotateSeal(t)
		b.file.write(fresh)
		b.open(t)
		b.file.write(old)
		if _, err := keyring.Open(t.Context(), b.db, b.config); !errors.Is(err, keyring.ErrSealKey) {
			t.Errorf("the old key still opens: %v", err)
		}

		// A replica whose file has not been changed goes on with what it knows, and catches up.
		before := k.Authority()
		if err := k.Refresh(t.Context()); !errors.Is(err, keyring.ErrSealKey) || k.Authority() != before {
			t.Errorf("the replica with the old file: %v", err)
		}
		node(t, k.Authority(), time.Now())
		replica.file.write(fresh + old)
		refresh(t, k)
		if k.Authority() == before {
			t.Error("the replica did not take the new keys")
		}
	})
}
