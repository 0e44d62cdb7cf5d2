package server_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// key makes a key of an identity such as acme/ops with a role, limited to a
// pool where one is named, through apiKeys.create.
func (s *running) key(t testing.TB, who, role string, pool ...string) string {
	t.Helper()
	return *s.apiKey(t, who, role, pool...).Key
}

func (s *running) apiKey(t testing.TB, who, role string, pool ...string) api.APIKeysCreateOutput {
	t.Helper()
	tenant, identity, _ := strings.Cut(who, "/")
	body := object{"tenantId": tenant, "identity": identity, "role": role, "idempotencyKey": rand.Text()}
	if len(pool) > 0 {
		body["poolId"] = pool[0]
	}
	return as[api.APIKeysCreateOutput](t, s.call(t, s.admin, "apiKeys.create", body))
}

// revokeKey ends a key of a tenant.
func (s *running) revokeKey(t testing.TB, tenant, id string) {
	t.Helper()
	as[api.APIKeysRevokeOutput](t, s.call(t, s.admin, "apiKeys.revoke", object{"tenantId": tenant, "keyId": id}))
}

// site makes a site.
func (s *running) site(t testing.TB, tenant, id string, custom bool) {
	t.Helper()
	as[api.SitesCreateOutput](t, s.call(t, s.admin, "sites.create", object{"tenantId": tenant, "siteId": id, "custom": custom}))
}

// pool makes a pool of a tenant on a site such as acme/berlin.
func (s *running) pool(t testing.TB, tenant, id, site string, more object) {
	t.Helper()
	owner, siteID, _ := strings.Cut(site, "/")
	body := object{"tenantId": tenant, "poolId": id, "siteId": siteID, "siteTenantId": owner}
	as[api.PoolsCreateOutput](t, s.call(t, s.admin, "pools.create", body.with(more)))
}

// withPools makes what most tests need: the pools lab, yard and bare (without
// bcd) of acme, and lab of globex and of the platform.
func (s *running) withPools(t testing.TB) *running {
	t.Helper()
	for _, site := range []string{"acme/berlin", "globex/oslo", "platform/core"} {
		tenant, id, _ := strings.Cut(site, "/")
		s.site(t, tenant, id, false)
		s.pool(t, tenant, "lab", site, nil)
	}
	s.pool(t, "acme", "yard", "acme/berlin", nil)
	s.pool(t, "acme", "bare", "acme/berlin", object{"agent": "none"})
	return s
}

// lab is a body of joinTokens.create for acme/lab with a key of its own.
func lab() object {
	return object{"tenantId": "acme", "poolId": "lab", "ttlSeconds": 3600, "idempotencyKey": rand.Text()}
}

// mint mints a join token.
func (s *running) mint(t testing.TB, key string, body object) api.JoinTokensCreateOutput {
	t.Helper()
	return as[api.JoinTokensCreateOutput](t, s.call(t, key, "joinTokens.create", body))
}

// together runs fn n times at once and returns when all have ended.
func together(n int, fn func(i int)) {
	var wg sync.WaitGroup
	barrier := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-barrier
			fn(i)
		})
	}
	close(barrier)
	wg.Wait()
}

// decisions is how many IAM decisions the server has made, as it says itself.
func (s *running) decisions(t testing.TB) (n int) {
	t.Helper()
	return s.metric(t, "bc_decisions_total{")
}

// metric adds up the samples of /metrics that begin so.
func (s *running) metric(t testing.TB, prefix string) (sum int) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(s.get(t, "/metrics").body))
	for lines.Scan() {
		if sample, ok := strings.CutPrefix(lines.Text(), prefix); ok {
			n, err := strconv.Atoi(sample[strings.LastIndexByte(sample, ' ')+1:])
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}
