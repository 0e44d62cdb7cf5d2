package strictjson_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// refused holds bodies of sample by the rule that refuses them, and everything
// that is reported in mode All.
var refused = []struct{ rule, body, want string }{
	{"json", `{`, "- json"},
	{"json", `{"name":"a"`, "- json"},
	{"json", `{"name":"a",}`, "- json"},
	{"json", `{,"name":"a"}`, "- json"},
	{"json", `{"name" "a"}`, "- json"},
	{"json", `{"name":"a" "on":true}`, "- json"},
	{"json", `{name:"a"}`, "- json"},
	{"json", `{'name':'a'}`, "- json"},
	{"json", `{"name`, "- json"},
	{"json", `{"name"`, "- json"},
	{"json", `{"name":`, "- json"},
	{"json", `{"name":"a`, "- json"},
	{"json", `{"name":"a\`, "- json"},
	{"json", `{"name":"\x"}`, "- json"},
	{"json", `{"name":"\u12g4"}`, "- json"},
	{"json", `{"name":"\u123`, "- json"},
	{"json", `{"name":"\ud800\uzzzz"}`, "- json"},
	{"json", `{"na\me":"a"}`, "- json"},
	{"json", "{\"name\":\"a\"\x00}", "- json"},
	{"json", "{\"name\":\"a\",\v\"on\":true}", "- json"},
	{"json", "{\u00A0\"name\":\"a\"}", "- json"},
	{"json", `{"name":"a"/**/}`, "- json"},
	{"json", `}`, "- json"},
	{"json", `{]`, "- json"},
	{"json", `{"macs":["a"}`, "- json"},
	{"json", `{"macs":["a",]}`, "- json"},
	{"json", `{"macs":[,"a"]}`, "- json"},
	{"json", `{"on":truth}`, "- json"},
	{"json", `{"on":True}`, "- json"},
	{"json", `{"on":nul}`, "- json"},
	{"json", `{"on":NaN}`, "- json"},
	{"json", `{"on":truefalse}`, "- json"},
	{"json", `{"count":01}`, "- json"},
	{"json", `{"count":-01}`, "- json"},
	{"json", `{"count":00}`, "- json"},
	{"json", `{"count":+1}`, "- json"},
	{"json", `{"count":.5}`, "- json"},
	{"json", `{"count":1.}`, "- json"},
	{"json", `{"count":1.e1}`, "- json"},
	{"json", `{"count":1e}`, "- json"},
	{"json", `{"count":1e+}`, "- json"},
	{"json", `{"count":-}`, "- json"},
	{"json", `{"count":--1}`, "- json"},
	{"json", `{"count":0x10}`, "count range, - json"},
	{"json", `{"count":1_000}`, "- json"},
	{"json", `{"count":Infinity}`, "- json"},
	{"json", `{"count":12`, "- json"},
	{"json", `{"name":01}`, "- json"},
	{"json", `{"name":[1,}`, "- json"},
	{"json", `{"count":0,"on":`, "count range, - json"},
	{"json", `{"x":[}`, "x unknown, - json"},

	{"empty", ``, "- empty"},
	{"empty", " \t\r\n", "- empty"},
	{"empty", "\xEF\xBB\xBF", "- encoding, - empty"},

	{"encoding", "\xEF\xBB\xBF" + `{"name":"a"}`, "- encoding"},
	{"encoding", "{\"title\":\"\xff\",\"name\":\"a\"}", "title encoding"},
	{"encoding", "{\"title\":\"\xc0\xaf\",\"name\":\"a\"}", "title encoding"},
	{"encoding", "{\"title\":\"\xed\xa0\x80\",\"name\":\"a\"}", "title encoding"},
	{"encoding", "{\"title\":\"\xe2\x82\",\"name\":\"a\"}", "title encoding"},
	{"encoding", `{"title":"\ud800","name":"a"}`, "title encoding"},
	{"encoding", `{"title":"\udc00","name":"a"}`, "title encoding"},
	{"encoding", `{"title":"\udc00\ud800","name":"a"}`, "title encoding"},
	{"encoding", `{"title":"\ud800\u0041","name":"a"}`, "title encoding"},
	{"encoding", `{"title":"\u0000","name":"a"}`, "title encoding"},
	{"encoding", "{\"title\":\"\x00\",\"name\":\"a\"}", "title encoding"},
	{"encoding", "{\"title\":\"a\nb\",\"name\":\"a\"}", "title encoding"},
	{"encoding", "{\"title\":\"a\x1f\",\"name\":\"a\"}", "title encoding"},
	{"encoding", "{\"name\":\"\xff\"}", "name encoding"},
	{"encoding", "{\"kind\":\"\xff\",\"name\":\"a\"}", "kind encoding"},
	{"encoding", "{\"name\":\"a\",\"t\xff\":{\"a\":1},\"on\":1}", "t\uFFFD encoding, on type"},
	{"encoding", `{"\u0000":1,"name":"a"}`, "\uFFFD encoding"},
	{"encoding", `{"na\ud800me":1,"name":"a"}`, "na\uFFFDme encoding"},
	{"encoding", "{\"name\n\":1,\"name\":\"a\"}", "name\uFFFD encoding"},

	{"trailing", `{"name":"a"}x`, "- trailing"},
	{"trailing", `{"name":"a"} {"name":"a"}`, "- trailing"},
	{"trailing", `{"name":"a"}}`, "- trailing"},
	{"trailing", `{"name":"a"},`, "- trailing"},
	{"trailing", "{\"name\":\"a\"}\x00", "- trailing"},
	{"trailing", "{\"name\":\"a\"}\u00A0", "- trailing"},
	{"trailing", `{"count":0}x`, "count range, name required, - trailing"},

	{"duplicate", `{"name":"a","name":"a"}`, "name duplicate"},
	{"duplicate", `{"name":"a","n\u0061me":"b"}`, "name duplicate"},
	{"duplicate", `{"name":"a","name":null}`, "name duplicate"},
	{"duplicate", `{"name":"a","name":"?","on":true}`, "name duplicate"},
	{"duplicate", `{"name":"a","count":1,"count":0}`, "count duplicate"},
	{"duplicate", `{"name":"a","part":{"mac":"a","mac":"b"}}`, "part.mac duplicate"},
	{"duplicate", `{"name":"a","part":{"mac":"a"},"part":{"x":1}}`, "part duplicate"},
	{"duplicate", `{"name":"a","part":{"mac":"a"},"part":{}}`, "part duplicate"},
	{"duplicate", `{"name":"a","macs":["a"],"macs":[]}`, "macs duplicate"},
	{"duplicate", `{"name":"?","name":"a"}`, "name pattern, name duplicate"},

	{"unknown", `{"name":"a","x":1}`, "x unknown"},
	{"unknown", `{"name":"a","x":{"name":[{}, [] ,"\u0000"]}}`, "x unknown"},
	{"unknown", `{"NAME":"a"}`, "NAME unknown, name required"},
	{"unknown", `{"name":"a","x":1,"x":1}`, "x unknown, x unknown"},
	{"unknown", "{\"x\":\"\xff\",\"name\":\"a\"}", "x unknown"},
	{"unknown", `{"name":"a","":1}`, `"" unknown`},
	{"unknown", `{"name":"a","name ":1}`, "name  unknown"},
	{"unknown", `{"name":"a","part":{"x":1}}`, "part.x unknown, part at-least-one"},
	{"unknown", `{"name":"a","racks":[{"slot":1},{"slot":1,"x":1}]}`, "racks[1].x unknown"},

	{"required", `{}`, "name required"},
	{"required", ` { } `, "name required"},
	{"required", `{"on":true}`, "name required"},
	{"required", `{"name":"a","racks":[{"slot":1},{}]}`, "racks[1].slot required"},

	{"null", `null`, "- null"},
	{"null", `{"name":null}`, "name null"},
	{"null", `{"name":"a","on":null,"count":null}`, "on null, count null"},
	{"null", `{"name":"a","part":null,"macs":null,"kind":null}`, "part null, macs null, kind null"},
	{"null", `{"name":"a","macs":[null]}`, "macs[0] null"},
	{"null", `{"name":"a","racks":[null]}`, "racks[0] null"},

	{"type", `[]`, "- type"},
	{"type", `[{"name":"a"}]`, "- type"},
	{"type", `"name"`, "- type"},
	{"type", `12`, "- type"},
	{"type", `true`, "- type"},
	{"type", `{"name":12}`, "name type"},
	{"type", `{"name":["a"],"on":"true"}`, "name type, on type"},
	{"type", `{"name":{"name":"a"},"on":0}`, "name type, on type"},
	{"type", `{"name":"a","count":"8"}`, "count type"},
	{"type", `{"name":"a","count":true}`, "count type"},
	{"type", `{"name":"a","part":[],"macs":{},"kind":false}`, "part type, macs type, kind type"},
	{"type", `{"name":"a","macs":["a",1,"b",[]]}`, "macs[1] type, macs[3] type, macs items"},

	{"pattern", `{"name":""}`, "name pattern"},
	{"pattern", `{"name":"a\n"}`, "name pattern"},
	{"pattern", `{"name":"é","part":{"mac":"?"}}`, "name pattern, part.mac pattern"},
	{"pattern", `{"name":"a","macs":["a","?"]}`, "macs[1] pattern"},

	{"range", `{"name":"a","count":0}`, "count range"},
	{"range", `{"name":"a","count":-0}`, "count range"},
	{"range", `{"name":"a","count":10001}`, "count range"},
	{"range", `{"name":"a","count":1e400}`, "count range"},
	{"range", `{"name":"a","count":-1e400}`, "count range"},
	{"range", `{"name":"a","count":18446744073709551617}`, "count range"},
	{"range", `{"name":"a","level":-6}`, "level range"},
	{"range", `{"name":"a","wide":9223372036854775808}`, "wide range"},
	{"range", `{"name":"a","wide":-9223372036854775809}`, "wide range"},
	{"range", `{"name":"a","wide":1e` + strings.Repeat("9", 10000) + `}`, "wide range"},

	{"integer", `{"name":"a","count":1.5}`, "count integer"},
	{"integer", `{"name":"a","count":1.0000000000000000001}`, "count integer"},
	{"integer", `{"name":"a","count":15e-1}`, "count integer"},
	{"integer", `{"name":"a","count":1e-1` + strings.Repeat("0", 10000) + `}`, "count integer"},
	{"integer", `{"name":"a","count":99999999999999999999.5}`, "count integer"},

	{"enum", `{"name":"a","kind":"tape"}`, "kind enum"},
	{"enum", `{"name":"a","kind":"Disk"}`, "kind enum"},
	{"enum", `{"name":"a","kind":""}`, "kind enum"},

	{"items", `{"name":"a","macs":[]}`, "macs items"},
	{"items", `{"name":"a","macs":[ ]}`, "macs items"},
	{"items", `{"name":"a","macs":["a","b","c","d"]}`, "macs items"},

	{"at-least-one", `{"name":"a","part":{}}`, "part at-least-one"},

	{"depth", strings.Repeat("[", 1<<16), "- depth"},
	{"depth", strings.Repeat(`{"a":`, 1<<14), "a depth"},
	{"depth", strings.Repeat("[", 17) + strings.Repeat("]", 17), "- depth"},
	{"depth", `{"name":` + strings.Repeat("[", 16) + strings.Repeat("]", 16) + `}`, "name depth"},
	{"depth", `{"on":1,"x":` + strings.Repeat(`{"":`, 16) + `1`, "on type, x depth"},
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, test := range refused {
		_, err := decodeSample(test.body, strictjson.All)
		found := violations(t, err)
		if got := brief(found); got != test.want {
			t.Errorf("%s: %.80q\n got %s\nwant %s", test.rule, test.body, got, test.want)
		}
		_, err = decodeSample(test.body, strictjson.First)
		if first := violations(t, err); len(first) != 1 || len(found) == 0 || first[0] != found[0] {
			t.Errorf("%s: %.80q: first is %v, all is %v", test.rule, test.body, first, found)
		}
	}
}

func TestEveryRuleHasACase(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{"length": true} // reported by generated code only, as pattern is
	for _, test := range refused {
		if !strings.Contains(test.want, test.rule) {
			t.Errorf("%.40q is no case of %s", test.body, test.rule)
		}
		seen[test.rule] = true
	}
	if len(seen) != 17 {
		t.Errorf("%d rules have cases", len(seen))
	}
}

func TestAccepted(t *testing.T) {
	t.Parallel()
	one := sample{Name: "a", Count: 1}
	for _, test := range []struct {
		body string
		want sample
	}{
		{`{"name":"a"}`, sample{Name: "a", Count: 7}},
		{" \r\n\t{ \"name\" : \"a\" , \"count\"\n:\t1 } \r\n\t", one},
		{`{"name":"a","count":1.0}`, one},
		{`{"name":"a","count":10E-1}`, one},
		{`{"name":"a","count":0.001e+3}`, one},
		{`{"name":"a","count":1` + strings.Repeat("0", 9000) + `e-9000}`, one},
		{`{"count":1e3,"name":"a"}`, sample{Name: "a", Count: 1000}},
		{`{"name":"a","level":-0,"on":false}`, sample{Name: "a", Count: 7}},
		{`{"name":"a","level":0e` + strings.Repeat("9", 10000) + `}`, sample{Name: "a", Count: 7}},
		{`{"name":"a","level":-5,"on":true}`, sample{Name: "a", Count: 7, Level: -5, On: true}},
		{`{"name":"a","wide":-9223372036854775808}`, sample{Name: "a", Count: 7, Wide: -1 << 63}},
		{`{"name":"a","wide":9223372036854775807}`, sample{Name: "a", Count: 7, Wide: 1<<63 - 1}},
		{`{"n\u0061me":"\u0061","kind":"d\u0069sk"}`, sample{Name: "a", Count: 7, Kind: "disk"}},
		{`{"name":"a","title":"\"\\\/\b\f\n\r\t\u20AC\ud83D\uDe00é😀` + "\x7f" + `"}`,
			sample{Name: "a", Count: 7, Title: strictjson.Some("\"\\/\b\f\n\r\t€😀é😀\x7f")}},
		{`{"name":"a","title":""}`, sample{Name: "a", Count: 7, Title: strictjson.Some("")}},
		{`{"part":{"mac":"b","serial":"\uFEFF"},"name":"a"}`,
			sample{Name: "a", Count: 7, Part: strictjson.Some(part{"\uFEFF", "b"})}},
		{`{"macs":["a", "b" ,"c"],"racks":[{"slot":1},{"slot":0}],"name":"a"}`,
			sample{Name: "a", Count: 7, MACs: []string{"a", "b", "c"}, Racks: []rack{{1}, {0}}}},
		{`{"racks":[],"name":"a"}`, sample{Name: "a", Count: 7}},
	} {
		for _, mode := range []strictjson.Mode{strictjson.All, strictjson.First} {
			got, err := decodeSample(test.body, mode)
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("%.80q: %v\n got %+v\nwant %+v", test.body, err, got, test.want)
			}
		}
	}
}

func TestDepthIsCountedFromTheBody(t *testing.T) {
	t.Parallel()
	var nest func(d *strictjson.Decoder)
	nest = func(d *strictjson.Decoder) {
		for more := d.OpenArray(); more; more = d.NextItem() {
			nest(d)
		}
	}
	for n, want := range map[int]string{16: "", 17: strings.Repeat("[0]", 16) + " depth"} {
		d := strictjson.NewDecoder(strings.Repeat("[", n)+strings.Repeat("]", n), strictjson.All)
		nest(&d)
		if got := brief(violations(t, d.End())); got != want {
			t.Errorf("%d levels: got %q, want %q", n, got, want)
		}
	}
}

func TestAtMost64Violations(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"{" + strings.Repeat(`"x":1,`, 10000) + `"name":"a"}`,
		"{" + strings.Repeat("\"\xff\":[1],", 10000) + `"name":"a"}`,
		`{"macs":[` + strings.Repeat(`"?",`, 10000) + `"a"]}`,
	} {
		_, err := decodeSample(body, strictjson.All)
		if n := len(violations(t, err)); n != 64 {
			t.Errorf("%.20q: %d violations", body, n)
		}
	}
}

func TestDecodeAllocatesNothing(t *testing.T) { // not parallel: AllocsPerRun forbids it
	var in joinTokensCreateInput
	if n := testing.AllocsPerRun(100, func() {
		in = joinTokensCreateInput{}
		if err := decodeCreate(createBody, strictjson.All, &in); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if len(createBody) != 340 || in.Expect.Value.MAC.Value != "0c:42:a1:9e:7b:20" || in.TTLSeconds != 3600 {
		t.Errorf("decoded %+v of %d bytes", in, len(createBody))
	}
}
