package ctl

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/cli"
)

func TestJSONInput(t *testing.T) {
	t.Parallel()
	whole := `{"tenantId":"acme","siteId":"berlin","custom":true}`
	file := write(t, 0o600, whole)
	s := serve(t, ok(`{}`))
	for _, arg := range []string{whole, "@" + file, "-", "@-"} {
		b := bench{env: map[string]string{"BCCTL_SERVER": s.URL}, stdin: whole}
		if code, _, stderr := b.run("sites", "create", "--json", arg); code != 0 {
			t.Errorf("--json %s: exit %d: %s", arg, code, stderr)
		}
		if _, body, _ := s.last(); body != whole {
			t.Errorf("--json %s sends %s", arg, body)
		}
	}
	for _, c := range []struct{ name, json, flags, want string }{
		{"flags override members in their place", whole, "--site-id paris --custom=false", `{"tenantId":"acme","siteId":"paris","custom":false}`},
		{"flags add members", `{"siteId":"berlin"}`, "--tenant-id acme", `{"siteId":"berlin","tenantId":"acme"}`},
		{"spelling stays", `{ "tenantId" : "\u0061\/", "siteId":1.0e0,"x":[ 1 ,{"y":null}] }`, "", `{"tenantId":"\u0061\/","siteId":1.0e0,"x":[1,{"y":null}]}`},
		{"duplicates are the server's to refuse", `{"tenantId":"a","tenantId":"b","siteId":"c"}`, "", `{"tenantId":"a","tenantId":"b","siteId":"c"}`},
		{"a flag replaces duplicates", `{"tenantId":"a","siteId":"c","tenantId":"b"}`, "--tenant-id d", `{"tenantId":"d","siteId":"c"}`},
		{"null is the server's to refuse", `{"tenantId":null,"siteId":"c"}`, "", `{"tenantId":null,"siteId":"c"}`},
		{"unknown members, too", `{"tenantId":"a","siteId":"c","TenantID":1}`, "", `{"tenantId":"a","siteId":"c","TenantID":1}`},
	} {
		if code, _, stderr := on(s, "sites create "+c.flags, "--json", c.json); code != 0 {
			t.Errorf("%s: exit %d: %s", c.name, code, stderr)
		}
		if _, body, _ := s.last(); body != c.want {
			t.Errorf("%s: sends %s, want %s", c.name, body, c.want)
		}
	}
	on(s, "pools update --policy.erase waived --policy.kubernetes.platform-operated", "--json", `{"tenantId":"a","poolId":"b","policy":{"kubernetes":7,"attestor":"token"}}`)
	if _, body, _ := s.last(); body != `{"tenantId":"a","poolId":"b","policy":{"kubernetes":{"platformOperated":true},"attestor":"token","erase":"waived"}}` {
		t.Errorf("nested members: %s", body)
	}
	on(s, "join-tokens create", "--json", `{"tenantId":"a","poolId":"b","ttlSeconds":60,"idempotencyKey":"mine"}`)
	if _, body, _ := s.last(); body != `{"tenantId":"a","poolId":"b","ttlSeconds":60,"idempotencyKey":"mine"}` {
		t.Errorf("a key of one's own: %s", body)
	}
}

func TestJSONInputThatCannotBeSent(t *testing.T) {
	t.Parallel()
	s := serve(t, ok(`{}`))
	missing := t.TempDir() + "/none"
	large := write(t, 0o600, `"`+strings.Repeat("x", maxInput)+`"`)
	for arg, want := range map[string]string{
		"":                             "nothing",
		"  ":                           "nothing",
		"{":                            "no JSON",
		"{} {}":                        "no JSON",
		"tenantId=a":                   "no JSON",
		"[]":                           "an object",
		`"x"`:                          "an object",
		"null":                         "an object",
		"-":                            "nothing",
		"@" + missing:                  "no such file",
		"@" + large:                    "more than",
		strings.Repeat(`{"a":`, 20000): "no JSON",
		`{"tenantId":"a"}`:             "--site-id is required: at most 128 characters; matches ^[A-Za-z0-9]",
	} {
		code, _, stderr := on(s, "sites create", "--json", arg)
		if code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("--json %.40s: exit %d: %s", arg, code, stderr)
		}
	}
	if len(s.paths) != 0 {
		t.Errorf("%d calls were sent", len(s.paths))
	}
}

// Two calls make two idempotency keys.
func TestIdempotencyKeysDiffer(t *testing.T) {
	t.Parallel()
	s := serve(t, ok(`{"joinToken":{},"token":"x"}`))
	for range 2 {
		if code, _, stderr := on(s, "join-tokens create --tenant-id a --pool-id b --ttl-seconds 60"); code != 0 {
			t.Fatal(stderr)
		}
	}
	if s.bodies[0] == s.bodies[1] {
		t.Errorf("both send %s", s.bodies[0])
	}
}

// A secret field takes a file or standard input, and is never an argument.
func TestSecretFields(t *testing.T) {
	t.Parallel()
	groups := []cli.Group{{Name: "sites", Methods: []cli.Method{{
		Name: "create", ID: "sites.create", Retry: cli.RetryNatural,
		Fields: []cli.Field{{Path: "bmc.password", Flag: "bmc.password", Type: cli.String, Secret: true, Limits: "at most 20 characters"}},
	}}}}
	s := serve(t, ok(`{}`))
	b := bench{env: map[string]string{"BCCTL_SERVER": s.URL}, stdin: "hunter2\r\n", groups: groups}
	file := write(t, 0o600, "hunter3\n")
	for arg, want := range map[string]string{"@-": "hunter2", "@" + file: "hunter3"} {
		if code, _, stderr := b.run("sites", "create", "--bmc.password", arg); code != 0 {
			t.Errorf("%s: %s", arg, stderr)
		}
		if _, body, _ := s.last(); body != `{"bmc":{"password":"`+want+`"}}` {
			t.Errorf("%s sends %s", arg, body)
		}
	}
	code, _, stderr := b.run("sites", "create", "--bmc.password", "hunter4")
	if code != 2 || strings.Contains(stderr, "hunter4") || !strings.Contains(stderr, "@file") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// itemGroups take an array of objects.
var itemGroups = []cli.Group{{Name: "sites", Methods: []cli.Method{{
	Name: "create", ID: "sites.create", Retry: cli.RetryNatural, Long: "Takes things.", Example: `{"things":[{"name":"a"},{"name":"it's"}]}`,
	Fields: []cli.Field{
		{Path: "things", Flag: "things", Type: cli.Array, Element: cli.Object, Required: true, Limits: "1-9 items", Members: []cli.Field{
			{Path: "name", Type: cli.String, Required: true, Limits: "at most 4 characters"},
			{Path: "tails", Type: cli.Array, Element: cli.String},
		}},
		{Path: "locks", Flag: "locks", Type: cli.Array, Element: cli.Object, Secret: true, Members: []cli.Field{
			{Path: "code", Type: cli.String, Secret: true},
		}},
	},
}}}}

// The flag of an array of objects takes one of them each time, as JSON.
func TestItemsThatAreObjects(t *testing.T) {
	t.Parallel()
	s := serve(t, ok(`{}`))
	lock := write(t, 0o600, `{"code":"hunter2"}`)
	b := bench{env: map[string]string{"BCCTL_SERVER": s.URL}, groups: itemGroups}
	if code, _, stderr := b.run("sites", "create", "--things", `{ "name": "a" }`, "--things", `{"name":"b","tails":["x"]}`, "--locks", "@"+lock); code != 0 {
		t.Fatal(stderr)
	}
	if _, body, _ := s.last(); body != `{"things":[{"name":"a"},{"name":"b","tails":["x"]}],"locks":[{"code":"hunter2"}]}` {
		t.Errorf("it sends %s", body)
	}
	for arg, want := range map[string]string{
		"":                 "no JSON object",
		"a":                "no JSON object",
		`{"name":"a"`:      "no JSON object",
		`{}{}`:             "no JSON object",
		`[{}]`:             "no object",
		`"a"`:              "no object",
		"null":             "no object",
		"{\"a\":\"\xff\"}": "not valid UTF-8",
	} {
		code, _, stderr := b.run("sites", "create", "--things", arg)
		if code != 2 || !strings.Contains(stderr, "--things") || !strings.Contains(stderr, want) || !strings.Contains(stderr, "1-9 items") {
			t.Errorf("--things %s: exit %d: %s", arg, code, stderr)
		}
	}
	broken := write(t, 0o600, `{"code":hunter2}`)
	for _, arg := range []string{`{"code":"hunter2"}`, "@" + broken} {
		if code, _, stderr := b.run("sites", "create", "--things", `{}`, "--locks", arg); code != 2 || strings.Contains(stderr, "hunter") {
			t.Errorf("--locks %s: exit %d: %s", arg, code, stderr)
		}
	}
	if len(s.paths) != 1 {
		t.Errorf("%d calls were sent", len(s.paths))
	}
}

// Its help says what the objects are made of.
func TestHelpOfItemsThatAreObjects(t *testing.T) {
	t.Parallel()
	_, stdout, _ := bench{groups: itemGroups}.run("sites", "create", "--help")
	for _, want := range []string{
		"--things json", "required; may be repeated; one JSON object each time; 1-9 items\n", " name: string; required; at most 4 characters\n",
		" tails: array of string\n", "--locks @file", `--things '{"name":"a"}'`, `--things '{"name":"it'\''s"}'`,
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the help lacks %q:\n%s", want, stdout)
		}
	}
}

func FuzzTree(f *testing.F) {
	for _, text := range []string{`{"a":[1,"\u0041",{}],"a":null}`, `[]`, `-1.5e3`, `{"":{"":{}}}`, ` "x" `, `{`, `[1,]`, `[1e700]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := parseJSON([]byte(text))
		if (err == nil) != json.Valid([]byte(text)) {
			t.Fatalf("%q: %v", text, err)
		}
		if err != nil {
			return
		}
		var want bytes.Buffer
		if err := json.Compact(&want, []byte(text)); err != nil || string(n.bytes()) != want.String() {
			t.Fatalf("%q is written as %q: %v", text, n.bytes(), err)
		}
	})
}

func TestMain(m *testing.M) {
	for _, name := range []string{"BCCTL_SERVER", "BCCTL_KEY"} {
		os.Unsetenv(name) // tests say what the environment holds
	}
	os.Exit(m.Run())
}
