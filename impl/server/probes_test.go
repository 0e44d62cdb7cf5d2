package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen"
	"github.com/bettercompute/bettercompute/gen/problem"
)

// TestProbes_WhatIsServedBesideTheMethods holds health, readiness, metrics and
// documents, for everybody, by GET and HEAD.
func TestProbes_WhatIsServedBesideTheMethods(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		for path, want := range map[string]struct {
			kind string
			has  []byte
		}{
			"/healthz":          {"text/plain", []byte("ok\n")},
			"/readyz":           {"text/plain", []byte("ready\n")},
			"/metrics":          {"text/plain", []byte(`bc_build_info{version="test"} 1`)},
			"/openapi.json":     {"application/json", gen.OpenAPI},
			"/openapi-3.0.json": {"application/json", gen.OpenAPI30},
		} {
			a := s.get(t, path)
			if a.status != http.StatusOK || !strings.HasPrefix(a.header.Get("Content-Type"), want.kind) || !bytes.Contains(a.body, want.has) {
				t.Errorf("%s: %d %s", path, a.status, a.header.Get("Content-Type"))
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodHead, s.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			head := s.do(t, request)
			if head.status != http.StatusOK || len(head.body) != 0 || head.header.Get("Content-Type") != a.header.Get("Content-Type") {
				t.Errorf("HEAD %s: %d %v %s", path, head.status, head.header, head.body)
			}
		}
		var document struct{ OpenAPI string }
		if err := json.Unmarshal(s.get(t, "/openapi.json").body, &document); err != nil || !strings.HasPrefix(document.OpenAPI, "3.1") {
			t.Errorf("/openapi.json is version %q (error: %v)", document.OpenAPI, err)
		}
	})
}

// TestProbes_NotReady holds that a server whose database is not as it should
// be is alive, is not ready, and says no more than that.
func TestProbes_NotReady(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.exec(t, "DELETE FROM schema_migrations")
		r := s.get(t, "/readyz").refused(t, problem.Unavailable)
		if strings.Contains(r.Detail, "schema") || strings.Contains(r.Detail, "migrat") {
			t.Errorf("a stranger is told %q", r.Detail)
		}
		if after := s.get(t, "/readyz").header.Get("Retry-After"); after != "1" {
			t.Errorf("Retry-After is %q", after)
		}
		if a := s.get(t, "/healthz"); a.status != http.StatusOK {
			t.Errorf("health: %d %s", a.status, a.body)
		}
		if log := s.log.text(t); !strings.Contains(log, "not migrated") {
			t.Error("the log does not say why")
		}
	})
}

// TestProbes_Metrics holds that calls are counted by method and code, and that
// no label holds what a caller chose.
func TestProbes_Metrics(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		s.mint(t, s.key(t, "acme/odd-name-1", "tenant-admin"), lab())
		s.call(t, "", "joinTokens.create", lab()).refused(t, problem.Unauthenticated)
		s.get(t, "/odd-name-2").refused(t, problem.NotFound)
		for sample, want := range map[string]int{
			`bc_calls_total{code="",method="joinTokens.create"}`:                1,
			`bc_calls_total{code="UNAUTHENTICATED",method="joinTokens.create"}`: 1,
			`bc_calls_total{code="NOT_FOUND",method=""}`:                        1,
			`bc_call_seconds_count{method="joinTokens.create"}`:                 2,
		} {
			if n := s.metric(t, sample); n != want {
				t.Errorf("%s is %d, want %d", sample, n, want)
			}
		}
		if text := s.get(t, "/metrics").body; bytes.Contains(text, []byte("odd-name")) || bytes.Contains(text, []byte("acme")) {
			t.Error("a label holds what a caller chose")
		}
	})
}
