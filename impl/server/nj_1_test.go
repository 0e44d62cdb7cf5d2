package server_test

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/server"
	"github.com/bettercompute/bettercompute/impl/store"
)

// A bench is a server that does nothing but what it is handed: its log is that
// of one call after the other.
type bench struct {
	*server.Server
	log, told *evidenceFile
}

// bench makes a server on the database of s that does not run.
func (s *running) bench(t testing.TB) bench {
	t.Helper()
	log := left.open(t, "log")
	made, err := server.New(t.Context(), server.Config{
		Listen: "127.0.0.1:0", URL: s.dbURL, Data: t.TempDir(), SealKeys: sealKeys(t), Now: s.clock.Now,
		Log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: store.LevelTrace})),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := made.Close(); err != nil {
			t.Error(err)
		}
		log.close(t)
	})
	return bench{made, log, s.told}
}

// serve answers a call from an address, as if over TLS, and counts its statements.
func (b bench) serve(t testing.TB, address string, request *http.Request) (a answer, statements int) {
	t.Helper()
	const statement = `"msg":"statement"`
	before := strings.Count(b.log.text(t), statement)
	request.TLS, request.RemoteAddr = &tls.ConnectionState{}, net.JoinHostPort(address, "4711")
	recorder := httptest.NewRecorder()
	b.ServeHTTP(recorder, request)
	a = answer{recorder.Code, recorder.Header(), recorder.Body.Bytes()}
	if _, err := b.told.Write(a.withoutSecret()); err != nil {
		t.Fatal(err)
	}
	return a, strings.Count(b.log.text(t), statement) - before
}

// wrongAt is a bearer whose secret differs in one character, with the checksum
// of what it is now.
func wrongAt(token string, at int) string {
	body := []byte(token[:len(token)-6])
	at += bytes.IndexByte(body, '.') + 1
	if body[at]++; !strings.Contains(base62Characters, string(body[at])) {
		body[at] = '0'
	}
	wrong := string(body) + checksum(string(body))
	left.secret(wrong)
	return wrong
}

const (
	base62Characters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	lastOfSecret     = 42 // of its 43 random characters
)

// TestNJ_1_EveryBadTokenIsAnsweredAlike holds that a token that is malformed,
// unknown, wrong, revoked, expired or used up has one answer, to the last byte,
// and that what a guess is wrong in cannot be told by the number of statements;
// and that a typo costs none at all.
func TestNJ_1_EveryBadTokenIsAnsweredAlike(t *testing.T) {
	t.Parallel()
	eachTLS(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		good, _ := s.bearerOf(t, ops, nil)
		revoked, id := s.bearerOf(t, ops, nil)
		as[api.JoinTokensRevokeOutput](t, s.call(t, ops, "joinTokens.revoke", object{"tenantId": "acme", "poolId": "lab", "tokenId": id}))
		used, _ := s.bearerOf(t, ops, object{"maxUses": 1})
		s.admitted(t, used, newMachine(t, nil))
		expired, _ := s.bearerOf(t, ops, object{"ttlSeconds": 60})
		s.clock.Advance(time.Minute)
		typo := []byte(good)
		typo[len(typo)-20] ^= 1

		quiet, m := s.bench(t), newMachine(t, nil)
		var first, firstOnWire *answer
		for _, bad := range []struct {
			what, token string
			statements  int
		}{
			{"an unknown id", forged("bcjt_", "jt_"+strings.Repeat("0", 52)), 1},
			{"a wrong first character", wrongAt(good, 0), 1},
			{"a wrong last character", wrongAt(good, lastOfSecret), 1},
			{"a revoked one", revoked, 1},
			{"a wrong one that is revoked", wrongAt(revoked, lastOfSecret), 1},
			{"an expired one", expired, 2},
			{"one that is used up", used, 2},
			{"a typo", string(typo), 0},
			{"one cut off", good[:len(good)-1], 0},
			{"an API key", ops, 0},
			{"no id", forged("bcjt_", ""), 0},
			{"an id to inject", forged("bcjt_", "jt_' OR '1'='1"), 0},
			{"nothing like one", "x", 0},
			{"none", "", 0},
		} {
			t.Run(bad.what, func(t *testing.T) {
				send := func() *http.Request {
					request := s.request(t, bad.token, "nodes.join", m.body())
					request.Header.Set("X-Request-Id", "alike")
					return request
				}
				a, statements := quiet.serve(t, "192.0.2.7", send())
				if statements != bad.statements {
					t.Errorf("it costs %d statements, want %d", statements, bad.statements)
				}
				if r := a.refused(t, problem.Unauthenticated); r.Detail != "a valid join token is needed as bearer" {
					t.Errorf("it is told %q", r.Detail)
				}
				wire := s.do(t, send())
				if first == nil {
					first, firstOnWire = &a, &wire
				}
				sameAnswer(t, a, *first)
				sameAnswer(t, wire, *firstOnWire)
			})
		}
		if a, _ := quiet.serve(t, "192.0.2.7", s.request(t, good, "nodes.join", m.body())); a.status != http.StatusOK {
			t.Errorf("the good one: %d %s", a.status, a.body)
		}
		if !logged(s.log.text(t), `"method":"nodes.join","principal":"","status":401`) {
			t.Error("the log has no refused join")
		}
	})
}

// TestNJ_1_OfSeveralBearersNoneIsTaken holds that two tokens are none.
func TestNJ_1_OfSeveralBearersNoneIsTaken(t *testing.T) {
	t.Parallel()
	eachTLS(t, func(t *testing.T, s *running) {
		s.withPools(t)
		token, _ := s.bearerOf(t, s.key(t, "acme/ops", "tenant-admin"), nil)
		for _, other := range []string{token, "x", ""} {
			for _, bearers := range [][]string{{token, other}, {other, token}} {
				request := s.request(t, "", "nodes.join", newMachine(t, nil).body())
				for _, bearer := range bearers {
					request.Header.Add("Authorization", "Bearer "+bearer)
				}
				s.do(t, request).refused(t, problem.Unauthenticated)
			}
		}
		if n := s.count(t, "nodes"); n != 0 {
			t.Errorf("%d nodes", n)
		}
	})
}
