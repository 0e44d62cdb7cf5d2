package store_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// withFleet fills ten pools with nodes, of which all but one in a hundred were
// removed, and whatever belongs to them.
func withFleet(t *testing.T, db *store.DB, nodes int) {
	t.Helper()
	withLab(t, db)
	mint(t, db, tokenID(0), func(token *store.JoinToken) { token.MaxUses, token.ExpiresAt = 10_000, noon.Add(24*time.Hour) })
	joined(t, db, newClaim(tokenID(0), "pattern"))
	q := deferred(t, db, newRequest(tokenID(0), "pattern"))
	_, _, err := importMachines(t, db, known("pattern", "pattern"))
	must(t, err)
	numbers := fmt.Sprintf("WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d) ", nodes)
	const pool, pattern = "'pool' || (n % 10 + 1)", "'nd_pattern'"
	write(t, db, func(tx *store.Tx) error {
		for _, statement := range []string{
			"INSERT INTO pools " + numbers + `SELECT tenant_id, 'pool' || n, site_tenant_id, site_id, agent, attestor,
				platform_operated, allow_virtual_machines, erase, created_at, created_by, updated_at FROM numbers, pools WHERE pool_id = 'lab' AND n <= 10`,
			"INSERT INTO join_tokens (id, tenant_id, pool_id, secret_sha256, max_uses, uses, allow_reclaim, created_at, created_by, expires_at) " + numbers +
				"SELECT 'jt_' || n, tenant_id, " + pool + ", secret_sha256, 200, 100, FALSE, created_at, created_by, expires_at FROM numbers, join_tokens WHERE id = '" + tokenID(0) + "' AND n <= 200",
			"INSERT INTO nodes " + numbers + "SELECT 'nd_' || (1000000 + n), tenant_id, " + pool + `, trust, hosted, claims, agent_version, 'jt_' || (n % 200 + 1), created_at, joined_at,
				confirmed_at, last_seen_at, banned_at, banned_by, note, CASE WHEN n / 10 % 100 = 0 THEN NULL ELSE created_at END FROM numbers, nodes WHERE id = ` + pattern,
			"INSERT INTO node_identifiers " + numbers + "SELECT tenant_id, " + pool + `, CASE WHEN n % 2 = 0 THEN 'serial' ELSE 'mac' END, 'value' || n, '', 'nd_' || (1000000 + n)
				FROM numbers, node_identifiers WHERE node_id = ` + pattern,
			"INSERT INTO node_certificates " + numbers + `SELECT 'serial' || n, 'nd_' || (1000000 + n), 'csr' || n, 'key' || n, n % 4 <> 0, trust, not_before, not_after, created_at,
				CASE WHEN n % 1000 = 0 THEN NULL ELSE chain END, NULL, NULL FROM numbers, node_certificates WHERE node_id = ` + pattern,
			"INSERT INTO join_uses " + numbers + "SELECT 'jt_' || (n % 200 + 1), 'csr' || n, 'nd_' || (1000000 + n), 'serial' || n, FALSE, claimed_at FROM numbers, join_uses WHERE node_id = " + pattern,
			"INSERT INTO join_requests " + numbers + "SELECT 'jr_' || n, tenant_id, " + pool + `, 'jt_' || (n % 200 + 1), CASE WHEN n / 10 % 8 = 0 THEN status ELSE 'consumed' END, reason, attestor,
				'csr' || n, 'key' || n, claims, claims_sha256, 'machine' || n, placeholders, hosted, reclaims_node_id, source_address, seen, created_at, last_seen_at, expires_at, decided_at,
				decided_by, note, node_id, CASE WHEN n / 10 % 8 = 0 THEN NULL ELSE created_at END, waived FROM numbers, join_requests WHERE id = '` + q.ID + "'",
			"INSERT INTO inventory_machines " + numbers + "SELECT tenant_id, " + pool + ", 'machine' || n, product_uuid, serial, macs, gpu_uuids, created_at, created_by, updated_at FROM numbers, inventory_machines WHERE machine_id = 'pattern'",
			"INSERT INTO inventory_identifiers " + numbers + "SELECT tenant_id, " + pool + ", CASE WHEN n % 2 = 0 THEN 'serial' ELSE 'mac' END, 'value' || n, 'machine' || n FROM numbers, inventory_identifiers WHERE machine_id = 'pattern'",
			"ANALYZE",
		} {
			if err := tx.Exec(t.Context(), statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
}

// scans are the tables that a plan reads from end to end. Pools and sites are few.
func scans(plan string) (tables []string) {
	for _, m := range regexp.MustCompile(`(?:Seq Scan on|SCAN) ([a-z]\w*)`).FindAllStringSubmatch(plan, -1) {
		if m[1] != "pools" && m[1] != "sites" && m[1] != "held" && m[1] != "batch" && m[1] != "pool" && m[1] != "site" {
			tables = append(tables, m[1])
		}
	}
	return tables
}

func TestPlans_JoinsLookThroughNoTable(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		db, log := traced(t, kind)
		atNoon(db)
		nodes := 10_000
		if !isPostgres(db) {
			nodes = 300 // its plans do not depend on how many there are
		}
		withFleet(t, db, nodes)
		token, err := db.JoinToken(t.Context(), "jt_7")
		must(t, err)
		ctx, past := t.Context(), noon.Add(time.Hour)
		identifiers := []store.Identifier{{Kind: "serial", Value: "value8"}, {Kind: "mac", Value: "value7"}, {Kind: "mac", Value: "value9"}}
		sharing := newClaim("jt_7", "sharing")
		sharing.Node.PoolID, sharing.Tells, sharing.Shares = "pool8", nil, identifiers
		over := newClaim("jt_7", "over")
		over.Node.ID, over.Certificate.NodeID, over.Node.PoolID = "nd_1000007", "nd_1000007", "pool8"
		over.Reclaims = &store.Node{JoinedAt: noon}
		for _, c := range []struct {
			name, statement string
			indexes         []string
			run             func() error
		}{
			{"what is known of a join", "AS key_taken", []string{"join_uses_pkey", "join_requests_csr", "node_certificates_key", "join_requests_key"}, func() error {
				_, err := db.JoinState(ctx, token, "csr7", "key7")
				return err
			}},
			{"the use of a token", `FROM "join_uses"`, []string{"join_uses_pkey"}, func() error {
				_, err := db.JoinUse(ctx, "jt_8", "csr7")
				return err
			}},
			{"who holds identifiers", "AS held", []string{"node_identifiers_pkey", "nodes_pkey"}, func() error {
				_, err := db.Holdings(ctx, "acme", "pool8", identifiers)
				return err
			}},
			{"who calls", "site_custom", []string{"node_certificates_pkey", "nodes_pkey"}, func() error {
				_, err := db.Caller(ctx, "serial7")
				return err
			}},
			{"a renewal", `FROM "node_certificates"`, []string{"node_certificates_csr"}, func() error {
				_, err := db.Renewal(ctx, "nd_1000007", "csr7")
				return err
			}},
			{"the inventory", "inventory_identifiers", []string{"inventory_identifiers_pkey"}, func() error {
				_, err := db.InventoryMatches(ctx, "acme", "pool8", identifiers)
				return err
			}},
			{"nodes", "AS certificate_serial", []string{"nodes_live", "node_certificates_csr"}, func() error {
				_, _, err := db.Nodes(ctx, store.NodeQuery{TenantID: "acme", PoolID: "pool7", After: "nd_1010000", Limit: 50})
				return err
			}},
			{"nodes, removed ones too", "AS certificate_serial", []string{"nodes_all", "node_certificates_csr"}, func() error {
				_, _, err := db.Nodes(ctx, store.NodeQuery{TenantID: "acme", PoolID: "pool7", After: "nd_1000300", Limit: 50, IncludeRemoved: true})
				return err
			}},
			{"requests", "ORDER BY", []string{"join_requests_live"}, func() error {
				_, _, err := db.JoinRequests(ctx, store.JoinRequestQuery{TenantID: "acme", PoolID: "pool7", After: "jr_5", Limit: 50})
				return err
			}},
			{"requests, ended ones too", "ORDER BY", []string{"join_requests_all"}, func() error {
				_, _, err := db.JoinRequests(ctx, store.JoinRequestQuery{TenantID: "acme", PoolID: "pool7", After: "jr_5", Limit: 50, IncludeEnded: true})
				return err
			}},
			{"sharing identifiers", "UPDATE node_identifiers", []string{"node_identifiers_pkey"}, func() error {
				_, err := db.ClaimJoin(ctx, sharing)
				return err
			}},
			{"the identifiers of a node", "SELECT * FROM node_identifiers", []string{"node_identifiers_of_node"}, func() error {
				_, err := db.ClaimJoin(ctx, over)
				return err
			}},
			{"the certificates of a node", "UPDATE node_certificates SET revoked_at", []string{"node_certificates_csr"}, func() error {
				over.Reclaims.JoinedAt, over.Certificate.CSRSHA256 = db.Now(), sum("another")
				_, err := db.ClaimJoin(ctx, over)
				return err
			}},
			{"a token's queue", "token_id = 'jt_7'", []string{"join_requests_"}, func() error {
				_, _, err := db.DeferJoin(ctx, store.JoinRequest{TenantID: "acme", PoolID: "pool8", TokenID: "jt_7", CSRSHA256: "c", ClaimsSHA256: "c", MachineSHA256: "m"})
				return err
			}},
			{"a pool's queue", "END) FROM join_requests WHERE tenant_id", []string{"join_requests_"}, func() error {
				_, _, err := db.DeferJoin(ctx, store.JoinRequest{TenantID: "acme", PoolID: "pool8", TokenID: "jt_7", CSRSHA256: "d", ClaimsSHA256: "c", MachineSHA256: "n"})
				return err
			}},
			{"unsigned certificates", "chain IS NULL AND confirmed_at IS NULL AND created_at", []string{"node_certificates_unsigned"}, func() error {
				_, err := db.DropUnsigned(ctx, past, 1)
				return err
			}},
			{"expired requests", "expires_at <=", []string{"join_requests_expiring"}, func() error {
				_, err := db.ExpireRequests(ctx, 50)
				return err
			}},
			{"old requests", "DELETE FROM join_requests", []string{"join_requests_ended", "join_requests_pkey"}, func() error {
				_, err := db.ForgetRequests(ctx, past, 50)
				return err
			}},
			{"old certificates", "DELETE FROM node_certificates", []string{"node_certificates_ended", "node_certificates_pkey"}, func() error {
				_, err := db.ForgetCertificates(ctx, past, 50)
				return err
			}},
			{"removed nodes", "ORDER BY removed_at", []string{"nodes_removed"}, func() error {
				_, err := db.ForgetNodes(ctx, noon, 50)
				return err
			}},
		} {
			log.take()
			must(t, c.run())
			plan := plan(t, db, log, c.statement)
			if tables := scans(plan); len(tables) > 0 {
				t.Errorf("%s: looks through %v\n%s", c.name, tables, plan)
			}
			for _, index := range c.indexes {
				if !isPostgres(db) && strings.HasSuffix(index, "_pkey") {
					index = "sqlite_autoindex_" + strings.TrimSuffix(index, "_pkey")
				}
				if !strings.Contains(plan, index) {
					t.Errorf("%s: want index %s, got\n%s", c.name, index, plan)
				}
			}
		}
	})
}

// A new Postgres has counted nothing, and takes every table to be short: a join
// must not depend on what it believes.
func TestPlans_JoinsOnAnUncountedPostgres(t *testing.T) {
	t.Parallel()
	db, log := traced(t, storetest.Postgres)
	atNoon(db)
	withLab(t, db)
	mint(t, db, tokenID(0), func(token *store.JoinToken) { token.MaxUses = 100 })
	for i := range 50 {
		joined(t, db, newClaim(tokenID(0), fmt.Sprint("machine", i)))
	}
	log.take()
	_, err := db.Holdings(t.Context(), "acme", "lab", []store.Identifier{{Kind: "serial", Value: "a"}, {Kind: "mac", Value: "b"}, {Kind: "mac", Value: "c"}})
	must(t, err)
	plan := plan(t, db, log, "AS held")
	for line := range strings.Lines(plan) {
		if strings.Contains(line, "Seq Scan on node_identifiers") || strings.Contains(line, "Index Cond: ((tenant_id") && !strings.Contains(line, "(value =") {
			t.Errorf("walks through all of the pool:\n%s", plan)
		}
	}
}
