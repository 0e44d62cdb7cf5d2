package server_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/server"
)

// withPolicy puts a file into the operator's policy folder.
func withPolicy(t *testing.T, text string) func(*setup) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ops.cedar"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(s *setup) { s.config.PolicyDir = dir }
}

// TestPolicies_AnExtraPermitWorks holds an operator's policy end to end: what
// it allows works and is recorded under its name, and nothing else changes.
func TestPolicies_AnExtraPermitWorks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		eve, globex := s.key(t, "acme/eve", "pool-auditor"), s.key(t, "globex/eve", "pool-auditor")
		token := s.mint(t, s.key(t, "acme/ops", "tenant-admin"), lab()).JoinToken
		body := object{"tenantId": "acme", "poolId": "lab", "tokenId": token.ID}
		s.call(t, globex, "joinTokens.revoke", body).refused(t, problem.NotFound)
		s.call(t, eve, "joinTokens.create", lab()).refused(t, problem.PermissionDenied)
		if a := s.call(t, eve, "joinTokens.revoke", body); a.status != http.StatusOK {
			t.Fatalf("the permit does not work: %d %s", a.status, a.body)
		}
		if n := s.count(t, `decisions WHERE principal = 'acme/eve' AND CAST(policies AS TEXT) = '["auditors-revoke"]'`); n != 1 {
			t.Errorf("%d decisions are recorded under its name", n)
		}
	}, withPolicy(t, `@id("auditors-revoke")
permit (principal in Role::"pool-auditor", action == Action::"compute:join-tokens:revoke", resource)
when { resource.owner == principal.tenant };`))
}

// TestPolicies_NoKeyBeyondTheCaller holds that an operator who lets pool roles
// make keys has not let them make better ones (JT-41).
func TestPolicies_NoKeyBeyondTheCaller(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		bot := s.key(t, "acme/bot", "pool-operator", "lab")
		for _, role := range []string{"platform-admin", "tenant-admin", "pool-operator", "pool-auditor"} {
			for _, pool := range []any{nil, "lab", "yard"} {
				body := object{"tenantId": "acme", "identity": "new", "role": role, "idempotencyKey": "x"}.with(object{"poolId": pool})
				r := s.call(t, bot, "apiKeys.create", body).refused(t, problem.InvalidInput)
				if beyond := strings.Contains(fmt.Sprint(r.Errors), "{poolId grant"); beyond != (pool != "lab") {
					t.Errorf("%s for pool %v: %+v", role, pool, r.Errors)
				}
				s.call(t, bot, "apiKeys.create", body.with(object{"tenantId": "globex"})).refused(t, problem.InvalidInput)
			}
		}
		if n := s.count(t, "api_keys WHERE identity = 'new'"); n != 0 {
			t.Errorf("%d keys were made", n)
		}
	}, withPolicy(t, `permit (principal in Role::"pool-operator", action == Action::"compute:api-keys:create", resource);`))
}

// TestPolicies_AnErrorDenies holds that a policy that fails denies, says so in
// the log, and shows a stranger no more than any denial.
func TestPolicies_AnErrorDenies(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		s.call(t, ops, "joinTokens.create", lab()).refused(t, problem.PermissionDenied)
		s.call(t, s.admin, "joinTokens.list", object{"tenantId": "acme", "poolId": "lab"}).refused(t, problem.NotFound)
		if a := s.call(t, ops, "pools.get", object{"tenantId": "acme", "poolId": "lab"}); a.status != http.StatusOK {
			t.Errorf("elsewhere it does harm: %d %s", a.status, a.body)
		}
		if log := s.log.text(t); !strings.Contains(log, "a policy denies because it failed") || !strings.Contains(log, "overflows") {
			t.Error("the log does not say which policy failed")
		}
		if n := s.metric(t, `bc_decisions_total{action="compute:join-tokens:create",outcome="deny"}`); n != 1 {
			t.Errorf("%d denials are counted", n)
		}
	}, withPolicy(t, `@id("overflows") permit (principal, action in [Action::"compute:join-tokens:create", Action::"compute:join-tokens:read"], resource)
when { 9223372036854775807 + 1 > 0 };`))
}

// TestPolicies_ABadOneStopsTheStart holds that a server does not start with a
// policy that it cannot take, and leaves no database behind.
func TestPolicies_ABadOneStopsTheStart(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct{ text, says string }{
		"a forbid":        {"\nforbid (principal, action, resource);", "ops.cedar:2"},
		"a schema breach": {"\n\npermit (principal, action, resource) when { resource.colour == 1 };", "ops.cedar:3"},
		"no Cedar":        {"allow everything", "ops.cedar"},
	} {
		config := setup{config: server.Config{Listen: "127.0.0.1:0", Data: t.TempDir()}}
		config.config.URL = "sqlite:" + filepath.Join(config.config.Data, "x.db")
		withPolicy(t, c.text)(&config)
		_, err := server.New(t.Context(), config.config)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", what, err)
		}
		if files, _ := os.ReadDir(config.config.Data); len(files) != 0 {
			t.Errorf("%s: it left %v", what, files)
		}
	}
}
