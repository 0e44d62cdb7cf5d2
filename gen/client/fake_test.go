package client

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// A script answers one attempt after the other; the last step answers all further ones.
type script struct {
	steps    []func(*http.Request) (*http.Response, error)
	requests []*http.Request
	bodies   []string
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.requests = append(s.requests, r)
	s.bodies = append(s.bodies, string(body))
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return s.steps[min(len(s.requests), len(s.steps))-1](r)
}

// answers is a step with a status, a media type, a body and further headers.
func answers(status int, media, body string, headers ...string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{"Content-Type": {media}}
		for i := 0; i < len(headers); i += 2 {
			h.Set(headers[i], headers[i+1])
		}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
}

func problem(status int, code ErrorCode, headers ...string) func(*http.Request) (*http.Response, error) {
	return answers(status, problemMedia, `{"type":"about:blank","title":"T","status":1,"code":"`+string(code)+`","detail":"D","requestId":"req_1"}`, headers...)
}

func breaks(err error) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

func scripted(t *testing.T, s *script, opts ...Option) *Client {
	t.Helper()
	c, err := New("http://server.test", append([]Option{WithHTTP(&http.Client{Transport: s})}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const (
	site     = `{"siteId":"berlin","tenantId":"acme","custom":false,"createdAt":"2026-03-01T09:00:00Z","createdBy":"acme/ops"}`
	siteBody = `{"site":` + site + `}`
	token    = `{"id":"jt_1","tenantId":"acme","poolId":"lab","role":"node","maxUses":1,"uses":0,"pinned":false,"allowReclaim":false,"createdAt":"2026-03-01T09:00:00Z","createdBy":"acme/ops","expiresAt":"2026-03-01T10:00:00Z"}`
)
