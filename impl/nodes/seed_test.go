package nodes_test

import (
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// seedRequests writes n join requests of a token at once, each of another
// machine, as many calls would leave them.
func (p *process) seedRequests(t testing.TB, tok token, n int, status string, life time.Duration) {
	t.Helper()
	name, source := "postgres", storetest.URLOf(p.db)
	if file, ok := strings.CutPrefix(source, "sqlite:"); ok {
		name, source = "sqlite", (&url.URL{Scheme: "file", Opaque: file, RawQuery: "_busy_timeout=30000"}).String()
	}
	db, err := sql.Open(name, source)
	must(t, err)
	defer db.Close()
	at := func(when time.Time) string { return "'" + when.UTC().Format("2006-01-02 15:04:05+00:00") + "'" }
	now := p.db.Now()
	_, err = db.ExecContext(t.Context(), fmt.Sprintf(`INSERT INTO join_requests (id, tenant_id, pool_id, token_id, status, reason, attestor, csr_sha256, key_sha256,
			claims, claims_sha256, machine_sha256, placeholders, waived, source_address, seen, created_at, last_seen_at, expires_at)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		SELECT 'jr_' || substr('%s', 32) || (1000000 + i), '%s', '%s', '%s', '%s', 'placeholder_hardware', 'token', '%s' || i, '%s' || i,
			'{}', 'x', '', '[]', '[]', '192.0.2.7', 1, %s, %s, %s FROM n`,
		n, tok.ID, tok.TenantID, tok.PoolID, tok.ID, status, tok.ID, tok.ID, at(now), at(now), at(now.Add(life))))
	must(t, err)
}

// poolsWith makes pools of which each has n join requests of a status.
func (p *process) poolsWith(t testing.TB, pools, n int, status string, life time.Duration) (all []store.Pool) {
	t.Helper()
	for range pools {
		pool := p.poolCalled(t, unique("p"), "token")
		p.seedRequests(t, p.mint(t, pool, usable(10_000)), n, status, life)
		all = append(all, pool)
	}
	return all
}
