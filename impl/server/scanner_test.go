package server_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

// A scanner finds secrets in text, whatever form they were written in. Half of
// a secret is a leak too: what it looks for are two overlapping pieces of each.
type scanner struct {
	needles map[string][]needle // by their first bytes
	filter  []uint64            // bits for the first eight of these
}

type needle struct {
	text []byte
	form string
}

type finding struct {
	at   int
	form string
}

const (
	needleHead = 16 // bytes; no needle is shorter
	filterBits = 22
)

// pemKey is in every private key in PEM, whosever it is.
const pemKey = "PRIVATE KEY-----"

func newScanner(bearers []string) *scanner {
	s := &scanner{map[string][]needle{}, make([]uint64, 1<<(filterBits-6))}
	s.add(pemKey)
	for _, bearer := range bearers {
		_, secret, _ := strings.Cut(bearer, ".")
		s.add(secret[:24])
		s.add(secret[19:43])
	}
	return s
}

func (s *scanner) add(piece string) {
	for _, n := range forms(piece) {
		head := string(n.text[:needleHead])
		s.needles[head] = append(s.needles[head], n)
		bit := filterBit(n.text)
		s.filter[bit/64] |= 1 << (bit % 64)
	}
}

func filterBit(text []byte) uint64 {
	return binary.LittleEndian.Uint64(text) * 0x9e3779b97f4a7c15 >> (64 - filterBits)
}

// find returns the first places, sixteen at most.
func (s *scanner) find(text []byte) (found []finding) {
	for at := 0; at+needleHead <= len(text) && len(found) < 16; at++ {
		bit := filterBit(text[at:])
		if s.filter[bit/64]&(1<<(bit%64)) == 0 {
			continue
		}
		for _, n := range s.needles[string(text[at:at+needleHead])] {
			if bytes.HasPrefix(text[at:], n.text) {
				found = append(found, finding{at, n.form})
			}
		}
	}
	return found
}

// forms are the ways in which a piece of a secret may have been written.
func forms(piece string) (list []needle) {
	seen := map[string]bool{}
	add := func(form, text string) {
		if !seen[text] {
			seen[text] = true
			list = append(list, needle{[]byte(text), form})
		}
	}
	add("text", piece)
	for name, encoding := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "base64url": base64.RawURLEncoding} {
		for before := range 3 {
			text := encoding.EncodeToString(append(make([]byte, before), piece...))
			// The first and the last character may hold bits of neighbours.
			add(fmt.Sprintf("%s after %d", name, before), text[(before*8+5)/6:(before+len(piece))*8/6])
		}
	}
	each := func(format, separator string) string {
		var out []string
		for _, b := range []byte(piece) {
			out = append(out, fmt.Sprintf(format, b))
		}
		return strings.Join(out, separator)
	}
	add("hex", hex.EncodeToString([]byte(piece)))
	add("hex", strings.ToUpper(hex.EncodeToString([]byte(piece))))
	add("percent", each("%%%02x", ""))
	add("percent", each("%%%02X", ""))
	add("JSON escapes", each(`\u%04x`, ""))
	add("JSON escapes", each(`\u%04X`, ""))
	add("numbers", each("%d", " "))
	add("numbers", each("%d", ","))
	return list
}
