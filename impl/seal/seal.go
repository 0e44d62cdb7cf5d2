// Package seal keeps secrets at rest, by envelope encryption with Tink.
//
// Three layers: a key-encryption key, which the operator holds (Keys), wraps a
// keyset of data keys, which the database holds; the newest data key of the
// keyset (Box) seals each secret. So that a rotation needs no stop, it goes in
// one transaction over everything that is sealed:
//
//	box, _ := seal.Open(keys, wrapped)       // the stored keyset, by any of the keys
//	_, newest, _ := box.Drop(keys)           // what only the last rotation had to keep
//	wrapped, next, _ := newest.Rotate(keys)  // a fresh data key; to be stored
//	// each row: box.Open, then next.Seal
//
// A replica that meets ErrUnknownKey reads the keyset again, once. One that
// seals reads the keyset in the transaction that stores the row: what it sealed
// under a keyset of two rotations ago could never be opened again.
package seal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/core/cryptofmt"
	"github.com/tink-crypto/tink-go/v2/keyset"
	tinkpb "github.com/tink-crypto/tink-go/v2/proto/tink_go_proto"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// purpose is the associated data of a wrapped keyset, so that nothing else that
// a key-encryption key seals can stand in for one.
const purpose = "bettercompute seal keyset v1"

// ErrUnknownKey says that a secret was sealed with a data key that the keyset
// does not hold: the keyset is older than the secret, or the secret is not ours.
var ErrUnknownKey = errors.New("seal: sealed with a data key that this keyset does not hold")

var (
	errChanged = errors.New("seal: the sealed secret was changed, or belongs to another record")
	errNoKey   = errors.New("seal: no key-encryption key is given")
	errNotOpen = errors.New("seal: none of the given key-encryption keys opens the keyset")
)

// A Box seals and opens secrets with the data keys of one keyset. It is
// immutable and safe for concurrent use.
type Box struct {
	handle *keyset.Handle
	cipher tink.AEAD
	ids    map[uint32]bool // of the data keys
}

// NewKeyset returns a keyset with one fresh AES-256-GCM data key, wrapped under the first of the keys.
func NewKeyset(keys Keys) ([]byte, error) {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return wrap(keys, handle)
}

// Open unwraps a keyset with whichever of the keys wrapped it.
func Open(keys Keys, wrapped []byte) (*Box, error) {
	if keys.ciphers == nil {
		return nil, errNoKey
	}
	for _, cipher := range *keys.ciphers {
		stored := &keyset.MemReaderWriter{EncryptedKeyset: &tinkpb.EncryptedKeyset{EncryptedKeyset: wrapped}}
		if handle, err := keyset.ReadWithAssociatedData(stored, cipher, []byte(purpose)); err == nil {
			return newBox(handle)
		}
	}
	return nil, errNotOpen
}

func newBox(handle *keyset.Handle) (*Box, error) {
	cipher, err := aead.New(handle)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	box := &Box{handle, cipher, map[uint32]bool{}}
	for i := range handle.Len() {
		entry, err := handle.Entry(i)
		if err != nil {
			return nil, fmt.Errorf("seal: %w", err)
		}
		box.ids[entry.KeyID()] = true
	}
	return box, nil
}

func wrap(keys Keys, handle *keyset.Handle) ([]byte, error) {
	if keys.ciphers == nil {
		return nil, errNoKey
	}
	var out keyset.MemReaderWriter
	if err := handle.WriteWithAssociatedData(&out, (*keys.ciphers)[0], []byte(purpose)); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return out.EncryptedKeyset.GetEncryptedKeyset(), nil
}

// Seal encrypts a secret with the newest data key. It opens only with the same
// context, which names the record that it belongs to, such as "ca_issuers/iss_…".
func (b *Box) Seal(plain []byte, context string) ([]byte, error) {
	sealed, err := b.cipher.Encrypt(plain, []byte(context))
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return sealed, nil
}

// Open decrypts what Seal made with any data key of the keyset and the same
// context. The error is ErrUnknownKey for a data key that is not among them;
// any other says that the secret was changed or moved.
func (b *Box) Open(sealed []byte, context string) ([]byte, error) {
	// A ciphertext of Tink begins with the id of its key; the id is a hint, and
	// changing it leads to another key that does not fit.
	if len(sealed) < cryptofmt.TinkPrefixSize || sealed[0] != cryptofmt.TinkStartByte {
		return nil, errChanged
	}
	if !b.ids[binary.BigEndian.Uint32(sealed[1:])] {
		return nil, ErrUnknownKey
	}
	plain, err := b.cipher.Decrypt(sealed, []byte(context))
	if err != nil {
		return nil, errChanged
	}
	return plain, nil
}
