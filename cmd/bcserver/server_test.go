package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/problem"
)

// A server is a bcserver that serves.
type server struct {
	*process
	url    string
	data   string // its folder
	db     string // URL of its database
	client *http.Client
}

// serve starts a server on a database, with a data folder of its own.
func serve(t testing.TB, db string, args ...string) *server {
	t.Helper()
	s := launchServer(t, setting{}, t.TempDir(), db, args...)
	s.ready(t)
	return s
}

// launchServer starts one and does not wait until it serves.
func launchServer(t testing.TB, with setting, data, db string, args ...string) *server {
	t.Helper()
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--data", data, "--db", db}, args...)
	return &server{process: launch(t, with, args...), data: data, db: db}
}

// ready waits until the server says where it listens.
func (s *server) ready(t testing.TB) {
	t.Helper()
	s.url = s.await(t, s.stdout, `(?m)^listening on (https?://\S+)$`)[1]
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}
	t.Cleanup(s.client.CloseIdleConnections)
}

// address is host:port.
func (s *server) address() string { return s.url[strings.LastIndex(s.url, "/")+1:] }

// admin returns the key that the first start left in the data folder.
func (s *server) admin(t testing.TB) string { return readKey(t, s.data) }

func readKey(t testing.TB, data string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(data, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(text), "\n")
}

// object is a JSON object.
type object = map[string]any

// An answer to a call.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// try calls a method such as joinTokens.create. An error means that there was
// no whole answer.
func (s *server) try(ctx context.Context, key, method string, in object) (answer, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+pathOf(method), bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	return readAnswer(response)
}

func readAnswer(response *http.Response) (answer, error) {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, body}, err
}

func pathOf(method string) string { return "/api/compute/" + strings.ReplaceAll(method, ".", "/") }

// call calls a method that must be answered.
func (s *server) call(t testing.TB, key, method string, in object) answer {
	t.Helper()
	a, err := s.try(t.Context(), key, method, in)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// get fetches a path that is no method.
func (s *server) get(t testing.TB, path string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	a, err := readAnswer(response)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// ok reads an answer that is 200.
func ok[T any](t testing.TB, a answer) (out T) {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("status %d, want 200: %s", a.status, a.body)
	}
	if err := json.Unmarshal(a.body, &out); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	return out
}

// refused checks that an answer is a problem with this code.
func (a answer) refused(t testing.TB, code problem.Code) {
	t.Helper()
	var p struct {
		Code      problem.Code
		Status    int
		RequestID string
	}
	if a.header.Get("Content-Type") != "application/problem+json" || json.Unmarshal(a.body, &p) != nil {
		t.Errorf("status %d is no problem+json, want %s: %s", a.status, code, a.body)
		return
	}
	if p.Code != code || p.Status != code.Status() || a.status != p.Status || p.RequestID == "" {
		t.Errorf("status %d, want %s: %s", a.status, code, a.body)
	}
}

// A minted join token, as create answers it.
type minted struct {
	JoinToken json.RawMessage `json:"joinToken"`
	Token     string          `json:"token"`
}

// id is the id of the record.
func (m minted) id(t testing.TB) string {
	t.Helper()
	var record struct{ ID string }
	if err := json.Unmarshal(m.JoinToken, &record); err != nil || record.ID == "" {
		t.Fatalf("the record has no id: %s", m.JoinToken)
	}
	return record.ID
}

// withLab creates the site acme/berlin and the pool acme/lab, with the
// platform's admin key, and returns a key of acme/ops, who is tenant-admin.
func withLab(t testing.TB, s *server, admin string) (ops string) {
	t.Helper()
	ok[object](t, s.call(t, admin, "sites.create", object{"tenantId": "acme", "siteId": "berlin"}))
	ok[object](t, s.call(t, admin, "pools.create", object{"tenantId": "acme", "poolId": "lab", "siteId": "berlin", "siteTenantId": "acme"}))
	return newKey(t, s, admin, "ops", "tenant-admin")
}

// newKey makes a key for an identity of acme.
func newKey(t testing.TB, s *server, admin, identity, role string) string {
	t.Helper()
	made := ok[struct{ Key string }](t, s.call(t, admin, "apiKeys.create", object{
		"tenantId": "acme", "identity": identity, "role": role, "idempotencyKey": identity + "-" + role,
	}))
	if made.Key == "" {
		t.Fatal("apiKeys.create answered no key")
	}
	return made.Key
}

// mint is the input of joinTokens.create for acme/lab.
func mint(idempotencyKey string) object {
	return object{"tenantId": "acme", "poolId": "lab", "ttlSeconds": 3600, "idempotencyKey": idempotencyKey}
}
