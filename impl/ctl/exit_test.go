package ctl

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

const invalid = `{"type":"t","title":"Invalid input","status":400,"code":"INVALID_INPUT","detail":"the input breaks the rules","requestId":"req_1","errors":[` +
	`{"field":"expect.mac","rule":"pattern","message":"must match ^x$"},{"field":"","rule":"at-least-one","message":"needs\u001b[31m one"}]}`

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer answer
		code   int
		stderr string
	}{
		{"done", ok(`{"site":{}}`), 0, ""},
		{"violations", problem(400, invalid), 1, "INVALID_INPUT: the input breaks the rules\n  expect.mac: must match ^x$ (pattern)\n  (body): needs\\x1b[31m one (at-least-one)\n  request id: req_1\n"},
		{"refused", problem(404, `{"code":"NOT_FOUND","detail":"there is no such site","requestId":"req_2"}`), 1, "NOT_FOUND: there is no such site\n  request id: req_2\n"},
		{"reason", problem(403, `{"code":"PERMISSION_DENIED","reason":"node_banned","detail":"d"}`), 1, "PERMISSION_DENIED (node_banned): d\n"},
		{"no key", problem(401, `{"code":"UNAUTHENTICATED","detail":"d"}`), 1, "UNAUTHENTICATED: d\n  no key was given: use --key-file or BCCTL_KEY\n"},
		{"unavailable is an answer", problem(503, `{"code":"UNAVAILABLE","detail":"d"}`), 1, "UNAVAILABLE: d\n"},
		{"a proxy's page", answer{502, "text/html", "<h1>Bad gateway</h1>", nil}, 1, "HTTP 502 Bad Gateway: Bad gateway\n"},
		{"a proxy's silence", answer{502, "", "", nil}, 1, "HTTP 502 Bad Gateway\n"},
		{"a page instead", answer{200, "text/html", "<p>Log in", nil}, 1, "HTTP 200 Unexpected answer: \"text/html\" instead of application/json: Log in\n"},
		{"a redirect", answer{302, "", "", map[string]string{"Location": "http://127.0.0.1:1/"}}, 1, "HTTP 302 Found: the server redirects, which is not followed; give the address that it redirects to\n"},
	} {
		code, stdout, stderr := on(serve(t, c.answer), "sites get --tenant-id a --site-id b")
		if code != c.code || stderr != c.stderr || (code != 0) != (stdout == "") {
			t.Errorf("%s: exit %d, %q %q", c.name, code, stdout, stderr)
		}
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(nil)
	closed.Close()
	dropping := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			connection.Close()
		}
	}))
	defer dropping.Close()
	stranger := httptest.NewUnstartedServer(nil)
	stranger.StartTLS()
	defer stranger.Close()
	plain := httptest.NewServer(nil)
	defer plain.Close()
	for name, server := range map[string]string{
		"closed port": closed.URL, "dropped connection": dropping.URL, "wrong certificate": stranger.URL,
		"no TLS": strings.Replace(plain.URL, "http:", "https:", 1), "no such name": "http://nothing.invalid",
	} {
		code, stdout, stderr := bench{}.run("sites", "list", "--tenant-id", "a", "--server", server)
		if code != 3 || stdout != "" || !strings.HasPrefix(stderr, "sites.list: no answer: ") || strings.Contains(stderr, "usage") {
			t.Errorf("%s: exit %d: %s", name, code, stderr)
		}
	}
	code, _, stderr := bench{}.run("join-tokens", "create", "--tenant-id", "a", "--pool-id", "b", "--ttl-seconds", "60", "--idempotency-key", "k-7", "--server", dropping.URL)
	if code != 3 || !strings.Contains(stderr, "may have taken effect; repeat it with --idempotency-key k-7") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, stderr := (bench{ctx: ctx}).run("sites", "list", "--tenant-id", "a"); code != 3 || !strings.Contains(stderr, "canceled") {
		t.Errorf("interrupted: exit %d: %s", code, stderr)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	s := serve(t, ok(`{}`))
	for words, want := range map[string]string{
		"":                            "name a command",
		"nonsense":                    `bcctl has no command "nonsense"`,
		"sites":                       "name a command of sites",
		"sites destroy":               `sites has no command "destroy"`,
		"sites lst":                   "did you mean list?",
		"completion tcsh":             `unknown command "tcsh" for "bcctl completion"`,
		"version now":                 "unexpected argument",
		"sites list --nope":           "unknown flag: --nope",
		"sites list --limit":          "--limit needs a value: 1-200; default 100",
		"sites list --tenant-id":      "--tenant-id needs a value: at most 128 characters",
		"sites list --key bck_ak_1.x": "a key is never an argument",
		"sites list --tenant-id a b":  `unexpected argument "b"`,
		"sites create --tenant-id a --site-id b --custom false": "a boolean flag takes its value after an equals sign",
		"sites list --tenant-id a -o xml":                       `"xml" is none of table, json, yaml`,
		"sites list --tenant-id a --server ftp://x":             "no http or https URL",
		"sites list --tenant-id a --server http://u:pw@x":       "holds credentials",
		"sites get --tenant-id a --site-id b --all":             "unknown flag: --all",
		"sites list --tenant-id a --key-file /does/not/exist":   "no such file",
	} {
		code, stdout, stderr := on(s, words)
		if code != 2 || stdout != "" || !strings.Contains(stderr, want) || !strings.Contains(stderr, "\nusage: bcctl") || !strings.Contains(stderr, "--help\n") {
			t.Errorf("%q: exit %d, %q %q", words, code, stdout, stderr)
		}
		if strings.Contains(stderr, "bck_ak_1") || strings.Contains(stderr, "pw") {
			t.Errorf("%q repeats a secret: %s", words, stderr)
		}
	}
	if len(s.paths) != 0 {
		t.Errorf("%d calls were sent", len(s.paths))
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	const inEnv, inFile = "bck_ak_e.eeeeeeee", "bck_ak_f.ffffffff"
	s := serve(t, problem(401, `{"code":"UNAUTHENTICATED","detail":"d"}`))
	call := func(key string, args ...string) (int, string, string) {
		b := bench{env: map[string]string{"BCCTL_SERVER": s.URL, "BCCTL_KEY": key}}
		code, stdout, stderr := b.run(append([]string{"sites", "list", "--tenant-id", "a"}, args...)...)
		if strings.Contains(stdout+stderr, "eeeeeeee") || strings.Contains(stdout+stderr, "ffffffff") {
			t.Errorf("the key is printed: %s%s", stdout, stderr)
		}
		if len(s.headers) == 0 {
			return code, stderr, ""
		}
		_, _, header := s.last()
		return code, stderr, header.Get("Authorization")
	}
	for _, text := range []string{inFile, inFile + "\n", inFile + "\r\n", "\n" + inFile + "\n\n"} {
		if code, stderr, sent := call(inEnv, "--key-file", write(t, 0o600, text)); code != 1 || sent != "Bearer "+inFile || strings.Contains(stderr, "warning") || strings.Contains(stderr, "no key") {
			t.Errorf("%q: exit %d, sent %q: %s", text, code, sent, stderr)
		}
	}
	if _, stderr, sent := call(inEnv + "\n"); sent != "Bearer "+inEnv || strings.Contains(stderr, "no key") {
		t.Errorf("from the environment: sent %q: %s", sent, stderr)
	}
	if _, _, sent := call(""); sent != "" {
		t.Errorf("without a key: sent %q", sent)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o644} {
		if code, stderr, sent := call("", "--key-file", write(t, mode, inFile)); code != 1 || sent != "Bearer "+inFile || !strings.HasPrefix(stderr, "warning: others than you may read or write the key file ") || !strings.Contains(stderr, "chmod 600 ") {
			t.Errorf("mode %o: exit %d, sent %q: %s", mode, code, sent, stderr)
		}
	}
	calls := len(s.paths)
	for text, want := range map[string]string{"": "is empty", " \n": "is empty", inFile + "\n" + inFile: "the key holds blanks", strings.Repeat("f", maxKey+1): "more than a key"} {
		if code, stderr, _ := call(inEnv, "--key-file", write(t, 0o600, text)); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%.20q: exit %d: %s", text, code, stderr)
		}
	}
	if code, stderr, _ := call("", "--key-file", t.TempDir()); code != 2 || !strings.Contains(stderr, "--key-file") {
		t.Errorf("a folder: exit %d: %s", code, stderr)
	}
	if code, stderr, _ := call("two words"); code != 2 || !strings.Contains(stderr, "BCCTL_KEY") {
		t.Errorf("a broken environment: exit %d: %s", code, stderr)
	}
	if len(s.paths) != calls {
		t.Error("a call was sent without its key")
	}
}

func TestServerOfFlagEnvironmentAndDefault(t *testing.T) {
	t.Parallel()
	a, b := serve(t, ok(`{"sites":[]}`)), serve(t, ok(`{"sites":[]}`))
	run := bench{env: map[string]string{"BCCTL_SERVER": a.URL}}
	if code, _, stderr := run.run("--server", b.URL+"/prefix/", "sites", "list", "--tenant-id", "a"); code != 0 || len(a.paths) != 0 {
		t.Errorf("the flag does not win: %s", stderr)
	}
	if path, _, header := b.last(); path != "POST /prefix/api/compute/sites/list" || !strings.HasPrefix(header.Get("User-Agent"), "bcctl/") {
		t.Errorf("%s %v", path, header)
	}
	if listener, err := net.Listen("tcp", "127.0.0.1:8080"); err == nil { // nobody else is there: the default is refused
		listener.Close()
		if code, _, stderr := (bench{}).run("sites", "list", "--tenant-id", "a"); code == 3 && !strings.Contains(stderr, "http://127.0.0.1:8080/") {
			t.Errorf("the default: exit %d: %s", code, stderr)
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// What was done and could not be told is no success, and a secret that went
// nowhere is a lost one.
func TestUnwrittenAnswers(t *testing.T) {
	t.Parallel()
	s := serve(t, ok(`{"joinToken":{"id":"jt_1"},"token":"bcjt_jt_1.secret"}`))
	b := bench{env: map[string]string{"BCCTL_SERVER": s.URL}, stdout: brokenWriter{}}
	code, _, stderr := b.run("join-tokens", "create", "--tenant-id", "a", "--pool-id", "b", "--ttl-seconds", "60")
	if code != 1 || !strings.Contains(stderr, "no space left") || !strings.Contains(stderr, "bcctl join-tokens revoke --tenant-id a --pool-id b --token-id jt_1") || strings.Contains(stderr, "secret\n") || strings.Contains(stderr, "bcjt_") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, _, stderr := b.run("sites", "get", "--tenant-id", "a", "--site-id", "b"); code != 1 || !strings.Contains(stderr, "no space left") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
