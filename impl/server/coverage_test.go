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

// A lack is a call that is not allowed: who sends it, with which key, and what
// becomes of it.
type lack struct {
	client *http.Client
	key    string
	want   problem.Code
}

// lacks are what calls can lack, by the credential of their method and what it is.
func (s shower) lacks(t *testing.T) map[api.Credential]map[string]lack {
	t.Helper()
	const no = problem.Unauthenticated
	revoked := s.apiKey(t, "acme/old", "tenant-admin")
	s.revokeKey(t, "acme", revoked.APIKey.ID)
	ops := s.key(t, "acme/ops", "tenant-admin")
	ended, id := s.bearerOf(t, ops, nil)
	banned, removed := s.confirmed(t, ended, newMachine(t, nil)), s.confirmed(t, ended, newMachine(t, nil))
	as[api.NodesBanOutput](t, s.call(t, ops, "nodes.ban", banned.id()))
	as[api.NodesRemoveOutput](t, s.call(t, ops, "nodes.remove", removed.id()))
	as[api.JoinTokensRevokeOutput](t, s.call(t, ops, "joinTokens.revoke", object{"tenantId": "acme", "poolId": "lab", "tokenId": id}))
	return map[api.Credential]map[string]lack{
		api.CredentialAPIKey: {
			"no bearer":                  {s.client, "", no},
			"a malformed one":            {s.client, "bck_ak_" + x26 + ".nonsense", no},
			"an unknown one":             {s.client, forged("bck_", "ak_"+x26), no},
			"a revoked one":              {s.client, *revoked.Key, no},
			"a join token":               {s.client, s.token, no},
			"a node's certificate":       {s.node.client, "", no},
			"a foreign admin":            {s.client, s.key(t, "globex/ops", "tenant-admin"), problem.NotFound},
			"a foreign pool's":           {s.client, s.key(t, "globex/bot", "pool-operator", "lab"), problem.NotFound},
			"one without the right":      {s.client, s.key(t, "acme/eve", "pool-auditor"), problem.PermissionDenied},
			"one of another pool's bots": {s.client, s.key(t, "acme/bot", "pool-auditor", "yard"), problem.PermissionDenied},
		},
		api.CredentialJoinToken: {
			"no bearer":            {s.client, "", no},
			"a malformed one":      {s.client, "bcjt_jt_" + x26 + ".nonsense", no},
			"an unknown one":       {s.client, forged("bcjt_", "jt_"+x26), no},
			"a revoked one":        {s.client, ended, no},
			"an admin's key":       {s.client, s.admin, no},
			"a node's certificate": {s.node.client, "", no},
		},
		api.CredentialNodeCertificate: {
			"no certificate": {s.client, "", no},
			"an admin's key": {s.client, s.admin, no},
			"a join token":   {s.client, s.token, no},
			"a foreign one":  {s.showing(t, selfSigned(t)), "", no},
			"a removed one":  {removed.client, "", no},
			"a banned one":   {banned.client, "", problem.PermissionDenied},
		},
	}
}

// everybodyReads are the actions that every role has in its own pool.
var everybodyReads = []string{
	"compute:pools:read", "compute:join-tokens:read", "compute:events:read", "compute:nodes:read", "compute:inventory:read",
}

// TestCoverage_EveryOperationNeedsARight calls every operation of the document
// with the example of its page and without the right to it.
func TestCoverage_EveryOperationNeedsARight(t *testing.T) {
	t.Parallel()
	methods := map[string]*api.Method{}
	for _, m := range api.Methods {
		methods[m.Path] = m
	}
	eachTLS(t, func(t *testing.T, running *running) {
		s := running.withPools(t).shower(t)
		lacks := s.lacks(t)
		before := s.tables(t)
		served := map[string]bool{} // operations that answered without a right
		for _, op := range operations(t) {
			m := methods[op.path]
			for what, lack := range lacks[m.Credential] {
				if what == "one without the right" && slices.Contains(everybodyReads, op.action) {
					continue
				}
				request := s.request(t, lack.key, "", []byte(op.request))
				request.URL.Path = op.path
				a := s.by(t, lack.client, request)
				if a.status == http.StatusOK {
					served[op.id] = true
				}
				if _, ok := unguarded[op.id]; ok {
					continue
				}
				if lack.want == problem.NotFound && !m.Hidden {
					lack.want = problem.PermissionDenied
				}
				t.Run(op.id+" with "+what, func(t *testing.T) { a.refused(t, lack.want) })
			}
		}
		for _, id := range surplus(unguarded, served) {
			t.Errorf("unguarded has %s, which is gone or needs a right by now: take it out", id)
		}
		for table, rows := range s.tables(t) {
			if !ofTheServer(table) && table != "events" && table != "event_position" && !slices.Equal(rows, before[table]) {
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
