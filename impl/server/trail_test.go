package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/store"
)

// decisionsOf are the recorded decisions of a request.
func (s *running) decisionsOf(t *testing.T, requestID string) (list []store.Decision) {
	t.Helper()
	all, more, err := s.db.Decisions(t.Context(), store.DecisionQuery{Limit: 10_000})
	if err != nil || more {
		t.Fatalf("more: %v, error: %v", more, err)
	}
	for _, d := range all {
		if d.RequestID == requestID {
			list = append(list, d)
		}
	}
	return list
}

// TestTrail_AMutationRecordsItsDecision holds what is recorded with a change:
// who, what, on what, by which policies, in which request; and nothing where
// nothing was committed.
func TestTrail_AMutationRecordsItsDecision(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.clock.Set(noon)
		s.withPools(t)
		ops, bot := s.key(t, "acme/ops", "tenant-admin"), s.key(t, "acme/bot", "pool-operator", "lab")
		n := 0
		recorded := func(key, method string, body object, want ...store.Decision) {
			t.Helper()
			n++
			request := s.request(t, key, method, body)
			request.Header.Set("X-Request-Id", fmt.Sprint("trail-", n))
			a := s.do(t, request)
			if a.status != http.StatusOK && len(want) > 0 {
				t.Errorf("%s: %d %s", method, a.status, a.body)
			}
			got := s.decisionsOf(t, fmt.Sprint("trail-", n))
			if len(got) != len(want) {
				t.Fatalf("%s (%d) recorded %+v", method, a.status, got)
			}
			for i, d := range got {
				if d.Principal != want[i].Principal || d.Action != want[i].Action || d.Resource != want[i].Resource || !slices.Equal(d.Policies, want[i].Policies) || !d.At.Equal(noon) {
					t.Errorf("%s recorded %+v, want %+v", method, d, want[i])
				}
			}
		}
		token := lab()
		recorded(ops, "joinTokens.create", token, store.Decision{
			Principal: "acme/ops", Action: "compute:join-tokens:create", Resource: "compute-pool/acme/lab", Policies: []string{"tenant-admin/own"},
		})
		recorded(ops, "joinTokens.create", token) // a replay
		recorded(bot, "joinTokens.create", lab(), store.Decision{
			Principal: "acme/bot", Action: "compute:join-tokens:create", Resource: "compute-pool/acme/lab", Policies: []string{"pool-operator/one-pool"},
		})
		recorded(ops, "sites.create", object{"tenantId": "acme", "siteId": "paris"}, store.Decision{
			Principal: "acme/ops", Action: "compute:sites:create", Resource: "tenant/acme", Policies: []string{"tenant-admin/own"},
		})
		recorded(s.admin, "pools.create", object{"tenantId": "acme", "poolId": "new", "siteId": "core", "siteTenantId": "platform", "policy": vouched},
			store.Decision{Principal: "platform/admin", Action: "compute:pools:create", Resource: "compute-site/platform/core", Policies: []string{"platform-admin/any"}},
			store.Decision{Principal: "platform/admin", Action: "compute:pools:vouch", Resource: "compute-site/platform/core", Policies: []string{"platform-admin/any"}},
		)
		// Refused, or failed behind the decision: nothing was changed, nothing is recorded.
		recorded(bot, "sites.create", object{"tenantId": "acme", "siteId": "rome"})
		recorded(ops, "joinTokens.create", lab().with(object{"poolId": "bare"}))
		recorded(ops, "joinTokens.create", lab().with(object{"expect": object{"serial": "None"}}))
		recorded(ops, "sites.create", object{"tenantId": "acme", "siteId": "paris", "custom": true})
		recorded(ops, "joinTokens.revoke", object{"tenantId": "acme", "poolId": "lab", "tokenId": "jt_" + x26})
		// Reads are only counted.
		before := s.metric(t, `bc_decisions_total{action="compute:pools:read",outcome="allow"}`)
		recorded(ops, "pools.get", object{"tenantId": "acme", "poolId": "lab"})
		if after := s.metric(t, `bc_decisions_total{action="compute:pools:read",outcome="allow"}`); after != before+1 {
			t.Errorf("a read counted %d decisions", after-before)
		}
	})
}

// TestTrail_DenialsAreAddedUp holds that refusals that are alike become one
// row, and that a caller who is refused cannot make us write for each call.
func TestTrail_DenialsAreAddedUp(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.clock.Set(noon)
		s.withPools(t)
		eve, globex := s.key(t, "acme/eve", "pool-auditor"), s.key(t, "globex/ops", "tenant-admin")
		refuse := func(n int) {
			for range n {
				s.call(t, eve, "joinTokens.create", lab()).refused(t, problem.PermissionDenied)
			}
		}
		refuse(30)
		s.call(t, globex, "joinTokens.create", lab()).refused(t, problem.NotFound)
		s.call(t, globex, "joinTokens.create", lab().with(object{"poolId": "missing"})).refused(t, problem.NotFound) // counts alike
		s.call(t, "", "joinTokens.create", lab()).refused(t, problem.Unauthenticated)                                // nobody
		if err := s.server.FlushDenials(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.clock.Advance(time.Hour)
		refuse(5)
		if err := s.stop(t); err != nil { // a stop writes what is left
			t.Fatal(err)
		}
		rows, more, err := s.db.Denials(t.Context(), 100)
		if err != nil || more {
			t.Fatalf("more: %v, error: %v", more, err)
		}
		want := []store.Denial{
			{Principal: "acme/eve", Action: "compute:join-tokens:create", Resource: "compute-pool/acme/lab", Reason: "pool-auditor", Count: 35, FirstAt: noon, LastAt: noon.Add(time.Hour)},
			{Principal: "globex/ops", Action: "compute:join-tokens:create", Resource: "compute-pool/*", Reason: "tenant-admin", Count: 2, FirstAt: noon, LastAt: noon},
		}
		if !slices.Equal(rows, want) {
			t.Errorf("denials %+v, want %+v", rows, want)
		}
	})
}

// TestTrail_ReadsWriteNothing holds that no read, and no refusal, changes a
// row, but for the count of denials.
func TestTrail_ReadsWriteNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops, globex := s.key(t, "acme/ops", "tenant-admin"), s.key(t, "globex/ops", "tenant-admin")
		token := s.mint(t, ops, lab()).JoinToken
		s.position(t)
		before := s.tables(t)
		for _, method := range []string{
			"sites.get", "sites.list", "pools.get", "pools.list", "apiKeys.list", "joinTokens.list", "events.list", "events.watch",
			"nodes.list", "joinRequests.list", "inventory.list",
		} {
			body := object{"tenantId": "acme"}
			if slices.Contains([]string{"pools.get", "joinTokens.list", "nodes.list", "joinRequests.list", "inventory.list"}, method) {
				body["poolId"] = "lab"
			}
			if method == "sites.get" {
				body["siteId"] = "berlin"
			}
			for range 3 {
				if a := s.head(t, s.client, s.request(t, ops, method, body)); a.status != http.StatusOK {
					t.Errorf("%s: %d %s", method, a.status, a.body)
				}
				s.head(t, s.client, s.request(t, globex, method, body))
				s.head(t, s.client, s.request(t, "", method, body))
				s.head(t, s.client, s.request(t, ops, method, "{"))
			}
		}
		s.call(t, globex, "joinTokens.revoke", object{"tenantId": "acme", "poolId": "lab", "tokenId": token.ID}).refused(t, problem.NotFound)
		for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json"} {
			s.get(t, path)
		}
		for table, rows := range s.tables(t) {
			if !ofTheServer(table) && !slices.Equal(rows, before[table]) {
				t.Errorf("%s became %v, and was %v", table, rows, before[table])
			}
		}
	})
}
