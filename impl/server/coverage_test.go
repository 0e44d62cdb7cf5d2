package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/bettercompute/bettercompute/gen"
	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
)

// unguarded are operations that need no right, each with its reason. The list
// only shrinks: a name that is not needed fails the test.
var unguarded = map[string]string{}

// An operation is one of the OpenAPI document, with the examples of its page.
type operation struct {
	id, path, action  string
	request, response json.RawMessage // the examples; response is empty for a stream
}

// operations reads the document that is served, in its order.
func operations(t testing.TB) (list []operation) {
	t.Helper()
	type content map[string]struct{ Example json.RawMessage }
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Action      string `json:"x-action"`
			RequestBody struct{ Content content }
			Responses   map[string]struct{ Content content }
		}
	}
	if err := json.Unmarshal(gen.OpenAPI, &document); err != nil {
		t.Fatal(err)
	}
	for path, methods := range document.Paths {
		for verb, op := range methods {
			if verb != "post" {
				t.Errorf("%s takes %s", path, verb)
			}
			list = append(list, operation{
				id: op.OperationID, path: path, action: op.Action,
				request:  op.RequestBody.Content["application/json"].Example,
				response: op.Responses["200"].Content["application/json"].Example,
			})
		}
	}
	slices.SortFunc(list, func(a, b operation) int { return bytes.Compare([]byte(a.path), []byte(b.path)) })
	if len(list) != len(api.Methods) {
		t.Fatalf("the document has %d operations and the server %d", len(list), len(api.Methods))
	}
	return list
}

// without are calls that lack something: what, and the key.
func (s *running) without(t *testing.T, op operation) map[string]string {
	t.Helper()
	revoked := s.apiKey(t, "acme/old", "tenant-admin")
	s.revokeKey(t, "acme", revoked.APIKey.ID)
	keys := map[string]string{
		"no bearer":             "",
		"a malformed one":       "bck_ak_" + x26 + ".nonsense",
		"an unknown one":        forged("bck_", "ak_"+x26),
		"a revoked one":         *revoked.Key,
		"a foreign admin":       s.key(t, "globex/ops", "tenant-admin"),
		"a foreign pool's":      s.key(t, "globex/bot", "pool-operator", "lab"),
		"one without the right": s.key(t, "acme/eve", "pool-auditor"),
	}
	if slices.Contains([]string{"compute:pools:read", "compute:join-tokens:read", "compute:events:read"}, op.action) {
		// Every role may read in its pool; this one has another.
		keys["one without the right"] = s.key(t, "acme/bot", "pool-auditor", "yard")
	}
	return keys
}

// TestCoverage_EveryOperationNeedsARight calls every operation of the document
// with the example of its page and without the right to it.
func TestCoverage_EveryOperationNeedsARight(t *testing.T) {
	t.Parallel()
	hidden := map[string]bool{}
	for _, m := range api.Methods {
		hidden[m.Path] = m.Hidden
	}
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		before := s.tables(t)
		served := map[string]bool{} // operations that answered without a right
		for _, op := range operations(t) {
			for what, key := range s.without(t, op) {
				request := s.request(t, key, "", []byte(op.request))
				request.URL.Path = op.path
				a := s.do(t, request)
				if a.status == http.StatusOK {
					served[op.id] = true
				}
				if _, ok := unguarded[op.id]; ok {
					continue
				}
				want := problem.Unauthenticated
				switch what {
				case "one without the right":
					want = problem.PermissionDenied
				case "a foreign admin", "a foreign pool's":
					if want = problem.PermissionDenied; hidden[op.path] {
						want = problem.NotFound
					}
				}
				t.Run(op.id+" with "+what, func(t *testing.T) { a.refused(t, want) })
			}
		}
		for _, id := range surplus(unguarded, served) {
			t.Errorf("unguarded has %s, which is gone or needs a right by now: take it out", id)
		}
		for table, rows := range s.tables(t) {
			if !slices.Contains([]string{"api_keys", "events", "event_position", "leases", "decisions", "denials"}, table) && !slices.Equal(rows, before[table]) {
				t.Errorf("%s was changed: %v, before: %v", table, rows, before[table])
			}
		}
	})
}

// surplus are the names of a list that no operation needs to be on.
func surplus(list map[string]string, served map[string]bool) (names []string) {
	for id := range list {
		if !served[id] {
			names = append(names, id)
		}
	}
	return names
}

// TestCoverage_TheListOnlyShrinks holds that a name stays on the list only as
// long as its operation is there and answers without a right.
func TestCoverage_TheListOnlyShrinks(t *testing.T) {
	t.Parallel()
	served := map[string]bool{"nodesJoin": true}
	if names := surplus(map[string]string{"nodesJoin": "its bearer decides"}, served); len(names) != 0 {
		t.Errorf("surplus: %v", names)
	}
	if names := surplus(map[string]string{"nodesJoin": "", "nodesGone": "", "sitesCreate": ""}, served); len(names) != 2 {
		t.Errorf("surplus: %v", names)
	}
}
