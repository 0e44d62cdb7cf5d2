package server_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
)

// ofPool are the methods that are decided on a pool, with what they take
// beside tenantId and poolId.
func ofPool() map[string]object {
	return map[string]object{
		"joinTokens.create": lab(),
		"joinTokens.list":   {},
		"joinTokens.revoke": {"tokenId": "jt_" + x26},
		"pools.get":         {},
		"pools.update":      {"policy": object{"erase": "waived"}},
		"events.list":       {},
		"events.watch":      {},
	}
}

const x26 = "0123456789abcdefghjkmnpqrs"

// TestJT_20_NoExistenceOracle holds that whoever is not of the tenant gets one
// answer for a pool that is there and for one that is not.
func TestJT_20_NoExistenceOracle(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		s.mint(t, s.key(t, "acme/ops", "tenant-admin"), lab())
		callers := map[string]string{
			"admin of another tenant":    s.key(t, "globex/ops", "tenant-admin"),
			"operator of another tenant": s.key(t, "globex/bot", "pool-operator"),
			"same name, other tenant":    s.key(t, "globex/lab", "pool-auditor", "lab"),
			"tenant-admin of platform":   s.key(t, "platform/ops", "tenant-admin"),
		}
		for method, more := range ofPool() {
			for who, key := range callers {
				t.Run(method+" by "+who, func(t *testing.T) {
					there := s.call(t, key, method, more.with(object{"tenantId": "acme", "poolId": "lab"}))
					bare := s.call(t, key, method, more.with(object{"tenantId": "acme", "poolId": "bare"}))
					gone := s.call(t, key, method, more.with(object{"tenantId": "acme", "poolId": "missing"}))
					nobody := s.call(t, key, method, more.with(object{"tenantId": "nobody", "poolId": "lab"}))
					for _, a := range []answer{there, bare, gone, nobody} {
						a.refused(t, problem.NotFound)
						sameAnswer(t, a, gone)
					}
				})
			}
		}
		// The platform mints no tokens for pools of others, and learns of them as little.
		for _, pool := range []string{"lab", "bare", "missing"} {
			a := s.call(t, s.admin, "joinTokens.create", lab().with(object{"poolId": pool}))
			a.refused(t, problem.NotFound)
			sameAnswer(t, a, s.call(t, callers["admin of another tenant"], "joinTokens.create", lab().with(object{"poolId": "missing"})))
		}
		if n := s.count(t, "join_tokens"); n != 1 {
			t.Errorf("there are %d tokens", n)
		}
	})
}

// sameAnswer holds that two answers differ in their request ids alone.
func sameAnswer(t *testing.T, a, b answer) {
	t.Helper()
	if x, y := anonymous(a), anonymous(b); !bytes.Equal(x.body, y.body) || x.status != y.status {
		t.Errorf("answers differ:\n%d %s\n%d %s", x.status, x.body, y.status, y.body)
	}
	for name := range a.header {
		if name != "X-Request-Id" && name != "Date" && a.header.Get(name) != b.header.Get(name) {
			t.Errorf("header %s differs: %q and %q", name, a.header.Get(name), b.header.Get(name))
		}
	}
	if len(a.header) != len(b.header) {
		t.Errorf("headers differ: %v and %v", a.header, b.header)
	}
}

func anonymous(a answer) answer {
	a.body = bytes.ReplaceAll(a.body, []byte(a.header.Get("X-Request-Id")), nil)
	return a
}

// TestJT_20_DenialIsShownToTheTenant holds that a caller of the tenant is told
// what it lacks, and that what is missing is missing for it too.
func TestJT_20_DenialIsShownToTheTenant(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		elsewhere := s.key(t, "acme/bot", "pool-operator", "yard")
		auditor := s.key(t, "acme/eve", "pool-auditor")
		for method, more := range ofPool() {
			s.call(t, elsewhere, method, more.with(object{"tenantId": "acme", "poolId": "lab"})).refused(t, problem.PermissionDenied)
			s.call(t, elsewhere, method, more.with(object{"tenantId": "acme", "poolId": "missing"})).refused(t, problem.NotFound)
		}
		for _, method := range []string{"joinTokens.create", "joinTokens.revoke", "pools.update"} {
			s.call(t, auditor, method, ofPool()[method].with(object{"tenantId": "acme", "poolId": "lab"})).refused(t, problem.PermissionDenied)
		}
	})
}

// TestJT_20_OwnersOnly holds who mints: the owner tenant, whoever the site belongs to.
func TestJT_20_OwnersOnly(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		s.pool(t, "acme", "rented", "platform/core", nil)
		acme, globex := s.key(t, "acme/ops", "tenant-admin"), s.key(t, "globex/ops", "tenant-admin")
		s.mint(t, acme, lab().with(object{"poolId": "rented"}))
		s.mint(t, s.key(t, "acme/bot", "pool-operator"), lab().with(object{"poolId": "rented"}))
		s.mint(t, s.key(t, "acme/bot", "pool-operator", "rented"), lab().with(object{"poolId": "rented"}))
		s.call(t, s.admin, "joinTokens.create", lab().with(object{"poolId": "rented"})).refused(t, problem.NotFound)
		s.call(t, globex, "joinTokens.create", lab()).refused(t, problem.NotFound)

		// Both have a pool lab: each mints for its own.
		mine, theirs := s.mint(t, acme, lab()), s.mint(t, globex, lab().with(object{"tenantId": "globex"}))
		if mine.JoinToken.TenantID != "acme" || theirs.JoinToken.TenantID != "globex" {
			t.Errorf("minted for %s and %s", mine.JoinToken.TenantID, theirs.JoinToken.TenantID)
		}
		// The platform mints for its own pools, and may read and revoke everywhere.
		s.mint(t, s.admin, lab().with(object{"tenantId": "platform"}))
		if list := as[api.JoinTokensListOutput](t, s.call(t, s.admin, "joinTokens.list", object{"tenantId": "acme", "poolId": "lab"})); len(list.JoinTokens) != 1 {
			t.Errorf("the platform sees %d tokens of acme/lab", len(list.JoinTokens))
		}
		s.call(t, s.admin, "joinTokens.revoke", object{"tenantId": "acme", "poolId": "lab", "tokenId": mine.JoinToken.ID})
	})
}

// TestJT_21_NoDaemonNoTokens holds that a pool without bcd takes no tokens, and
// that only those who may mint there learn why.
func TestJT_21_NoDaemonNoTokens(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		body := lab().with(object{"poolId": "bare"})
		for _, key := range []string{s.key(t, "acme/ops", "tenant-admin"), s.key(t, "acme/bot", "pool-operator", "bare")} {
			before := s.count(t, "decisions")
			s.call(t, key, "joinTokens.create", body).refused(t, problem.InvalidState)
			s.call(t, key, "joinTokens.create", body.with(object{"expect": object{"serial": "None"}})).refused(t, problem.InvalidState)
			if a := s.call(t, key, "joinTokens.list", object{"tenantId": "acme", "poolId": "bare"}); a.status != http.StatusOK {
				t.Errorf("listing: %d %s", a.status, a.body)
			}
			if n := s.count(t, "decisions"); n != before {
				t.Errorf("a call that changed nothing recorded %d decisions", n-before)
			}
		}
		s.call(t, s.key(t, "acme/eve", "pool-auditor"), "joinTokens.create", body).refused(t, problem.PermissionDenied)
		s.call(t, s.key(t, "globex/ops", "tenant-admin"), "joinTokens.create", body).refused(t, problem.NotFound)
		if n, events := s.count(t, "join_tokens"), s.published(t, "acme", "security.join-token.created"); n != 0 || len(events) != 0 {
			t.Errorf("%d tokens and %d events", n, len(events))
		}
	})
}
