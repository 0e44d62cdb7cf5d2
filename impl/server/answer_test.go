package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/problem"
)

// object is a JSON object of a test.
type object map[string]any

// with returns a copy of o with some members set; nil removes one.
func (o object) with(members object) object {
	out := object{}
	for name, value := range o {
		out[name] = value
	}
	for name, value := range members {
		if out[name] = value; value == nil {
			delete(out, name)
		}
	}
	return out
}

// An answer to a call.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// request builds the call of a method; body is sent as it is where it is a
// string or bytes, and as JSON otherwise.
func (s *running) request(t testing.TB, key, method string, body any) *http.Request {
	t.Helper()
	var reader io.Reader
	switch body := body.(type) {
	case string:
		reader = strings.NewReader(body)
	case []byte:
		reader = bytes.NewReader(body)
	default:
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+pathOf(method), reader)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	return request
}

// pathOf is the path of a method such as joinTokens.create.
func pathOf(method string) string {
	return "/api/compute/" + strings.ReplaceAll(method, ".", "/")
}

// call calls a method with a key; without one when it is empty.
func (s *running) call(t testing.TB, key, method string, body any) answer {
	t.Helper()
	return s.do(t, s.request(t, key, method, body))
}

// withoutSecret is the body without the one secret that it may hold: the
// bearer beside the record that a create made. The secret is recorded.
func (a answer) withoutSecret() []byte {
	var out struct{ Token, Key string }
	if a.status != http.StatusOK || json.Unmarshal(a.body, &out) != nil || out.Token+out.Key == "" {
		return a.body
	}
	left.secret(out.Token + out.Key)
	return bytes.Replace(a.body, []byte(out.Token+out.Key), nil, 1)
}

// as reads the body of an answer that is 200.
func as[T any](t testing.TB, a answer) (out T) {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("status %d, want 200: %s", a.status, a.body)
	}
	if kind := a.header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("Content-Type is %q", kind)
	}
	decoder := json.NewDecoder(bytes.NewReader(a.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&out); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	return out
}

// A refusal is an RFC 9457 problem.
type refusal struct {
	Type      string         `json:"type"`
	Title     string         `json:"title"`
	Status    int            `json:"status"`
	Code      problem.Code   `json:"code"`
	Reason    problem.Reason `json:"reason"`
	Detail    string         `json:"detail"`
	RequestID string         `json:"requestId"`
	Errors    []violation    `json:"errors"`
}

type violation struct{ Field, Rule, Message string }

// refused checks that an answer is a problem with this code, whole and in
// every member true, and returns it.
func (a answer) refused(t testing.TB, code problem.Code) (r refusal) {
	t.Helper()
	if kind := a.header.Get("Content-Type"); kind != "application/problem+json" {
		t.Fatalf("status %d with Content-Type %q, want %s: %s", a.status, kind, code, a.body)
	}
	decoder := json.NewDecoder(bytes.NewReader(a.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	if a.status != code.Status() || r.Status != a.status || r.Code != code {
		t.Errorf("status %d, want %s: %s", a.status, code, a.body)
	}
	if r.Type != "urn:bettercompute:problem:"+string(code) || r.Title != code.Title() || r.Detail == "" ||
		r.RequestID == "" || r.RequestID != a.header.Get("X-Request-Id") || len(r.Errors) > 0 != (code == problem.InvalidInput) ||
		r.Reason != "" && r.Reason.Code() != code {
		t.Errorf("the problem is not whole: %s", a.body)
	}
	for _, v := range r.Errors {
		if v.Rule == "" || v.Message == "" {
			t.Errorf("a violation says too little: %+v", v)
		}
	}
	if a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("Cache-Control is %q", a.header.Get("Cache-Control"))
	}
	return r
}

// refusedFor checks that an answer refuses a machine for this reason.
func (a answer) refusedFor(t testing.TB, reason problem.Reason) {
	t.Helper()
	if r := a.refused(t, reason.Code()); r.Reason != reason {
		t.Errorf("the reason is %q, want %s", r.Reason, reason)
	}
}

// violates checks that an answer is INVALID_INPUT for exactly this field and rule.
func (a answer) violates(t testing.TB, field, rule string) {
	t.Helper()
	r := a.refused(t, problem.InvalidInput)
	if len(r.Errors) != 1 || r.Errors[0].Field != field || r.Errors[0].Rule != rule {
		t.Errorf("violations are %+v, want %s at %q", r.Errors, rule, field)
	}
}
