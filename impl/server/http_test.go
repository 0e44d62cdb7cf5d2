package server_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/server"
)

// TestHTTP_ContentType holds that a body is JSON in UTF-8, and says so.
func TestHTTP_ContentType(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		send := func(method string, change func(http.Header)) answer {
			request := s.request(t, s.admin, method, object{"tenantId": "acme", "poolId": "lab"})
			change(request.Header)
			return s.head(t, s.client, request)
		}
		for _, kind := range []string{
			"application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8", `application/json; charset="utf-8"`,
			"APPLICATION/JSON", "application/json; profile=x", " application/json ;",
		} {
			if a := send("pools.get", func(h http.Header) { h.Set("Content-Type", kind) }); a.status != http.StatusOK {
				t.Errorf("%q: %d %s", kind, a.status, a.body)
			}
		}
		for _, kind := range []string{
			"", "text/plain", "text/json", "application/xml", "application/problem+json", "application/jsonp", "application/x-www-form-urlencoded",
			"multipart/form-data; boundary=x", "application/json; charset=utf-16", "application/json; charset=latin1", "application/json; charset=",
			"application/json, text/plain", "json", "application/json; charset=utf-8; charset=utf-16", "*/*", "application/*", ";",
		} {
			for _, method := range []string{"pools.get", "joinTokens.create", "events.watch"} {
				send(method, func(h http.Header) { h.Set("Content-Type", kind) }).refused(t, problem.UnsupportedMediaType)
			}
		}
		send("pools.get", func(h http.Header) { h.Del("Content-Type") }).refused(t, problem.UnsupportedMediaType)
		for _, coding := range []string{"gzip", "identity", "br", "deflate, gzip"} {
			send("pools.get", func(h http.Header) { h.Set("Content-Encoding", coding) }).refused(t, problem.UnsupportedMediaType)
		}
		// What is packed and does not say so is no JSON.
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write([]byte(`{"tenantId":"acme"}`)); err != nil || w.Close() != nil {
			t.Fatal("gzip")
		}
		s.call(t, s.admin, "pools.list", packed.Bytes()).refused(t, problem.InvalidInput)
		// An answer is never packed, and its kind is not open to negotiation.
		a := send("pools.get", func(h http.Header) { h.Set("Accept", "text/html"); h.Set("Accept-Encoding", "gzip") })
		if a.header.Get("Content-Encoding") != "" || a.header.Get("Content-Type") != "application/json" || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("headers %v", a.header)
		}
	})
}

// TestHTTP_BodyLimit holds that a body of 64 KiB is read and one byte more is
// not, whether its length is announced or not.
func TestHTTP_BodyLimit(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		body := func(size int) []byte {
			text := `{"tenantId":"acme","poolId":"lab"}`
			return []byte(text + strings.Repeat(" ", size-len(text)))
		}
		for _, chunked := range []bool{false, true} {
			for size, fits := range map[int]bool{server.MaxBody: true, server.MaxBody + 1: false, 2 * server.MaxBody: false} {
				request := s.request(t, s.admin, "pools.get", body(size))
				if chunked {
					request.Body, request.ContentLength = io.NopCloser(struct{ io.Reader }{bytes.NewReader(body(size))}), -1
				}
				a := s.do(t, request)
				if fits && a.status != http.StatusOK {
					t.Errorf("%d bytes, chunked: %v: %d %s", size, chunked, a.status, a.body)
				}
				if !fits {
					a.refused(t, problem.PayloadTooLarge)
				}
			}
		}
		// Without a key nobody learns how large is too large.
		s.call(t, "", "pools.get", body(2*server.MaxBody)).refused(t, problem.Unauthenticated)
		// A body that breaks off is the caller's fault.
		request := s.request(t, s.admin, "pools.get", nil)
		request.Body, request.ContentLength = io.NopCloser(strings.NewReader(`{"tenantId":"ac`)), -1
		s.do(t, request).violates(t, "", "json")
	})
}

// TestHTTP_Paths holds that what is no path of ours is NOT_FOUND, also where
// it only looks like one.
func TestHTTP_Paths(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		for _, path := range []string{
			"/", "/api", "/api/compute", "/api/compute/", "/api/compute/joinTokens", "/api/compute/joinTokens/", "/api/compute/joinTokens/create/",
			"/api/compute//joinTokens/create", "/api/compute/joinTokens/../joinTokens/create", "/api/compute/./joinTokens/create",
			"/API/compute/joinTokens/create", "/api/compute/jointokens/create", "/api/compute/joinTokens%2Fcreate", "/api/compute/joinTokens/%63reate",
			"/api/compute/joinTokens/create%00", "/api/compute/joinTokens/create%20", "/api/compute/joinTokens.create", "//api/compute/joinTokens/create",
			"/healthz/", "/metrics/x", "/openapi.yaml", "/favicon.ico", "/debug/pprof/", "/admin.key", "/%ff",
		} {
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodHead} {
				request := s.request(t, s.admin, "joinTokens.list", object{})
				request.URL.Opaque, request.Method = "//"+request.URL.Host+path, method // as it stands
				a := s.do(t, request)
				if method == http.MethodHead && a.status == http.StatusNotFound && len(a.body) == 0 {
					continue
				}
				t.Run(method+" "+path, func(t *testing.T) { a.refused(t, problem.NotFound) })
			}
		}
		// A query changes nothing.
		request := s.request(t, s.admin, "sites.list", object{"tenantId": "acme"})
		request.URL.RawQuery = "tenantId=globex&limit=x"
		if a := s.do(t, request); a.status != http.StatusOK {
			t.Errorf("with a query: %d %s", a.status, a.body)
		}
	})
}

var verbs = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodTrace, "PROPFIND", "post",
}

// TestHTTP_Verbs holds that a path takes its own verb, and says which that is.
func TestHTTP_Verbs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		type target struct{ path, allow string }
		var targets []target
		for _, m := range api.Methods {
			targets = append(targets, target{m.Path, "POST"})
		}
		for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json", "/openapi-3.0.json"} {
			targets = append(targets, target{path, "GET, HEAD"})
		}
		for _, target := range targets {
			for _, verb := range verbs {
				if strings.Contains(target.allow, verb) {
					continue
				}
				for _, key := range []string{"", s.admin} {
					request := s.request(t, key, "", object{"tenantId": "acme"})
					request.URL.Path, request.Method = target.path, verb
					a := s.do(t, request)
					if verb != http.MethodHead {
						a.refused(t, problem.MethodNotAllowed)
					}
					if a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != target.allow {
						t.Errorf("%s %s: %d, Allow: %q", verb, target.path, a.status, a.header.Get("Allow"))
					}
				}
			}
		}
	})
}

// TestHTTP_RequestID holds that a caller's request id comes back where it is
// harmless, and that any other call gets one of ours.
func TestHTTP_RequestID(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		send := func(id string) string {
			request := s.request(t, "", "sites.list", object{"tenantId": "acme"})
			request.Header.Set("X-Request-Id", id)
			return s.do(t, request).refused(t, problem.Unauthenticated).RequestID
		}
		for _, id := range []string{"a", "01J-x.y:z/9_", strings.Repeat("a", 64)} {
			if got := send(id); got != id {
				t.Errorf("%q came back as %q", id, got)
			}
		}
		seen := map[string]bool{}
		for _, id := range []string{"", strings.Repeat("a", 65), "a b", "<script>", `"`, "ä", "a,b", "%0a"} {
			got := send(id)
			if !strings.HasPrefix(got, "req_") || len(got) != 30 || seen[got] {
				t.Errorf("%q became %q, seen before: %v", id, got, seen[got])
			}
			seen[got] = true
		}
		// It is on every answer, and in the log.
		if id := s.get(t, "/healthz").header.Get("X-Request-Id"); !strings.HasPrefix(id, "req_") {
			t.Errorf("a health check has %q", id)
		}
		if log := s.log.text(t); !strings.Contains(log, `"requestId":"01J-x.y:z/9_"`) {
			t.Error("the log does not have a caller's request id")
		}
	})
}
