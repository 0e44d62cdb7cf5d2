package main

import (
	"errors"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/bettercompute/bettercompute/gen/contract"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// decodedMethods are those whose decoders together hold all that a table can say.
var decodedMethods = []string{"joinTokens.create", "pools.update", "events.list", "nodes.join", "inventory.import"}

// FuzzDecodeInputs holds generated decoders against an oracle that shares nothing
// with them: go-json-experiment/json and the tables, by package regexp.
func FuzzDecodeInputs(f *testing.F) {
	methods := methodsOf(f, specDir)
	for _, c := range contract.Cases() {
		if i := slices.Index(decodedMethods, c.Operation); i >= 0 && c.Pad == 0 {
			f.Add(uint8(i), string(c.Bytes()))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		m := methods[decodedMethods[int(which)%len(decodedMethods)]]
		want := oracleObject([]byte(body), m.input, limits{})
		for _, mode := range []strictjson.Mode{strictjson.All, strictjson.First} {
			in, err := contract.Decode(m.id(), body, mode)
			var found strictjson.Violations
			switch {
			case (err == nil) != (want == ""):
				t.Fatalf("the decoder says %v and the oracle %q", err, want)
			case err == nil:
				if problem := sameInput(in, m.input, []byte(body)); problem != "" {
					t.Fatal(problem)
				}
			case !errors.As(err, &found) || len(found) == 0 || mode == strictjson.First && len(found) != 1:
				t.Fatalf("the decoder says %#v", err)
			}
			for _, v := range found {
				if !slices.Contains(decoderRules, string(v.Rule)) || v.Message == "" || !utf8.ValidString(v.Field) {
					t.Fatalf("the violation %#v", v)
				}
			}
		}
	})
}

// oracleObject says why JSON is no object of a table, or "".
func oracleObject(body []byte, fields []*field, limit limits) string {
	if jsontext.Value(body).Kind() != '{' {
		return "is no object"
	}
	var says map[string]jsontext.Value
	if err := json.Unmarshal(body, &says); err != nil {
		return err.Error()
	}
	for name, value := range says {
		f := fieldNamed(fields, name)
		if f == nil {
			return name + " is unknown"
		}
		if problem := oracleValue(value, f, f.kind); problem != "" {
			return f.path + " " + problem
		}
	}
	for _, f := range fields {
		if _, given := says[f.name]; f.required && !given {
			return f.path + " is missing"
		}
	}
	if limit.atLeastOne && len(says) == 0 {
		return "is empty"
	}
	return ""
}

func oracleValue(value jsontext.Value, f *field, k kind) string {
	switch k {
	case kindObject:
		return oracleObject(value, f.fields, f.limit)
	case kindArray:
		var items []jsontext.Value
		if value.Kind() != '[' || json.Unmarshal(value, &items) != nil {
			return "is no array"
		}
		if len(items) < f.limit.minItems || len(items) > f.limit.maxItems {
			return "has too many or too few items"
		}
		for _, item := range items {
			if problem := oracleValue(item, f, f.element); problem != "" {
				return problem
			}
		}
		return ""
	case kindBoolean:
		if text := string(value); text != "true" && text != "false" {
			return "is no boolean"
		}
		return ""
	case kindInteger:
		if value.Kind() != '0' {
			return "is no number"
		}
		return oracleInteger(string(value), f.limit.min, f.limit.max)
	default:
		var text string
		if value.Kind() != '"' || json.Unmarshal(value, &text) != nil {
			return "is no string"
		}
		return oracleText(text, &f.limit)
	}
}

func oracleText(text string, limit *limits) string {
	switch {
	case strings.Contains(text, "\x00"):
		return "holds a NUL"
	case len(limit.enum) > 0 && !slices.Contains(limit.enum, text):
		return "is none of the list"
	case limit.maxChars > 0 && utf8.RuneCountInString(text) > limit.maxChars:
		return "is too long"
	case limit.pattern != nil && !goRegexp(limit.pattern.String()).MatchString(text):
		return "does not match"
	}
	return ""
}

var goRegexps sync.Map

func goRegexp(pattern string) *regexp.Regexp {
	compiled, ok := goRegexps.Load(pattern)
	if !ok {
		compiled, _ = goRegexps.LoadOrStore(pattern, regexp.MustCompile(pattern))
	}
	return compiled.(*regexp.Regexp)
}

// oracleInteger decides by rational numbers. An exponent of more than four
// digits is decided by its sign: no body here has ten thousand digits to make up for it.
func oracleInteger(text string, least, most int64) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	n, ok := new(big.Rat).SetString(mantissa)
	if !ok {
		return "is no number"
	}
	digits := strings.TrimLeft(strings.TrimLeft(exponent, "+-"), "0")
	switch {
	case n.Sign() == 0:
	case len(digits) > 4 && strings.HasPrefix(exponent, "-"):
		return "is no integer"
	case len(digits) > 4:
		return "is out of range"
	default:
		n, _ = n.SetString(text)
	}
	if !n.IsInt() {
		return "is no integer"
	}
	if n.Num().Cmp(big.NewInt(least)) < 0 || n.Num().Cmp(big.NewInt(most)) > 0 {
		return "is out of range"
	}
	return ""
}
