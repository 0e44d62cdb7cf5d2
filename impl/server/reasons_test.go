package server_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/client"
	"github.com/bettercompute/bettercompute/gen/problem"
)

// TestReasons_AreTold holds that a machine that is refused is told why, in the
// problem and by the SDK, and that nobody else is.
func TestReasons_AreTold(t *testing.T) {
	t.Parallel()
	eachTLS(t, func(t *testing.T, s *running) {
		ops, _, n := s.withNode(t)
		token, _ := s.bearerOf(t, ops, nil)
		again := n.reinstalled(t)
		a := s.join(t, token, again)
		a.refusedFor(t, problem.ReasonIdentityInUse)
		if !strings.Contains(string(a.body), `"code":"PERMISSION_DENIED","reason":"identity_in_use"`) {
			t.Errorf("the problem is %s", a.body)
		}
		sdk, err := client.New(s.url, client.WithKey(token), client.WithHTTP(s.client))
		if err != nil {
			t.Fatal(err)
		}
		var claims client.NodesJoinInputClaims
		text, err := json.Marshal(again.claims)
		if err != nil || json.Unmarshal(text, &claims) != nil {
			t.Fatal("claims")
		}
		_, err = sdk.Nodes.Join(t.Context(), client.NodesJoinInput{CSR: again.csr, Claims: claims})
		var refused *client.Error
		if !errors.As(err, &refused) || string(refused.Reason) != string(problem.ReasonIdentityInUse) || !strings.Contains(err.Error(), "identity_in_use") {
			t.Errorf("the SDK says %v", err)
		}

		as[api.NodesBanOutput](t, s.call(t, ops, "nodes.ban", n.id()))
		asNode, err := client.New(s.url, client.WithHTTP(n.client))
		if err != nil {
			t.Fatal(err)
		}
		_, err = asNode.Nodes.Report(t.Context(), client.NodesReportInput{})
		if !errors.As(err, &refused) || refused.Code != "PERMISSION_DENIED" || string(refused.Reason) != string(problem.ReasonNodeBanned) {
			t.Errorf("the SDK says %v", err)
		}

		denied := s.call(t, s.key(t, "acme/eve", "pool-auditor"), "nodes.ban", n.id())
		if denied.refused(t, problem.PermissionDenied); strings.Contains(string(denied.body), "reason") {
			t.Errorf("an operator is told %s", denied.body)
		}
	})
}
