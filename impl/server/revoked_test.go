package server_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/server"
)

// TestRevoked_AHalfSentCallDoesNotOutliveItsKey begins a call, revokes its key
// while the body is awaited, and then sends the rest.
func TestRevoked_AHalfSentCallDoesNotOutliveItsKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		key := s.key(t, "acme/eve", "tenant-admin")
		body := `{"tenantId": "acme", "identity": "heir", "role": "tenant-admin", "idempotencyKey": "heir"}`
		host := strings.TrimPrefix(s.url, "http://")
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST /api/compute/apiKeys/create HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", host, key, len(body))
		in := bufio.NewReader(conn)
		if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") { // sent once the caller is known and the body is wanted
			t.Fatalf("%q %v", line, err)
		}
		in.ReadString('\n')
		id, _, _ := strings.Cut(strings.TrimPrefix(key, "bck_"), ".")
		as[api.APIKeysRevokeOutput](t, s.call(t, s.admin, "apiKeys.revoke", object{"tenantId": "acme", "keyId": id}))
		fmt.Fprint(conn, body)
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("the call of a revoked key is answered %s", response.Status)
		}
		if n := s.count(t, "api_keys WHERE identity = 'heir'"); n != 0 {
			t.Errorf("a revoked key made %d keys", n)
		}
	}, func(s *setup) { s.adjust = func(server *server.Server) { server.SetBodyTimeout(0) } })
}

// TestRevoked_NobodyTakesAwayWhatTheyMayNotHandOn holds that an administrator
// of the tenant platform does not end the keys of the platform's own.
func TestRevoked_NobodyTakesAwayWhatTheyMayNotHandOn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		id, _, _ := strings.Cut(strings.TrimPrefix(s.admin, "bck_"), ".")
		revoke := object{"tenantId": "platform", "keyId": id}
		s.call(t, s.key(t, "platform/ops", "tenant-admin"), "apiKeys.revoke", revoke).refused(t, problem.PermissionDenied)
		as[api.APIKeysListOutput](t, s.call(t, s.admin, "apiKeys.list", object{"tenantId": "platform"})) // it still works
	})
}

// TestAuthorization_OfSeveralNoneIsTaken holds that a request with two bearers
// has none, in either order.
func TestAuthorization_OfSeveralNoneIsTaken(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		for _, bearers := range [][]string{{s.admin, "x"}, {"x", s.admin}, {s.admin, s.admin}} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/api/compute/sites/list", strings.NewReader(`{"tenantId": "acme"}`))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", "application/json")
			for _, bearer := range bearers {
				request.Header.Add("Authorization", "Bearer "+bearer)
			}
			response, err := s.client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			if response.Body.Close(); response.StatusCode != http.StatusUnauthorized {
				t.Errorf("two bearers are answered %s", response.Status)
			}
		}
	})
}

// TestJT_41_ThePolicyIsTheSiteOwners holds that a tenant that was given a pool
// on the platform's machines does not loosen what a machine must prove there.
func TestJT_41_ThePolicyIsTheSiteOwners(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		s.pool(t, "acme", "rented", "platform/core", object{"policy": object{"attestor": "discovery"}})
		acme := s.key(t, "acme/ops", "tenant-admin")
		loosen := object{"tenantId": "acme", "poolId": "rented", "policy": object{"attestor": "token"}}
		s.call(t, acme, "pools.update", loosen).refused(t, problem.PermissionDenied)
		as[api.PoolsUpdateOutput](t, s.call(t, s.admin, "pools.update", loosen))
		as[api.PoolsUpdateOutput](t, s.call(t, acme, "pools.update", loosen.with(object{"poolId": "lab"}))) // on its own site
	})
}

// TestJT_20_MetricsTellStrangersNothing holds that a call for a pool of another
// tenant counts the same whether the pool is there or not.
func TestJT_20_MetricsTellStrangersNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		stranger := s.key(t, "globex/eve", "pool-auditor")
		counts := map[string]int{}
		for _, pool := range []string{"lab", "missing"} {
			before := s.decisions(t)
			s.call(t, stranger, "pools.get", object{"tenantId": "acme", "poolId": pool}).refused(t, problem.NotFound)
			counts[pool] = s.decisions(t) - before
		}
		if counts["lab"] != counts["missing"] {
			t.Errorf("decisions %v", counts)
		}
	})
}
