package strictjson_test

import (
	"math"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/strictjson"
)

func TestMessages(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"name":"a","count":0}`:               "count: must be 1-10000 (range)",
		`{"name":"a","level":9}`:               "level: must be -5 to 5 (range)",
		`{"name":"a","wide":1e19}`:             "wide: must be a 64-bit number (range)",
		`{"name":"a","count":1.5}`:             "count: must be a whole number (integer)",
		`{"name":"a","kind":"s3cret"}`:         "kind: must be one of disk, net (enum)",
		`{"NAME":"a","name":"b"}`:              "NAME: is not a known field; did you mean name (unknown)",
		`{"name":"a","x":1}`:                   "x: is not a known field (unknown)",
		`{"name":"a","macs":[]}`:               "macs: must have 1-3 items (items)",
		`{"name":"a","part":{}}`:               "part: must have at least one of its fields (at-least-one)",
		`{"name":"a"`:                          "malformed JSON: the body ends too early (json)",
		`{"name":s3cret}`:                      "malformed JSON at byte 8 (json)",
		`{}`:                                   "name: is required (required)",
		`{"a":1,"b":1,"name":"?"}`:             "a: is not a known field (unknown); b: is not a known field (unknown); name: must match ^[a-z0-9]{1,8}$ (pattern)",
		`{"a":1,"b":1,"c":1,"d":1,"name":"?"}`: "a: is not a known field (unknown); b: is not a known field (unknown); c: is not a known field (unknown); and 2 more",
	} {
		_, err := decodeSample(body, strictjson.All)
		if err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", body, err, want)
		}
	}
}

func TestItemBounds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		min, max int
		want     string
	}{
		{0, 1, "must have at most 1 items (items)"},
		{3, math.MaxInt, "must have at least 3 items (items)"},
		{3, 4, "must have 3-4 items (items)"},
		{2, 2, "later (length)"},
	} {
		d := strictjson.NewDecoder(`["a","b"]`, strictjson.All)
		for more := d.OpenArray(); more; more = d.NextItem() {
			_ = d.String()
		}
		d.Items(test.min, test.max)
		d.Fail(strictjson.RuleLength, "later")
		if err := d.End(); err == nil || err.Error() != test.want {
			t.Errorf("%d to %d: got %v, want %s", test.min, test.max, err, test.want)
		}
	}
}

func TestUnknownNamesAreCutAndCleaned(t *testing.T) {
	t.Parallel()
	token := "bcjt_jt_0123456789abcdefghjkmnpqrs." + strings.Repeat("S", 49)
	for name, want := range map[string]string{
		token:                     "bcjt_jt_0123456789abcdefghjkmnpq…",
		strings.Repeat("n", 64):   strings.Repeat("n", 64),
		strings.Repeat("n", 65):   strings.Repeat("n", 32) + "…",
		strings.Repeat("é", 64):   strings.Repeat("é", 64),
		strings.Repeat("é", 65):   strings.Repeat("é", 32) + "…",
		`\u001b[31m`:              "\uFFFD[31m",
		"a\x7fb":                  "a\uFFFDb",
		"\u202Eevil":              "\uFFFDevil",
		`line\nbreak`:             "line\uFFFDbreak",
		`\u0061b`:                 "ab",
		strings.Repeat("\\t", 70): strings.Repeat("\uFFFD", 32) + "…",
	} {
		_, err := decodeSample(`{"name":"a","part":{"mac":"a","`+name+`":1}}`, strictjson.All)
		found := violations(t, err)
		if len(found) != 1 || found[0].Field != "part."+want || strings.Contains(err.Error(), "SSS") {
			t.Errorf("%q: %v", name, found)
		}
	}
}
