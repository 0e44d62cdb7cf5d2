package seal_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/seal"
)

func parse(t testing.TB, text string) seal.Keys {
	t.Helper()
	keys, err := seal.ParseKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestKeys_File holds the form of a key file: one key a line, comments, blank
// lines and either end of line.
func TestKeys_File(t *testing.T) {
	t.Parallel()
	first, second := seal.NewKeyText(), seal.NewKeyText()
	if first == second || len(first) != 45 || !strings.HasSuffix(first, "\n") {
		t.Fatalf("fresh keys of %d and %d characters, alike: %v", len(first), len(second), first == second)
	}
	wrapped, err := seal.NewKeyset(parse(t, first))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"alone":           first,
		"no end of line":  strings.TrimSpace(first),
		"CRLF":            strings.ReplaceAll("# ours\n\n"+first, "\n", "\r\n"),
		"blanks around":   " \t" + strings.TrimSpace(first) + " \n",
		"comments":        "# since March\n" + first + "\n  # before\n" + second,
		"as the last one": second + first,
	} {
		if _, err := seal.Open(parse(t, text), wrapped); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKeys_Refused holds that a mistake is told by its line and its rule, and
// that nothing of the line is.
func TestKeys_Refused(t *testing.T) {
	t.Parallel()
	good := seal.NewKeyText()
	line := strings.TrimSpace(good)
	for name, c := range map[string]struct{ text, want string }{
		"empty":              {"", "no key is given"},
		"comments alone":     {"# a\n\n#b\n", "no key is given"},
		"prose":              {good + "correct horse battery staple\n", "line 2: a key must be in standard base64"},
		"two on a line":      {"\n" + line + " " + line, "line 2: a key must be in standard base64"},
		"comment behind":     {line + " # ours", "line 1: a key must be in standard base64"},
		"no padding":         {strings.TrimRight(line, "="), "line 1: a key must be in standard base64"},
		"URL base64":         {"-_" + line[2:], "line 1: a key must be in standard base64"},
		"stray bits":         {strings.Repeat("A", 42) + "B=", "line 1: a key must be in standard base64"},
		"31 bytes":           {base64.StdEncoding.EncodeToString(make([]byte, 31)), "line 1: a key must have 32 bytes"},
		"33 bytes":           {base64.StdEncoding.EncodeToString(make([]byte, 33)), "line 1: a key must have 32 bytes"},
		"hex":                {strings.Repeat("0123456789abcdef", 4), "line 1: a key must have 32 bytes"},
		"zeros":              {base64.StdEncoding.EncodeToString(make([]byte, 32)), "line 1: a key must be random"},
		"one byte":           {base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0x5a}, 32)), "line 1: a key must be random"},
		"twice":              {good + "\n" + good, "line 3: the key is that of line 1 again"},
		"a byte order mark":  {"\ufeff" + good, "line 1: a key must be in standard base64"},
		"CR within":          {line[:9] + "\r" + line[9:], "line 1: a key must be in standard base64"},
		"NUL":                {good + "\x00", "line 2: a key must be in standard base64"},
		"the first is wrong": {line[1:] + "\n" + good, "line 1: a key must be in standard base64"},
	} {
		keys, err := seal.ParseKeys(c.text)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
			continue
		}
		for _, word := range strings.Fields(c.text) {
			if len(word) > 6 && strings.Contains(err.Error(), word) {
				t.Errorf("%s: the error repeats the file: %v", name, err)
			}
		}
		if _, err := seal.NewKeyset(keys); err == nil {
			t.Errorf("%s: what was refused seals", name)
		}
	}
}

// TestKeys_PrintSealed holds that no way of printing shows a key, or a box.
func TestKeys_PrintSealed(t *testing.T) {
	t.Parallel()
	line := strings.TrimSpace(seal.NewKeyText())
	raw, err := base64.StdEncoding.DecodeString(line)
	if err != nil {
		t.Fatal(err)
	}
	keys := parse(t, line)
	wrapped, err := seal.NewKeyset(keys)
	if err != nil {
		t.Fatal(err)
	}
	box, err := seal.Open(keys, wrapped)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info(keys.String()+box.String(), "keys", keys, "pointer", &keys, "box", box, slog.Any("list", []any{keys, box}))
	}
	text, err := json.Marshal(map[string]any{"keys": keys, "pointer": &keys, "box": box})
	if err != nil {
		t.Fatal(err)
	}
	type holder struct {
		K seal.Keys
		k seal.Keys
		p *seal.Keys
		b *seal.Box
	}
	h, anyVerb := holder{keys, keys, &keys, box}, "%d %t %p %c %x %w"
	for _, printed := range []string{
		log.String(), string(text), fmt.Sprint(keys, box), fmt.Sprintf("%v %+v %#v %s %q", keys, keys, keys, box, box),
		fmt.Sprintf("%v %+v %#v %+v", h, h, h, &h), fmt.Sprintf("%v %+v %#v", &keys, []seal.Keys{keys}, map[string]any{"": box}),
		fmt.Sprintf(anyVerb, keys, keys, keys, box, h, h), fmt.Errorf("with %v", keys).Error(),
	} {
		for _, secret := range []string{line, string(raw), fmt.Sprintf("%x", raw), fmt.Sprintf("%d %d %d", raw[0], raw[1], raw[2])} {
			if strings.Contains(strings.ToLower(printed), strings.ToLower(secret)) {
				t.Errorf("printed: %s", printed)
			}
		}
	}
	for _, printed := range []string{fmt.Sprint(keys), fmt.Sprintf("%#v", keys), fmt.Sprintf("%+v", box), fmt.Sprintf("%x", box)} {
		if printed != "[sealed]" {
			t.Errorf("printed %q, want [sealed]", printed)
		}
	}
}

// FuzzParseKeys holds ParseKeys against a reading of the rules that is written another way.
func FuzzParseKeys(f *testing.F) {
	one, two := seal.NewKeyText(), seal.NewKeyText()
	for _, text := range []string{"", one, one + two, "# x\n\n" + one, one + one, strings.ReplaceAll(one, "\n", "\r\n"), one[1:], "AAAA\n" + two} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := seal.ParseKeys(text)
		if want := wellFormed(text); (err == nil) != want {
			t.Fatalf("%v, want well-formed %v", err, want)
		}
		if wrapped, sealErr := seal.NewKeyset(keys); (sealErr == nil) != (err == nil) {
			t.Fatalf("parsed: %v, sealed: %v", err, sealErr)
		} else if err == nil {
			if _, err := seal.Open(keys, wrapped); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func wellFormed(text string) bool {
	seen := map[string]bool{}
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") || line == "" {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(raw) != 32 || base64.StdEncoding.EncodeToString(raw) != line || seen[line] {
			return false
		}
		if strings.Trim(string(raw), string(raw[:1])) == "" {
			return false
		}
		seen[line] = true
	}
	return len(seen) > 0
}
