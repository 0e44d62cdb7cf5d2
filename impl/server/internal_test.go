package server_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/server"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// TestInternal_NothingIsTold holds that a fault of ours says nothing but its
// request id, under which the log has all of it.
func TestInternal_NothingIsTold(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		s.exec(t, "ALTER TABLE join_tokens RENAME TO gone")
		for method, body := range map[string]object{
			"joinTokens.create": lab(),
			"joinTokens.list":   {"tenantId": "acme", "poolId": "lab"},
			"joinTokens.revoke": {"tenantId": "acme", "poolId": "lab", "tokenId": "jt_" + x26},
		} {
			a := s.call(t, ops, method, body)
			r := a.refused(t, problem.Internal)
			if strings.Contains(string(a.body), "join_tokens") || strings.Contains(string(a.body), "SQL") {
				t.Errorf("a caller is told %s", a.body)
			}
			if !logged(s.log.text(t), `"msg":"call failed","requestId":"`+r.RequestID, "join_tokens") {
				t.Errorf("the log does not have what went wrong with %s", method)
			}
		}
		if a := s.call(t, ops, "pools.get", object{"tenantId": "acme", "poolId": "lab"}); a.status != http.StatusOK {
			t.Errorf("the rest: %d %s", a.status, a.body)
		}
	})
}

// TestInternal_APanicIsOne holds that a panic ends its own call alone.
func TestInternal_APanicIsOne(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		a := s.get(t, "/panic")
		r := a.refused(t, problem.Internal)
		if strings.Contains(string(a.body), "hunter") {
			t.Errorf("a caller is told %s", a.body)
		}
		if log := s.log.text(t); !logged(log, `"msg":"panic","requestId":"`+r.RequestID, "hunter", "internal_test.go") {
			t.Error("the log does not have the panic and its place")
		}
		// Once the answer has begun there is nothing to add.
		if a := s.get(t, "/late"); a.status != http.StatusOK || string(a.body) != "half" {
			t.Errorf("late: %d %s", a.status, a.body)
		}
		if a := s.get(t, "/healthz"); a.status != http.StatusOK {
			t.Errorf("health: %d", a.status)
		}
	}, func(c *setup) {
		c.adjust = func(made *server.Server) {
			made.Serve("/panic", func(http.ResponseWriter, *http.Request) { panic("hunter2") })
			made.Serve("/late", func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusOK)
				io.WriteString(w, "half")
				panic("hunter3")
			})
		}
	})
}

// logged reports whether one line of a log has all parts.
func logged(log string, parts ...string) bool {
	for line := range strings.Lines(log) {
		has := true
		for _, part := range parts {
			has = has && strings.Contains(line, part)
		}
		if has {
			return true
		}
	}
	return false
}

// TestUnavailable_WithoutADatabase holds that calls without a database may be
// tried again, and say when.
func TestUnavailable_WithoutADatabase(t *testing.T) {
	t.Parallel()
	eachTLS(t, func(t *testing.T, s *running) {
		_, token, n := s.withNode(t)
		if err := s.server.Close(); err != nil {
			t.Fatal(err)
		}
		for _, a := range []answer{
			s.call(t, s.admin, "joinTokens.create", lab()), s.call(t, s.admin, "events.watch", object{"tenantId": "acme"}), s.get(t, "/readyz"),
			s.join(t, token, newMachine(t, nil)), n.call(t, "nodes.report", object{}),
		} {
			if r := a.refused(t, problem.Unavailable); strings.Contains(r.Detail, "sql") {
				t.Errorf("a caller is told %q", r.Detail)
			}
			if after := a.header.Get("Retry-After"); after != "1" {
				t.Errorf("Retry-After is %q", after)
			}
		}
		if a := s.get(t, "/healthz"); a.status != http.StatusOK {
			t.Errorf("health: %d", a.status)
		}
	})
}

// TestStop_LetsCallsFinish holds that a call in flight is answered before the
// server ends, and that none is taken afterwards.
func TestStop_LetsCallsFinish(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		begun, finish := make(chan struct{}), make(chan struct{})
		s := start(t, kind, func(c *setup) {
			c.adjust = func(made *server.Server) {
				made.Serve("/slow", func(w http.ResponseWriter, _ *http.Request) {
					close(begun)
					<-finish
					io.WriteString(w, "done")
				})
			}
		})
		slow := s.request(t, "", "", nil)
		slow.URL.Path, slow.Method = "/slow", http.MethodGet
		answered := make(chan answer, 1)
		go func() {
			a, err := s.send(slow)
			if err != nil {
				t.Error(err)
			}
			answered <- a
		}()
		within(t, "the call to begin", begun)
		s.cancel()
		for refused := false; !refused; {
			connection, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if refused = err != nil; !refused {
				connection.Close()
			}
		}
		close(finish)
		if a := within(t, "the answer", answered); string(a.body) != "done" {
			t.Errorf("the call in flight: %d %s", a.status, a.body)
		}
		within(t, "the end", s.ended)
		if s.ran != nil {
			t.Errorf("the server ended with %v", s.ran)
		}
	})
}
