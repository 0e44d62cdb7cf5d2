package seal

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/tink-crypto/tink-go/v2/aead/subtle"
	"github.com/tink-crypto/tink-go/v2/tink"
)

const keyBytes = 32 // AES-256

// Keys are the key-encryption keys that an operator holds, at least one: the
// first seals, every one opens. They print as [sealed] everywhere.
//
// Only their ciphers are kept, behind a pointer, because fmt also prints what
// it may not ask: the fields of a struct that holds Keys unexported.
type Keys struct{ ciphers *[]tink.AEAD }

const hidden = "[sealed]"

// String implements [fmt.Stringer].
func (Keys) String() string { return hidden }

// Format implements [fmt.Formatter], for every verb.
func (Keys) Format(f fmt.State, _ rune) { io.WriteString(f, hidden) }

// LogValue implements [slog.LogValuer].
func (Keys) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText implements [encoding.TextMarshaler].
func (Keys) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// ParseKeys reads key-encryption keys, one a line: 32 random bytes in standard
// base64. Blank lines are passed over, and those that begin with #. An error
// names the line and the rule, never what stands there.
func ParseKeys(text string) (Keys, error) {
	var ciphers []tink.AEAD
	lineOf := map[[keyBytes]byte]int{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, err := parseKey(line)
		if err != nil {
			return Keys{}, fmt.Errorf("line %d: %w", number, err)
		}
		if first, twice := lineOf[key]; twice {
			return Keys{}, fmt.Errorf("line %d: the key is that of line %d again", number, first)
		}
		lineOf[key] = number
		cipher, err := subtle.NewAESGCM(key[:])
		if err != nil {
			return Keys{}, fmt.Errorf("line %d: %w", number, err)
		}
		ciphers = append(ciphers, cipher)
	}
	if len(ciphers) == 0 {
		return Keys{}, errors.New("no key is given: one line must hold 32 random bytes in standard base64")
	}
	return Keys{&ciphers}, nil
}

func parseKey(line string) (key [keyBytes]byte, err error) {
	decoded, err := base64.StdEncoding.Strict().DecodeString(line)
	if err != nil || strings.Contains(line, "\r") { // which the decoder passes over
		return key, errors.New("a key must be in standard base64, and alone on its line") // the cause would tell where
	}
	if len(decoded) != keyBytes {
		return key, errors.New("a key must have 32 bytes, which are 44 characters of base64")
	}
	if bytes.Count(decoded, decoded[:1]) == keyBytes {
		return key, errors.New("a key must be random; this one repeats one byte")
	}
	return [keyBytes]byte(decoded), nil
}

// NewKeyText returns a fresh key as the line of a file, for [ParseKeys]. It is
// a secret in the clear: it belongs in that file and nowhere else.
func NewKeyText() string {
	var key [keyBytes]byte
	rand.Read(key[:]) // never fails: crypto/rand aborts the program instead
	return base64.StdEncoding.EncodeToString(key[:]) + "\n"
}
