// Package bearer mints and reads bearer credentials of the form <kind>_<id>.<secret> (JT-03).
package bearer

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math/big"
	"strings"
)

// The kinds of bearer: what stands before the id.
const (
	JoinToken = "bcjt_"
	APIKey    = "bck_"
)

const (
	base62      = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	idChars     = "0123456789abcdefghijklmnopqrstuvwxyz_"
	randomChars = 43 // 32 bytes in base62, left-padded
	sumChars    = 6  // CRC-32 in base62, left-padded
	secretChars = randomChars + sumChars
	maxIDChars  = 64
)

// Bearer is a credential in the clear. It prints as [sealed] everywhere;
// only Reveal gives the text, and only the answer that mints it may ask.
//
// The text is behind a pointer because fmt also prints what it may not ask:
// the fields of a struct that holds a Bearer unexported.
type Bearer struct{ text *string }

const sealed = "[sealed]"

// String implements [fmt.Stringer].
func (Bearer) String() string { return sealed }

// Format implements [fmt.Formatter], for every verb.
func (Bearer) Format(f fmt.State, _ rune) { io.WriteString(f, sealed) }

// LogValue implements [slog.LogValuer].
func (Bearer) LogValue() slog.Value { return slog.StringValue(sealed) }

// MarshalText implements [encoding.TextMarshaler].
func (Bearer) MarshalText() ([]byte, error) { return []byte(sealed), nil }

// Reveal returns the credential itself; the zero Bearer has none.
func (b Bearer) Reveal() string {
	if b.text == nil {
		return ""
	}
	return *b.text
}

// Hash is the SHA-256 of a secret's 49 characters: all that is stored of it.
type Hash [sha256.Size]byte

// Equal compares in constant time with a stored hash; a stored hash of another length is unequal.
func (h Hash) Equal(stored []byte) bool {
	return subtle.ConstantTimeCompare(h[:], stored) == 1
}

// Mint returns a fresh credential for a record, and what to store of it.
// The secret ends in a checksum of everything before it, so that a typo is
// known without the database and a secret scanner can be sure.
func Mint(kind, id string) (Bearer, Hash) {
	var random [32]byte
	rand.Read(random[:]) // never fails: crypto/rand aborts the program instead
	body := kind + id + "." + encode(new(big.Int).SetBytes(random[:]), randomChars)
	text := body + checksum(body)
	return Bearer{&text}, hashOf(text)
}

// Parse reads a credential of one kind and returns the id of its record and
// the hash of its secret. It is false for anything malformed or mistyped.
func Parse(kind, text string) (id string, hash Hash, ok bool) {
	rest, found := strings.CutPrefix(text, kind)
	if !found {
		return "", Hash{}, false
	}
	id, secret, found := strings.Cut(rest, ".")
	if !found || id == "" || len(id) > maxIDChars || !only(id, idChars) || len(secret) != secretChars || !only(secret, base62) {
		return "", Hash{}, false
	}
	body := text[:len(text)-sumChars]
	if checksum(body) != text[len(body):] {
		return "", Hash{}, false
	}
	return id, hashOf(text), true
}

// only reports whether text has none but these characters.
func only(text, chars string) bool { return strings.Trim(text, chars) == "" }

func hashOf(text string) Hash {
	return sha256.Sum256([]byte(text[len(text)-secretChars:]))
}

func checksum(body string) string {
	return encode(big.NewInt(int64(crc32.ChecksumIEEE([]byte(body)))), sumChars)
}

func encode(n *big.Int, width int) string {
	out := make([]byte, width)
	base, digit := big.NewInt(int64(len(base62))), new(big.Int)
	n = new(big.Int).Set(n)
	for i := width - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		out[i] = base62[digit.Int64()]
	}
	return string(out)
}
