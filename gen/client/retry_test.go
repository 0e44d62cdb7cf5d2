package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var errReset = errors.New("connection reset by peer")

func TestRetries(t *testing.T) {
	t.Parallel()
	refusedDial := &net.OpError{Op: "dial", Err: errors.New("refused")}
	badCertificate := &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}
	ok := answers(200, "application/json", siteBody)
	for name, c := range map[string]struct {
		method string
		steps  steps
		calls  int
		done   bool
	}{
		"reset, then an answer":          {"sites.create", steps{breaks(errReset), ok}, 2, true},
		"refused connections":            {"sites.create", steps{breaks(refusedDial)}, 4, false},
		"a wrong certificate":            {"sites.get", steps{breaks(badCertificate)}, 1, false},
		"429, 503, 502, then an answer":  {"sites.create", steps{problem(429, "RATE_LIMITED"), problem(503, "UNAVAILABLE"), answers(502, "text/html", ""), ok}, 4, true},
		"503 for ever":                   {"sites.get", steps{problem(503, "UNAVAILABLE")}, 4, false},
		"500 of a read":                  {"sites.get", steps{problem(500, "INTERNAL"), ok}, 2, true},
		"500 of a mutation":              {"sites.create", steps{problem(500, "INTERNAL"), ok}, 1, false},
		"a refusal":                      {"sites.get", steps{problem(404, "NOT_FOUND"), ok}, 1, false},
		"a conflict":                     {"joinTokens.create", steps{problem(409, "CONFLICT"), ok}, 1, false},
		"no retries: reset":              {"test.none", steps{breaks(errReset), ok}, 1, false},
		"no retries: 503":                {"test.none", steps{problem(503, "UNAVAILABLE"), ok}, 1, false},
		"a body that breaks off":         {"sites.get", steps{brokenBody, ok}, 2, true},
		"a wait that is the caller's":    {"sites.get", steps{problem(503, "UNAVAILABLE", "Retry-After", "61"), ok}, 1, false},
		"a wait that is still the SDK's": {"sites.get", steps{problem(503, "UNAVAILABLE", "Retry-After", "60"), ok}, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: c.steps}
				m := methods[c.method]
				if m == nil {
					m = &method{id: c.method, send: methods["sites.create"].send}
				}
				_, err := scripted(t, s).exchange(t.Context(), m, []byte(`{"a":1}`))
				if (err == nil) != c.done || len(s.requests) != c.calls {
					t.Errorf("%d attempts, %v; want %d, done %v", len(s.requests), err, c.calls, c.done)
				}
				for _, body := range s.bodies {
					if body != `{"a":1}` {
						t.Errorf("an attempt sent %q", body)
					}
				}
				var none *UnansweredError
				var refused *Error
				if err != nil && errors.As(err, &none) == errors.As(err, &refused) {
					t.Errorf("neither answered nor unanswered, or both: %v", err)
				}
			})
		})
	}
}

func brokenBody(r *http.Request) (*http.Response, error) {
	response, err := answers(200, "application/json", "")(r)
	response.Body = io.NopCloser(io.MultiReader(strings.NewReader(`{"si`), errorReader{}))
	return response, err
}

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestBackoff(t *testing.T) {
	t.Parallel()
	r := retries{4, 100 * time.Millisecond}
	for attempt, most := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 3: 400 * time.Millisecond, 9: maxDelay, 1 << 40: maxDelay} {
		least, greatest := maxDelay, time.Duration(0)
		for range 2000 {
			wait := r.backoff(attempt)
			least, greatest = min(least, wait), max(greatest, wait)
		}
		if least < 0 || greatest > most || least > most/20 || greatest < most-most/20 {
			t.Errorf("attempt %d waits %v to %v, want 0 to %v", attempt, least, greatest, most)
		}
	}
	if (retries{4, 0}).backoff(3) != 0 {
		t.Error("no delay is a delay")
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: steps{problem(429, "RATE_LIMITED", "Retry-After", "7"), answers(200, "application/json", siteBody)}}
		start := time.Now()
		if _, err := scripted(t, s).Sites.Get(t.Context(), SitesGetInput{}); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited < 7*time.Second || waited > 7*time.Second+defaultDelay {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestContextIsFinal(t *testing.T) {
	t.Parallel()
	t.Run("cancelled while waiting", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			s := &script{steps: steps{problem(503, "UNAVAILABLE", "Retry-After", "30")}}
			time.AfterFunc(time.Second, cancel)
			start := time.Now()
			_, err := scripted(t, s).Sites.Get(ctx, SitesGetInput{})
			if !errors.Is(err, context.Canceled) || !IsCode(err, ErrorCodeUNAVAILABLE) || len(s.requests) != 1 || time.Since(start) != time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
	})
	t.Run("cancelled before", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s := &script{steps: steps{answers(200, "application/json", siteBody)}}
		if _, err := scripted(t, s).Sites.Get(ctx, SitesGetInput{}); !errors.Is(err, context.Canceled) || len(s.requests) > 1 {
			t.Errorf("%v, %d attempts", err, len(s.requests))
		}
	})
	t.Run("no wait beyond the deadline", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			s := &script{steps: steps{problem(503, "UNAVAILABLE", "Retry-After", "30")}}
			start := time.Now()
			if _, err := scripted(t, s).Sites.Get(ctx, SitesGetInput{}); !IsCode(err, ErrorCodeUNAVAILABLE) || time.Since(start) != 0 {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
	})
	t.Run("a slow attempt is cut and repeated", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			hangs := func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			s := &script{steps: steps{hangs, answers(200, "application/json", siteBody)}}
			start := time.Now()
			c := scripted(t, s, WithHTTP(&http.Client{Transport: s, Timeout: 3 * time.Second}))
			if _, err := c.Sites.Get(t.Context(), SitesGetInput{}); err != nil || time.Since(start) < 3*time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
	})
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := answers(200, "application/json", `{"joinToken":`+token+`,"token":"bcjt_x"}`)
		s := &script{steps: steps{breaks(errReset), problem(503, "UNAVAILABLE"), made, made}}
		c := scripted(t, s)
		in := JoinTokensCreateInput{TenantID: "acme", PoolID: "lab", TTLSeconds: 60}
		for range 2 {
			if _, err := c.JoinTokens.Create(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		var keys []string
		for _, body := range s.bodies {
			var got JoinTokensCreateInput
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatal(err)
			}
			keys = append(keys, got.IdempotencyKey)
		}
		if len(keys) != 4 || keys[0] != keys[1] || keys[1] != keys[2] || keys[2] == keys[3] {
			t.Errorf("keys %q: the same in one call, another in the next", keys)
		}
		if !regexp.MustCompile(`^[A-Za-z0-9._~:/+=-]{20,128}$`).MatchString(keys[0]) {
			t.Errorf("the key %q breaks its pattern, or is too short to be unique", keys[0])
		}
	})
}

func TestUnanswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dial := breaks(&net.OpError{Op: "dial", Err: errors.New("refused")})
		create := func(s steps) *UnansweredError {
			_, err := scripted(t, &script{steps: s}).JoinTokens.Create(t.Context(), JoinTokensCreateInput{IdempotencyKey: "k-1"})
			var none *UnansweredError
			if !errors.As(err, &none) || none.Operation != "joinTokens.create" || none.Attempts != 4 {
				t.Fatalf("%v", err)
			}
			return none
		}
		if err := create(steps{dial}); err.IdempotencyKey != "" || strings.Contains(err.Error(), "effect") {
			t.Errorf("it cannot have taken effect: %v", err)
		}
		if err := create(steps{breaks(errReset), dial}); err.IdempotencyKey != "k-1" || !strings.Contains(err.Error(), "k-1") || !strings.Contains(err.Error(), "may have taken effect") {
			t.Errorf("it may have taken effect: %v", err)
		}
	})
}

// JT-24 over real connections: the first answer is lost after the server acted.
func TestLostAnswerAfterADroppedConnection(t *testing.T) {
	t.Parallel()
	var made map[string]bool // idempotency keys; calls come one after the other
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in JoinTokensCreateInput
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		if made[in.IdempotencyKey] {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"joinToken":`+token+`}`)
			return
		}
		made = map[string]bool{in.IdempotencyKey: true}
		connection, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		connection.Close()
	}))
	defer server.Close()
	c, err := New(server.URL, WithRetries(2, 0))
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.JoinTokens.Create(t.Context(), JoinTokensCreateInput{TenantID: "acme", PoolID: "lab", TTLSeconds: 60})
	var lost *LostAnswerError
	if !errors.As(err, &lost) || lost.ID != "jt_1" || lost.Revoke != "joinTokens.revoke" || out == nil || out.JoinToken.ID != "jt_1" {
		t.Errorf("%+v %v", out, err)
	}
}

func TestTLSOfAStrangerIsFinal(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was called") }))
	server.Config.ErrorLog = nil
	server.StartTLS()
	defer server.Close()
	c, err := New(server.URL, WithKey(secretKey), WithRetries(5, time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Sites.Get(t.Context(), SitesGetInput{})
	var none *UnansweredError
	if !errors.As(err, &none) || none.Attempts != 1 {
		t.Errorf("%v", err)
	}
}
