// Package ids makes the ids of records: a prefix that names the kind, and lower-case Crockford base32.
package ids

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

var encoding = base32.NewEncoding(crockford).WithPadding(base32.NoPadding)

// New returns a fresh id such as evt_01jz…: 26 characters after the prefix,
// in the order of at (milliseconds) and random within one.
func New(prefix string, at time.Time) string {
	id := ulid.MustNew(ulid.Timestamp(at), ulid.DefaultEntropy())
	return prefix + "_" + strings.ToLower(id.String())
}

// Derive returns the id that follows from parts: 52 characters after the prefix.
// Each part is hashed behind its length, so that no two lists of parts meet (JT-22).
func Derive(prefix string, parts ...string) string {
	h := sha256.New()
	var size [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return prefix + "_" + encoding.EncodeToString(h.Sum(nil))
}
