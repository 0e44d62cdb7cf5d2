package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
)

// TestJT_40_PoolsSayTheirTrust holds what a pool shows of the truth table in
// impl/trust: platform only on a site that the platform owns and that is not custom.
func TestJT_40_PoolsSayTheirTrust(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.site(t, "platform", "core", false)
		s.site(t, "platform", "edge", true)
		s.site(t, "acme", "berlin", false)
		s.site(t, "acme", "lab", true)
		for site, want := range map[string]wire.Trust{
			"platform/core": wire.TrustPlatform, "platform/edge": wire.TrustTenantOwned,
			"acme/berlin": wire.TrustTenantOwned, "acme/lab": wire.TrustTenantOwned,
		} {
			for name, operated := range map[string]bool{"run": true, "own": false} {
				id := name + "-on-" + strings.ReplaceAll(site, "/", ".")
				s.pool(t, "acme", id, site, object{"policy": object{"kubernetes": object{"platformOperated": operated}}})
				pool := as[api.PoolsGetOutput](t, s.call(t, s.admin, "pools.get", object{"tenantId": "acme", "poolId": id})).Pool
				if pool.Trust != want || pool.Policy.Kubernetes.PlatformOperated != operated {
					t.Errorf("a pool on %s, operated: %v, shows %s and %v", site, operated, pool.Trust, pool.Policy.Kubernetes)
				}
			}
		}
	})
}

var vouched = object{"kubernetes": object{"platformOperated": true}}

// TestJT_41_OnlyThePlatformOnItsSites holds who creates pools where.
func TestJT_41_OnlyThePlatformOnItsSites(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		acme, globex := s.key(t, "acme/ops", "tenant-admin"), s.key(t, "globex/ops", "tenant-admin")
		of := func(tenant, site, owner string) object {
			return object{"tenantId": tenant, "poolId": "new", "siteId": site, "siteTenantId": owner}
		}
		// To a tenant the sites of the platform, and of others, are not there.
		missing := s.call(t, acme, "pools.create", of("acme", "missing", "platform"))
		for _, body := range []object{of("acme", "core", "platform"), of("platform", "core", "platform"), of("acme", "oslo", "globex"), of("globex", "oslo", "globex")} {
			a := s.call(t, acme, "pools.create", body)
			a.refused(t, problem.NotFound)
			sameAnswer(t, a, missing)
			s.call(t, s.key(t, "acme/bot", "pool-operator"), "pools.create", body).refused(t, problem.NotFound)
		}
		// The site must be the pool's tenant's or the platform's.
		s.call(t, acme, "pools.create", of("globex", "berlin", "acme")).violates(t, "siteTenantId", "owner")
		s.call(t, s.admin, "pools.create", of("globex", "berlin", "acme")).violates(t, "siteTenantId", "owner")
		s.call(t, s.admin, "pools.create", of("platform", "berlin", "acme")).violates(t, "siteTenantId", "owner")

		as[api.PoolsCreateOutput](t, s.call(t, acme, "pools.create", of("acme", "berlin", "acme")))
		as[api.PoolsCreateOutput](t, s.call(t, globex, "pools.create", of("globex", "oslo", "globex").with(object{"siteTenantId": nil})))
		as[api.PoolsCreateOutput](t, s.call(t, s.key(t, "platform/ops", "tenant-admin"), "pools.create", of("platform", "core", "platform")))
		pool := as[api.PoolsCreateOutput](t, s.call(t, s.admin, "pools.create", of("acme", "core", "platform").with(object{"poolId": "rented"}))).Pool
		if pool.TenantID != "acme" || pool.SiteTenantID != "platform" || pool.Trust != wire.TrustPlatform {
			t.Errorf("the platform's pool for acme is %+v", pool)
		}
		s.call(t, s.key(t, "acme/bot", "pool-operator"), "pools.create", of("acme", "berlin", "acme")).refused(t, problem.PermissionDenied)
	})
}

// TestJT_41_Vouching holds that platformOperated takes its own right, on
// creation and on update, also where nothing would change, and that turning it
// off takes none.
func TestJT_41_Vouching(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		s.pool(t, "acme", "rented", "platform/core", object{"policy": vouched})
		acme, platform := s.key(t, "acme/ops", "tenant-admin"), s.key(t, "platform/ops", "tenant-admin")
		update := func(key, tenant, pool string, policy object) answer {
			return s.call(t, key, "pools.update", object{"tenantId": tenant, "poolId": pool, "policy": policy})
		}
		before := s.count(t, "decisions")
		create := object{"tenantId": "acme", "poolId": "new", "siteId": "berlin", "policy": vouched}
		for _, a := range []answer{
			s.call(t, acme, "pools.create", create),
			update(acme, "acme", "lab", vouched),
			update(platform, "acme", "rented", vouched),
			update(platform, "platform", "lab", vouched),
		} {
			if r := a.refused(t, problem.PermissionDenied); r.Detail != "the caller may not compute:pools:vouch" {
				t.Errorf("detail %q", r.Detail)
			}
		}
		if n := s.count(t, "decisions") - before; n != 0 {
			t.Errorf("what was refused recorded %d decisions", n)
		}
		s.call(t, s.key(t, "globex/ops", "tenant-admin"), "pools.update", object{"tenantId": "acme", "poolId": "lab", "policy": vouched}).refused(t, problem.NotFound)

		for _, a := range []answer{
			update(s.admin, "acme", "lab", vouched),
			s.call(t, s.admin, "pools.create", create),
			update(s.admin, "platform", "lab", vouched),
		} {
			if a.status != http.StatusOK {
				t.Errorf("the platform vouches: %d %s", a.status, a.body)
			}
		}
		if n := s.count(t, "decisions WHERE action = 'compute:pools:vouch' AND principal = 'platform/admin'"); n != 4 {
			t.Errorf("%d decisions to vouch are recorded, want 4", n)
		}
		off := update(acme, "acme", "lab", object{"kubernetes": object{"platformOperated": false}, "erase": "waived"})
		if p := as[api.PoolsUpdateOutput](t, off).Pool.Policy; p.Kubernetes.PlatformOperated || p.Erase != wire.EraseWaived {
			t.Errorf("turned off: %+v", p)
		}
		if p := as[api.PoolsUpdateOutput](t, update(platform, "acme", "rented", object{"erase": "waived"})).Pool.Policy; !p.Kubernetes.PlatformOperated {
			t.Error("what was left out was turned off")
		}
	})
}

// TestJT_41_KeysNeverBeyondTheCaller holds what apiKeys.create hands on.
func TestJT_41_KeysNeverBeyondTheCaller(t *testing.T) {
	t.Parallel()
	roles := []string{"platform-admin", "tenant-admin", "pool-operator", "pool-auditor"}
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		create := func(key, tenant, role string, more object) answer {
			body := object{"tenantId": tenant, "identity": "new", "role": role, "idempotencyKey": lab()["idempotencyKey"]}
			return s.call(t, key, "apiKeys.create", body.with(more))
		}
		acme, platform := s.key(t, "acme/ops", "tenant-admin"), s.key(t, "platform/ops", "tenant-admin")
		for _, role := range roles[1:] {
			as[api.APIKeysCreateOutput](t, create(acme, "acme", role, nil))
			as[api.APIKeysCreateOutput](t, create(platform, "platform", role, nil))
			as[api.APIKeysCreateOutput](t, create(s.admin, "globex", role, nil))
		}
		as[api.APIKeysCreateOutput](t, create(s.admin, "platform", "platform-admin", nil))
		create(platform, "platform", "platform-admin", nil).violates(t, "role", "grant")
		create(s.admin, "acme", "platform-admin", nil).violates(t, "role", "grant")
		r := create(acme, "acme", "platform-admin", nil).refused(t, problem.InvalidInput)
		for _, v := range r.Errors {
			if v.Field != "role" || v.Rule != "grant" {
				t.Errorf("violation %+v", v)
			}
		}
		for _, role := range roles {
			create(acme, "globex", role, nil).refused(t, problem.PermissionDenied)
			create(acme, "platform", role, nil).refused(t, problem.PermissionDenied)
			for _, low := range []string{"pool-operator", "pool-auditor"} {
				create(s.key(t, "acme/bot", low), "acme", role, nil).refused(t, problem.PermissionDenied)
			}
		}

		// A pool goes with the pool roles, and must be there.
		for _, role := range roles[2:] {
			if key := as[api.APIKeysCreateOutput](t, create(acme, "acme", role, object{"poolId": "lab"})).APIKey; key.PoolID == nil || *key.PoolID != "lab" {
				t.Errorf("a key for a pool is %+v", key)
			}
			create(acme, "acme", role, object{"poolId": "missing"}).refused(t, problem.NotFound)
		}
		create(acme, "acme", "tenant-admin", object{"poolId": "lab"}).violates(t, "poolId", "unsupported")
		create(s.admin, "platform", "platform-admin", object{"poolId": "lab"}).violates(t, "poolId", "unsupported")
	})
}
