package seal

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

// Rotate returns the keyset with a fresh data key that seals from now on, and
// the older ones, which still open; wrapped under the first of the keys. The
// Box itself stays as it is.
func (b *Box) Rotate(keys Keys) (wrapped []byte, next *Box, err error) {
	manager := keyset.NewManagerFromHandle(b.handle)
	id, err := manager.Add(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, nil, fmt.Errorf("seal: %w", err)
	}
	if err := manager.SetPrimary(id); err != nil {
		return nil, nil, fmt.Errorf("seal: %w", err)
	}
	return rewrap(keys, manager)
}

// Drop returns the keyset with only the data key that seals; wrapped under the
// first of the keys. What the others sealed opens no more, except with this
// Box, which stays as it is.
func (b *Box) Drop(keys Keys) (wrapped []byte, next *Box, err error) {
	manager := keyset.NewManagerFromHandle(b.handle)
	newest, err := b.handle.Primary()
	if err != nil {
		return nil, nil, fmt.Errorf("seal: %w", err)
	}
	for id := range b.ids {
		if id == newest.KeyID() {
			continue
		}
		if err := manager.Delete(id); err != nil {
			return nil, nil, fmt.Errorf("seal: %w", err)
		}
	}
	return rewrap(keys, manager)
}

func rewrap(keys Keys, manager *keyset.Manager) ([]byte, *Box, error) {
	handle, err := manager.Handle()
	if err != nil {
		return nil, nil, fmt.Errorf("seal: %w", err)
	}
	next, err := newBox(handle)
	if err != nil {
		return nil, nil, err
	}
	wrapped, err := wrap(keys, handle)
	if err != nil {
		return nil, nil, err
	}
	return wrapped, next, nil
}

// String implements [fmt.Stringer].
func (*Box) String() string { return hidden }

// Format implements [fmt.Formatter], for every verb.
func (*Box) Format(f fmt.State, _ rune) { io.WriteString(f, hidden) }

// LogValue implements [slog.LogValuer].
func (*Box) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText implements [encoding.TextMarshaler].
func (*Box) MarshalText() ([]byte, error) { return []byte(hidden), nil }
