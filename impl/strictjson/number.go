package strictjson

import (
	"math"
	"strconv"
)

// Integer decodes a number whose value is integral, however it is written (8, 8.0,
// 0.8e1, 80E-1), by exact decimal arithmetic. It refuses any other value (RuleType,
// RuleNull), a fraction (RuleInteger) and what is not in min to max (RuleRange), and
// then returns 0. Without a bound min is math.MinInt64, max math.MaxInt64. -0 is 0.
func (d *Decoder) Integer(min, max int64) int64 {
	s, i := d.body, d.pos
	j := i
	var n int64
	for ; j < len(s) && s[j]-'0' <= 9 && j < i+18; j++ {
		n = n*10 + int64(s[j]-'0')
	}
	if c := peek(s, j); j > i && (s[i] != '0' || j == i+1) && c != '.' && c|0x20 != 'e' && c-'0' > 9 && n >= min && n <= max {
		d.pos = j
		return n
	}
	return d.integer(min, max)
}

// integer is Integer for every spelling.
func (d *Decoder) integer(min, max int64) int64 {
	s, i := d.body, d.pos
	if c := peek(s, i); c != '-' && c-'0' > 9 {
		d.refuseType("must be an integer")
		return 0
	}
	num, end := scanNumber(s, i)
	if !num.ok {
		d.malformed(end)
		return 0
	}
	d.pos = end
	n, rule := num.integer(s)
	switch {
	case rule == RuleInteger:
		d.Fail(RuleInteger, "must be a whole number")
	case rule != "" || n < min || n > max:
		d.Fail(RuleRange, rangeMessage(min, max))
	default:
		return n
	}
	return 0
}

// number is where the parts of a number stand in the body. Its value is the digits
// of whole and fraction, read as one, times ten to the power exponent, less the
// length of the fraction.
type number struct {
	negative       bool
	whole, wholeTo int // s[whole:wholeTo] is before the point
	frac, fracTo   int // s[frac:fracTo] is behind it
	exponent       int64
	ok             bool
}

// maxExponent stands for every exponent beyond it: no body has enough digits to
// bring such a number back into range, or up to a whole number.
const maxExponent = 1 << 40

// scanNumber reads the number at i by the grammar of RFC 8259, and returns the
// offset behind it, or that of the byte that is malformed.
func scanNumber(s string, i int) (n number, end int) {
	if peek(s, i) == '-' {
		n.negative = true
		i++
	}
	n.whole = i
	i = digits(s, i)
	n.wholeTo = i
	n.frac, n.fracTo = i, i
	if i == n.whole {
		return n, i
	}
	if s[n.whole] == '0' && i > n.whole+1 {
		return n, n.whole + 1
	}
	if peek(s, i) == '.' {
		n.frac = i + 1
		i = digits(s, n.frac)
		n.fracTo = i
		if i == n.frac {
			return n, i
		}
	}
	if c := peek(s, i); c == 'e' || c == 'E' {
		i++
		sign := peek(s, i)
		if sign == '-' || sign == '+' {
			i++
		}
		from := i
		i = digits(s, from)
		if i == from {
			return n, i
		}
		for _, c := range []byte(s[from:i]) {
			n.exponent = min(n.exponent*10+int64(c-'0'), maxExponent)
		}
		if sign == '-' {
			n.exponent = -n.exponent
		}
	}
	n.ok = true
	return n, i
}

func digits(s string, i int) int {
	for i < len(s) && s[i]-'0' <= 9 {
		i++
	}
	return i
}

// integer returns the value of n, or RuleInteger if it has a fraction, or RuleRange
// if it needs more than 64 bits. All of it is a matter of counting digits: with the
// zeros at both ends taken off, a number is whole if its exponent is not negative.
func (n number) integer(s string) (int64, Rule) {
	whole, frac := s[n.whole:n.wholeTo], s[n.frac:n.fracTo]
	size := len(whole) + len(frac)
	digit := func(k int) uint64 {
		if k < len(whole) {
			return uint64(whole[k] - '0')
		}
		return uint64(frac[k-len(whole)] - '0')
	}
	first, last := 0, size
	for first < size && digit(first) == 0 {
		first++
	}
	if first == size {
		return 0, ""
	}
	for digit(last-1) == 0 {
		last--
	}
	zeros := n.exponent + int64(len(whole)-last) // to append to digits first to last
	if zeros < 0 {
		return 0, RuleInteger
	}
	if int64(last-first)+zeros > 19 {
		return 0, RuleRange
	}
	var value uint64 // 19 digits fit
	for k := first; k < last; k++ {
		value = value*10 + digit(k)
	}
	for ; zeros > 0; zeros-- {
		value *= 10
	}
	switch {
	case n.negative && value <= 1<<63:
		return -int64(value), "" // -1<<63 negates to itself
	case !n.negative && value < 1<<63:
		return int64(value), ""
	}
	return 0, RuleRange
}

func rangeMessage(min, max int64) string {
	b := append(make([]byte, 0, 64), "must be "...)
	if min == math.MinInt64 && max == math.MaxInt64 {
		return string(append(b, "a 64-bit number"...))
	}
	return string(appendSpan(b, min, max, math.MinInt64))
}

// appendSpan writes a range for a message: "1-10000". A bound that excludes nothing,
// a minimum up to lowest or a maximum of math.MaxInt64, is left out.
func appendSpan(b []byte, min, max, lowest int64) []byte {
	switch {
	case min <= lowest:
		return strconv.AppendInt(append(b, "at most "...), max, 10)
	case max == math.MaxInt64:
		return strconv.AppendInt(append(b, "at least "...), min, 10)
	}
	b = strconv.AppendInt(b, min, 10)
	if min < 0 {
		b = append(b, " to "...)
	} else {
		b = append(b, '-')
	}
	return strconv.AppendInt(b, max, 10)
}
