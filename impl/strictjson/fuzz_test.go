package strictjson_test

import (
	"math/big"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// FuzzDecode holds the decoder of sample against a second opinion, which reads
// JSON with another library and applies the rules to values, not to text.
func FuzzDecode(f *testing.F) {
	for _, test := range refused {
		if len(test.body) < 1000 {
			f.Add(test.body)
		}
	}
	f.Add(`{"name":"a","title":"\ud83d\ude00é","count":1.5e1,"level":-0,"wide":-9223372036854775808,"on":true,"kind":"net"}`)
	f.Add(` {"part":{"serial":"","mac":"0"},"macs":["a","b"],"racks":[{"slot":48},{"slot":0e0}], "n\u0061me":"z"} `)
	f.Fuzz(func(t *testing.T, body string) {
		if hugeExponent.MatchString(body) {
			t.Skip("beyond the oracle")
		}
		got, err := decodeSample(body, strictjson.All)
		want, ok := opinion(body)
		if (err == nil) != ok {
			t.Fatalf("%q: got %v, the oracle says %t", body, err, ok)
		}
		if ok && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q:\n got %+v\nwant %+v", body, got, want)
		}
		found := violations(t, err)
		if len(found) > 64 {
			t.Fatalf("%q: %d violations", body, len(found))
		}
		refused := map[string]bool{}
		for i, v := range found {
			switch v.Rule {
			case strictjson.RuleUnknown, strictjson.RuleEncoding, strictjson.RuleDuplicate:
				// of a name, which may come again
			default:
				if v.Field != "" && refused[v.Field] {
					t.Fatalf("%q: %s is refused twice: %v", body, v.Field, found)
				}
				refused[v.Field] = true
			}
			if v.Rule == strictjson.RuleJSON && i != len(found)-1 {
				t.Fatalf("%q: the decode went on after malformed JSON: %v", body, found)
			}
			if !utf8.ValidString(v.Field) || strings.ContainsFunc(v.Field, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Fatalf("%q: field %q is not printable", body, v.Field)
			}
		}
		_, err = decodeSample(body, strictjson.First)
		if first := violations(t, err); (err == nil) != ok || !ok && (len(first) != 1 || first[0] != found[0]) {
			t.Fatalf("%q: first %v, all %v", body, first, found)
		}
	})
}

// hugeExponent matches numbers that math/big would write out in full.
var hugeExponent = regexp.MustCompile(`[eE][-+]?0*[0-9]{5,}`)

// opinion decodes body by other means. ok is false if any rule refuses it.
func opinion(body string) (in sample, ok bool) {
	type members map[string]jsontext.Value
	object := func(v jsontext.Value, known []string) (m members) {
		ok = ok && v.Kind() == '{' && json.Unmarshal(v, &m) == nil
		for name := range m {
			ok = ok && strings.Contains(","+strings.Join(known, ",")+",", ","+name+",") && !strings.Contains(name, ",")
		}
		return m
	}
	array := func(v jsontext.Value) (items []jsontext.Value) {
		ok = ok && v.Kind() == '[' && json.Unmarshal(v, &items) == nil
		return items
	}
	text := func(v jsontext.Value) (s string) {
		ok = ok && v.Kind() == '"' && json.Unmarshal(v, &s) == nil && !strings.Contains(s, "\x00")
		return s
	}
	id := func(v jsontext.Value) string {
		s := text(v)
		ok = ok && regexp.MustCompile(`\A[a-z0-9]{1,8}\z`).MatchString(s)
		return s
	}
	integer := func(v jsontext.Value, min, max int64) int64 {
		if ok = ok && v.Kind() == '0'; !ok {
			return 0
		}
		n, whole := exactly(string(v))
		ok = whole && n.Cmp(big.NewInt(min)) >= 0 && n.Cmp(big.NewInt(max)) <= 0
		return n.Int64()
	}
	ok = jsontext.Value(body).IsValid() // one value, UTF-8, no duplicate names
	in.Count = 7
	top := object(jsontext.Value(body), sampleNames)
	if _, has := top["name"]; !has {
		return in, false
	}
	for name, v := range top {
		switch name {
		case "name":
			in.Name = id(v)
		case "title":
			in.Title = strictjson.Some(text(v))
		case "count":
			in.Count = integer(v, 1, 10000)
		case "level":
			in.Level = integer(v, -5, 5)
		case "wide":
			in.Wide = integer(v, -1<<63, 1<<63-1)
		case "on":
			in.On = v.Kind() == 't'
			ok = ok && (in.On || v.Kind() == 'f')
		case "kind":
			in.Kind = text(v)
			ok = ok && (in.Kind == "disk" || in.Kind == "net")
		case "part":
			m := object(v, partNames)
			ok = ok && len(m) > 0
			in.Part.Set = true
			if v, has := m["serial"]; has {
				in.Part.Value.Serial = text(v)
			}
			if v, has := m["mac"]; has {
				in.Part.Value.MAC = id(v)
			}
		case "macs":
			for _, v := range array(v) {
				in.MACs = append(in.MACs, id(v))
			}
			ok = ok && len(in.MACs) >= 1 && len(in.MACs) <= 3
		case "racks":
			for _, v := range array(v) {
				in.Racks = append(in.Racks, rack{integer(object(v, rackNames)["slot"], 0, 48)})
			}
		}
	}
	return in, ok
}

// exactly returns the value of a JSON number if it is whole.
func exactly(number string) (n *big.Int, whole bool) {
	r, _ := new(big.Rat).SetString(number)
	return r.Num(), r.IsInt()
}

// FuzzInteger holds Integer against math/big.
func FuzzInteger(f *testing.F) {
	for _, s := range []string{"0", "-0", "1", "-1", "1.0", "1.5", "1e3", "10E-1", "0.001e+3", "00", "01", "1.", ".5", "+1", "1e", "-",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551617",
		"1.0000000000000000001", "1e400", "1e-400", "123456789012345678", "1234567890123456789", "12345678901234567890e-1",
		"0.00000000000000000009e20", " 7 ", `"8"`, "null", "1e19", "1e18", "0e9999", "100000000000000000000000e-22"} {
		f.Add(s, int64(-1<<63), int64(1<<63-1))
		f.Add(s, int64(1), int64(10000))
	}
	isNumber := regexp.MustCompile(`\A-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?\z`)
	f.Fuzz(func(t *testing.T, s string, min, max int64) {
		if hugeExponent.MatchString(s) {
			t.Skip("beyond the oracle")
		}
		inArray := strictjson.NewDecoder("["+s+"]", strictjson.First)
		var got int64
		for more := inArray.OpenArray(); more; more = inArray.NextItem() {
			got = inArray.Integer(min, max)
		}
		rule := firstRule(t, inArray.End())
		s = strings.Trim(s, " \t\r\n")
		if !isNumber.MatchString(s) {
			if rule == "" && s != "" && !strings.Contains(s, ",") {
				t.Fatalf("%q is accepted as %d", s, got)
			}
			return
		}
		n, whole := exactly(s)
		var want strictjson.Rule
		switch {
		case !whole:
			want = strictjson.RuleInteger
		case n.Cmp(big.NewInt(min)) < 0 || n.Cmp(big.NewInt(max)) > 0:
			want = strictjson.RuleRange
		}
		if rule != want || want == "" && got != n.Int64() || want != "" && got != 0 {
			t.Fatalf("%q in %d to %d: got %d, %q; want %v, %q", s, min, max, got, rule, n, want)
		}
		alone := strictjson.NewDecoder(s, strictjson.First)
		if again := alone.Integer(min, max); again != got || firstRule(t, alone.End()) != rule {
			t.Fatalf("%q is %d at the top, %d in an array", s, again, got)
		}
	})
}

func firstRule(t *testing.T, err error) strictjson.Rule {
	t.Helper()
	if found := violations(t, err); len(found) > 0 {
		return found[0].Rule
	}
	return ""
}
