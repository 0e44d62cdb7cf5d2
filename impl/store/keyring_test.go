package store_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

func TestKeyring_KeepsWhatIsSealed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		_, err := db.SealKeyset(t.Context())
		wantCode(t, err, problem.NotFound)
		if keys, err := db.CAKeys(t.Context()); len(keys) != 0 || err != nil {
			t.Errorf("keys %v, error %v", keys, err)
		}
		for i := range 2 {
			wrapped := []byte{0, 1, 0xff, byte(i), '\'', '\\'}
			write(t, db, func(tx *store.Tx) error { return tx.PutSealKeyset(t.Context(), wrapped) })
			want := store.SealKeyset{ID: 1, Wrapped: wrapped, UpdatedAt: clock.Now()}
			if got, err := db.SealKeyset(t.Context()); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("keyset %+v, error %v; want %+v", got, err, want)
			}
			clock.Advance(time.Minute)
		}
		key := func(id, sealed string, at time.Duration) store.CAKey {
			return store.CAKey{ID: id, Name: "node-platform", Certificate: []byte("certificate of " + id + "\x00"), SealedKey: []byte(sealed), CreatedAt: noon.Add(at)}
		}
		first, second, third := key("b", "1", 0), key("c", "2", time.Hour), key("a", "3", time.Hour)
		write(t, db, func(tx *store.Tx) error {
			for _, k := range []store.CAKey{third, second, first} {
				if err := tx.PutCAKey(t.Context(), k); err != nil {
					return err
				}
			}
			return nil
		})
		resealed := second
		resealed.SealedKey = []byte("sealed anew")
		changed := resealed // only the sealed key is replaced: certificate and name belong to the key
		changed.Name, changed.Certificate, changed.CreatedAt = "other", []byte("other"), noon.Add(-time.Hour)
		write(t, db, func(tx *store.Tx) error { return tx.PutCAKey(t.Context(), changed) })
		keys, err := db.CAKeys(t.Context())
		must(t, err)
		if want := []store.CAKey{first, third, resealed}; !reflect.DeepEqual(keys, want) {
			t.Errorf("keys %+v\nwant %+v", keys, want)
		}
	})
}

// Of many replicas that start at once the first one makes the keys, and the
// others find them.
func TestKeyring_FirstWriterUnderTheLockWins(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		handles, found := replicas(t, db), make([]string, 8)
		together(8, func(i int) {
			err := handles[i%2].Write(t.Context(), func(tx *store.Tx) error {
				if err := tx.LockKeyring(t.Context()); err != nil {
					return err
				}
				kept, err := tx.SealKeyset(t.Context())
				if fault.Is(err, problem.NotFound) {
					kept.Wrapped = fmt.Append(nil, i)
					err = tx.PutSealKeyset(t.Context(), kept.Wrapped)
				}
				found[i] = string(kept.Wrapped)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
		kept, err := db.SealKeyset(t.Context())
		must(t, err)
		if slices.ContainsFunc(found, func(text string) bool { return text != string(kept.Wrapped) }) {
			t.Errorf("%s is kept, and found was %v", kept.Wrapped, found)
		}
	})
}
