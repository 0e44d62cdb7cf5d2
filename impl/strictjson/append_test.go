package strictjson_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// FuzzAppendString holds that encoding/json reads what was appended as what it
// would itself have written.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", `"\/`, "\x00\x1f\x7f\n\r\t", "<&>", "é😀\u2028", "\xff", "a\xc3", "\xed\xa0\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got, want string
		if err := json.Unmarshal(strictjson.AppendString(nil, s), &got); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		theirs, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(theirs, &want); err != nil || got != want {
			t.Errorf("%q became %q, and encoding/json makes it %q (%v)", s, got, want, err)
		}
	})
}

func TestAppendTime(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 10, 0, 0, 120000, time.FixedZone("CET", 3600))
	if got, want := string(strictjson.AppendTime(nil, at)), `"2026-03-01T09:00:00.00012Z"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestAppendRaw_OneLine(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{"{ \"a\":\n [1, 2] }": `x{"a":[1,2]}`, "": "xnull", "{": "xnull"} {
		if got := string(strictjson.AppendRaw([]byte("x"), json.RawMessage(raw))); got != want {
			t.Errorf("%q became %s, want %s", raw, got, want)
		}
	}
}

func TestAppendEnd(t *testing.T) {
	t.Parallel()
	for open, want := range map[string]string{"{": "{}", `{"a":1,`: `{"a":1}`} {
		if got := string(strictjson.AppendEnd([]byte(open))); got != want {
			t.Errorf("%s became %s, want %s", open, got, want)
		}
	}
}
