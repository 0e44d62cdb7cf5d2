package main

import (
	"math/big"
	"strings"

	"github.com/bettercompute/bettercompute/tools/specc/regex"
)

// integerTrials are numbers at both ends of a range, in every spelling.
func integerTrials(limit *limits) (list []trial) {
	least, most := big.NewInt(limit.min), big.NewInt(limit.max)
	judge := func(raw string) {
		t := trial{what: raw, raw: raw}
		n, _ := new(big.Rat).SetString(raw)
		switch {
		case !n.IsInt():
			t.rule = "integer"
		case n.Num().Cmp(least) < 0 || n.Num().Cmp(most) > 0:
			t.rule = "range"
		}
		list = append(list, t)
	}
	for _, end := range []*big.Int{least, most} {
		digits := end.String()
		judge(digits)
		judge(digits + ".0")
		judge(digits + ".000")
		judge(digits + "e0")
		judge(digits + "E+00")
		judge(digits + ".0e-0")
		if end.Sign() != 0 {
			judge(digits + "0e-1")
		}
		judge(shifted(digits))
		judge(digits + ".5")
		judge(digits + ".0000000000000000001")
		judge(digits + "e-1")
		judge(digits + "e1")
	}
	one := big.NewInt(1)
	judge(new(big.Int).Sub(least, one).String())
	judge(new(big.Int).Add(most, one).String())
	for _, raw := range []string{
		"0", "-0", "-0.0", "0e5", "-1", "1.5", "1.0000000000000000001", "0.9999999999999999999", "1e3", "10e-1",
		"1e400", "-1e400", "1e-400", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
		"18446744073709551615", "18446744073709551616", "18446744073709551617", "340282366920938463463374607431768211457",
		strings.Repeat("9", 400), "1" + strings.Repeat("0", 400) + "e-400",
	} {
		judge(raw)
	}
	list = append(list,
		trial{what: "an exponent without end", raw: "1e99999999999999999999", rule: "range"},
		trial{what: "a negative exponent without end", raw: "1e-99999999999999999999", rule: "integer"},
		trial{what: "in quotes", raw: quoted(least.String()), rule: "type"},
	)
	digits := strings.TrimPrefix(least.String(), "-")
	for _, raw := range []string{
		"0" + digits, "00", "-0" + digits, "+" + digits, digits + ".", "." + digits, digits + "e", digits + "e+", digits + ".e1",
		"-", "--1", "NaN", "Infinity", "-Infinity",
	} {
		list = append(list, trial{what: "no JSON: " + raw, raw: raw, rule: "json"})
	}
	return list
}

// shifted writes a number with its point behind the first digit: 60 as 6.0e1.
func shifted(digits string) string {
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	exponent := big.NewInt(int64(len(digits) - 1)).String()
	return sign + digits[:1] + "." + digits[1:] + "0e" + exponent
}

// validText is a text that a string takes: the first example of its pattern that
// is not too long, or a short word.
func validText(limit *limits) string {
	if limit.pattern == nil {
		return "a"
	}
	for _, s := range limit.pattern.DFA().Accepts() {
		if limit.maxChars == 0 || len(s) <= limit.maxChars {
			return s
		}
	}
	return "" // checkLength has seen that the shortest is short enough
}

// matchOfLength returns a text of so many characters that an automaton accepts.
// It reports false where there is none, or where looking for it takes too long.
func matchOfLength(d *regex.DFA, length int) (string, bool) {
	if length < 1 || length*d.States() > 1<<22 {
		return "", false
	}
	classOf, classes := d.Classes()
	table := d.Table()
	reach := [][]bool{d.Accepting()} // reach[n]: the states that n characters lead from to acceptance
	for n := range length {
		from := make([]bool, d.States())
		for i, next := range table {
			from[i/classes] = from[i/classes] || reach[n][next]
		}
		reach = append(reach, from)
	}
	if !reach[length][d.Start()] {
		return "", false
	}
	text, state := make([]byte, 0, length), d.Start()
	for left := length - 1; left >= 0; left-- {
		for _, b := range []byte("abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") {
			if next := table[state*classes+int(classOf[b])]; reach[left][next] {
				text, state = append(text, b), int(next)
				break
			}
		}
	}
	return string(text), true
}
