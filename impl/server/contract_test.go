package server_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/contract"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// beyondTheTable are the rules of a violation that no decoder finds.
var beyondTheTable = map[string]bool{
	problem.RulePlaceholder: true, problem.RuleUnsupported: true, problem.RuleOwner: true, problem.RuleGrant: true, problem.RuleCSR: true,
}

// beyond reports whether a violation is of a rule that no decoder knows. What
// stands in two machines of an import is one.
func beyond(c contract.Case, v violation) bool {
	return beyondTheTable[v.Rule] || c.Operation == "inventory.import" && strings.HasPrefix(v.Field, "machines[") &&
		slices.Contains([]string{problem.RuleDuplicate, problem.RuleAtLeastOne}, v.Rule)
}

// A shower shows what a method takes: a key that may do everything, a join
// token, or the certificate of a node.
type shower struct {
	*running
	token string
	node  *node
}

func (s *running) shower(t testing.TB) shower {
	t.Helper()
	token, _ := s.bearerOf(t, s.key(t, "acme/ops", "tenant-admin"), object{"maxUses": 10000})
	return shower{s, token, s.admitted(t, token, newMachine(t, nil))}
}

// as builds the call of a method and names the client that sends it.
func (s shower) as(t testing.TB, credential api.Credential, path string, body []byte) (*http.Client, *http.Request) {
	t.Helper()
	client, key := s.client, s.admin
	switch credential {
	case api.CredentialJoinToken:
		key = s.token
	case api.CredentialNodeCertificate:
		client, key = s.node.client, ""
	}
	request := s.request(t, key, "", body)
	request.URL.Path = path
	return client, request
}

// TestContract_OverHTTP sends every body of the corpus to a running server,
// with what its method takes, and holds the answer against it. What is refused
// never comes to a database, so one of them is enough for that.
func TestContract_OverHTTP(t *testing.T) {
	t.Parallel()
	credentials := map[string]api.Credential{}
	for _, m := range api.Methods {
		credentials[m.Path] = m.Credential
	}
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		s := startTLS(t, kind).withPools(t).shower(t)
		accepted, refused, operations := 0, 0, map[string]bool{}
		for _, c := range contract.Cases() {
			operations[c.Operation] = true
			if c.Accept {
				accepted++
			} else if refused++; kind != storetest.SQLite {
				continue
			}
			client, request := s.as(t, credentials[c.Path], c.Path, c.Bytes())
			a := s.head(t, client, request)
			if c.Accept {
				if acceptable(t, c, a); strings.HasSuffix(c.Name, "//example") && credentials[c.Path] != api.CredentialAPIKey && a.status != http.StatusOK {
					t.Errorf("%s: %d %s", c.Name, a.status, a.body)
				}
				continue
			}
			r := a.refused(t, problem.Code(c.Code))
			switch {
			case a.status != c.Status:
				t.Errorf("%s: status %d, want %d", c.Name, a.status, c.Status)
			case c.Rule == "" && len(r.Errors) > 0, c.Rule != "" && (len(r.Errors) != 1 || r.Errors[0].Field != c.Field || r.Errors[0].Rule != c.Rule):
				t.Errorf("%s: violations %+v, want %s at %q", c.Name, r.Errors, c.Rule, c.Field)
			}
		}
		if len(operations) != len(api.Methods) || accepted < 1000 || refused < 8000 {
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
			if !beyond(c, v) {
				t.Errorf("%s: refused for %+v", c.Name, v)
			}
		}
	default:
		t.Errorf("%s: %d %s", c.Name, a.status, a.body)
	}
}

// head is do for an answer that may be a stream: that is left at once.
func (s *running) head(t testing.TB, client *http.Client, request *http.Request) answer {
	t.Helper()
	ctx, leave := context.WithCancel(request.Context())
	defer leave()
	response, err := client.Do(request.WithContext(ctx))
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
