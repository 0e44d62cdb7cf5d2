package ctl

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/bettercompute/bettercompute/gen/cli"
	"github.com/bettercompute/bettercompute/gen/client"
)

// A raw server speaks HTTP and knows nothing of ours: it records what it is
// sent and answers one after the other; the last answer is for all further calls.
type raw struct {
	*httptest.Server
	mu      sync.Mutex
	paths   []string
	bodies  []string
	headers []http.Header
	answers []answer
}

type answer struct {
	status int
	media  string
	body   string
	header map[string]string
}

func ok(body string) answer { return answer{200, "application/json", body, nil} }

func problem(status int, body string) answer {
	return answer{status, "application/problem+json", body, nil}
}

func sse(body string) answer { return answer{200, "text/event-stream", body, nil} }

func serve(t *testing.T, answers ...answer) *raw {
	t.Helper()
	s := &raw{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		s.paths = append(s.paths, r.Method+" "+r.URL.Path)
		s.bodies = append(s.bodies, string(body))
		s.headers = append(s.headers, r.Header)
		a := s.answers[min(len(s.paths), len(s.answers))-1]
		s.mu.Unlock()
		for name, value := range a.header {
			w.Header().Set(name, value)
		}
		w.Header().Set("Content-Type", a.media)
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	}))
	t.Cleanup(s.Close)
	return s
}

// last is the last request.
func (s *raw) last() (path, body string, header http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.paths) - 1
	return s.paths[n], s.bodies[n], s.headers[n]
}

// A bench is how a command line is run in a test.
type bench struct {
	env    map[string]string
	stdin  string
	stdout io.Writer // instead of a buffer
	groups []cli.Group
	ctx    context.Context
}

func (b bench) run(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	p := &program{
		groups: cli.Commands, stdin: strings.NewReader(b.stdin), stdout: &out, stderr: &errs,
		getenv: func(name string) string { return b.env[name] },
		client: []client.Option{client.WithRetries(1, 0)},
	}
	if b.groups != nil {
		p.groups = b.groups
	}
	if b.stdout != nil {
		p.stdout = b.stdout
	}
	ctx := b.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	code = p.run(ctx, args)
	return code, out.String(), errs.String()
}

// on runs a command line, given as words, on a server.
func on(s *raw, words string, args ...string) (code int, stdout, stderr string) {
	return bench{env: map[string]string{"BCCTL_SERVER": s.URL}}.run(append(strings.Fields(words), args...)...)
}

func write(t *testing.T, mode os.FileMode, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	return name
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Errorf("%q is no JSON: %v", a, err)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Errorf("%q is no JSON: %v", b, err)
	}
	left, _ := json.Marshal(x)
	right, _ := json.Marshal(y)
	return bytes.Equal(left, right)
}

// golden compares with a file, and writes the file where UPDATE is set.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (UPDATE=1 writes it):\n%s", file, got)
	}
}
