package placeholder

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

const quotes = "\"'`´‘’“”«»"

// Normalize returns the one form in which two spellings of an identifier are equal. Text is brought to NFKC, case is
// folded, blanks, control and format characters are collapsed to single spaces, and surrounding quotes and trailing
// dots are cut off. On top of that a MAC of 6 bytes becomes aa:bb:cc:dd:ee:ff, a product UUID 8-4-4-4-12 and a GPU
// UUID gpu-8-4-4-4-12, whatever their separators were; anything else of these kinds stays text.
// It is idempotent and accepts any string, invalid UTF-8 included.
func Normalize(kind Kind, value string) string {
	v := text(value)
	switch kind {
	case MAC:
		if hex := digits(v, ":-. ", 12); hex != "" {
			return strings.Join([]string{hex[0:2], hex[2:4], hex[4:6], hex[6:8], hex[8:10], hex[10:12]}, ":")
		}
	case ProductUUID:
		if hex := digits(v, "{}- ", 32); hex != "" {
			return hyphenate(hex)
		}
	case GPUUUID:
		if hex := digits(strings.TrimPrefix(v, "gpu-"), "{}- ", 32); hex != "" {
			return "gpu-" + hyphenate(hex)
		}
	}
	return v
}

// SwapUUID returns a product UUID in normal form with its first three fields byte-swapped: SMBIOS 2.6 made them
// little-endian, so one machine has two spellings. It undoes itself. A value that is no UUID is only normalised.
func SwapUUID(uuid string) string {
	v := Normalize(ProductUUID, uuid)
	hex := digits(v, "-", 32)
	if hex == "" {
		return v
	}
	return hyphenate(reverse(hex[:8]) + reverse(hex[8:12]) + reverse(hex[12:16]) + hex[16:])
}

// text is the part of Normalize that all kinds share. Folding can disturb composition and trimming can expose more to
// fold, so it goes round until nothing moves; two rounds settle all that is known, the limit is for what is not.
func text(v string) string {
	v = strings.ToValidUTF8(v, string(unicode.ReplacementChar))
	for range 8 {
		next := norm.NFKC.String(cases.Fold().String(norm.NFKC.String(v)))
		next = strings.Join(strings.FieldsFunc(next, blank), " ")
		next = strings.TrimLeft(next, quotes+" ")
		next = strings.TrimRight(next, quotes+" .")
		if next == v {
			break
		}
		v = next
	}
	return v
}

// blank also takes the NULs that firmware pads strings with, and zero-width characters that no eye sees.
func blank(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}

// digits returns v without the separators if exactly n lower-case hex digits are left, else "".
func digits(v, separators string, n int) string {
	hex := make([]byte, 0, n)
	for i := range len(v) {
		c := v[i]
		switch {
		case strings.IndexByte(separators, c) >= 0:
		case len(hex) < n && ('0' <= c && c <= '9' || 'a' <= c && c <= 'f'):
			hex = append(hex, c)
		default:
			return ""
		}
	}
	if len(hex) != n {
		return ""
	}
	return string(hex)
}

// hyphenate sets the hyphens of a UUID into its 32 digits.
func hyphenate(hex string) string {
	return strings.Join([]string{hex[0:8], hex[8:12], hex[12:16], hex[16:20], hex[20:32]}, "-")
}

// reverse turns the order of the bytes in hex, two digits each.
func reverse(hex string) string {
	out := make([]byte, 0, len(hex))
	for i := len(hex) - 2; i >= 0; i -= 2 {
		out = append(out, hex[i], hex[i+1])
	}
	return string(out)
}
