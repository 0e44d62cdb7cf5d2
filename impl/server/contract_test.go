package server_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/contract"
	"github.com/bettercompute/bettercompute/gen/problem"
)

// beyondTheTable are the rules of a violation that no decoder finds.
var beyondTheTable = map[string]bool{
	problem.RulePlaceholder: true, problem.RuleUnsupported: true, problem.RuleOwner: true, problem.RuleGrant: true,
}

// TestContract_OverHTTP sends every body of the corpus to a running server,
// with a key that may do everything, and holds the answer against it.
func TestContract_OverHTTP(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		accepted, refused, operations := 0, 0, map[string]bool{}
		for _, c := range contract.Cases() {
			request := s.request(t, s.admin, "", c.Bytes())
			request.URL.Path = c.Path
			a := s.head(t, request)
			operations[c.Operation] = true
			if c.Accept {
				accepted++
				acceptable(t, c, a)
				continue
			}
			refused++
			r := a.refused(t, problem.Code(c.Code))
			switch {
			case a.status != c.Status:
				t.Errorf("%s: status %d, want %d", c.Name, a.status, c.Status)
			case c.Rule == "" && len(r.Errors) > 0, c.Rule != "" && (len(r.Errors) != 1 || r.Errors[0].Field != c.Field || r.Errors[0].Rule != c.Rule):
				t.Errorf("%s: violations %+v, want %s at %q", c.Name, r.Errors, c.Rule, c.Field)
			}
		}
		if len(operations) != len(api.Methods) || accepted < 500 || refused < 4000 {
			t.Errorf("the corpus has %d bodies to accept and %d to refuse, for %d operations", accepted, refused, len(operations))
		}
	})
}

// acceptable holds that a body was not refused by its decoder: whatever the
// answer is, it comes from behind it.
func acceptable(t *testing.T, c contract.Case, a answer) {
	t.Helper()
	switch a.status {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusConflict:
		if a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %s", c.Name, a.body)
		}
	case http.StatusBadRequest:
		for _, v := range a.refused(t, problem.InvalidInput).Errors {
			if !beyondTheTable[v.Rule] {
				t.Errorf("%s: refused for %+v", c.Name, v)
			}
		}
	default:
		t.Errorf("%s: %d %s", c.Name, a.status, a.body)
	}
}

// head is do for an answer that may be a stream: that is left at once.
func (s *running) head(t testing.TB, request *http.Request) answer {
	t.Helper()
	ctx, leave := context.WithCancel(request.Context())
	defer leave()
	response, err := s.client.Do(request.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	a := answer{status: response.StatusCode, header: response.Header}
	if response.Header.Get("Content-Type") == "text/event-stream" {
		return a
	}
	if a.body, err = io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	if _, err := s.told.Write(a.withoutSecret()); err != nil {
		t.Fatal(err)
	}
	return a
}
