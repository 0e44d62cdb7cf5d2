package store_test

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// sum is a hash as the store's rows have it.
func sum(text string) string { return hex.EncodeToString(hash(text)) }

// newClaim is a join with a token, of which everything follows from name: a
// node of its own, told by a serial of its own, with a key of its own.
func newClaim(tokenID, name string) store.Claim {
	return store.Claim{
		Node: store.Node{
			ID: "nd_" + name, TenantID: "acme", PoolID: "lab", Trust: "tenant-owned", TokenID: tokenID,
			Claims: store.Claims{Serial: name},
		},
		Tells: []store.Identifier{{Kind: "serial", Value: name}},
		Certificate: store.NodeCertificate{
			Serial: sum("serial of " + name)[:32], NodeID: "nd_" + name, CSRSHA256: sum("csr of " + name), KeySHA256: sum("key of " + name),
			Trust: "tenant-owned", NotBefore: noon.Add(-5 * time.Minute), NotAfter: noon.Add(24 * time.Hour),
		},
		SourceAddress: "192.0.2.7",
	}
}

// takeover is newClaim for the node of another one, as it is now.
func takeover(t testing.TB, db *store.DB, tokenID, name string, of store.Claim) store.Claim {
	t.Helper()
	was := node(t, db, of.Node.ID)
	c := newClaim(tokenID, name)
	c.Node.ID, c.Certificate.NodeID, c.Reclaims, c.Tells = was.ID, was.ID, &was, of.Tells
	return c
}

// tryClaim claims and returns what became of it.
func tryClaim(t testing.TB, db *store.DB, c store.Claim) store.ClaimOutcome {
	t.Helper()
	outcome, err := db.ClaimJoin(t.Context(), c)
	must(t, err)
	return outcome
}

// claim claims, and returns the claim with the certificate as it is stored.
func claim(t testing.TB, db *store.DB, c store.Claim) store.Claim {
	t.Helper()
	if outcome := tryClaim(t, db, c); outcome != store.Claimed {
		t.Fatalf("the claim of %s is %d, want Claimed", c.Node.ID, outcome)
	}
	c.Certificate = certificate(t, db, c.Certificate.Serial)
	return c
}

// joined is claim with a certificate that is signed.
func joined(t testing.TB, db *store.DB, c store.Claim) store.Claim {
	t.Helper()
	claim(t, db, c)
	sign(t, db, c.Certificate.Serial)
	c.Certificate = certificate(t, db, c.Certificate.Serial)
	return c
}

func sign(t testing.TB, db *store.DB, serial string) {
	t.Helper()
	chain, err := db.SignedChain(t.Context(), serial, "chain of "+serial)
	must(t, err)
	if chain != "chain of "+serial {
		t.Errorf("the chain is %q", chain)
	}
}

func node(t testing.TB, db *store.DB, id string) store.Node {
	t.Helper()
	n, err := db.Node(t.Context(), "acme", "lab", id)
	must(t, err)
	return n
}

func certificate(t testing.TB, db *store.DB, serial string) store.NodeCertificate {
	t.Helper()
	c, err := db.NodeCertificate(t.Context(), serial)
	must(t, err)
	return c
}

// newRequest is a join that is to wait, of which everything follows from name.
func newRequest(tokenID, name string) store.JoinRequest {
	return store.JoinRequest{
		TenantID: "acme", PoolID: "lab", TokenID: tokenID, Reason: "unknown_machine", Attestor: "discovery",
		CSRSHA256: sum("csr of " + name), KeySHA256: sum("key of " + name),
		Claims: store.Claims{Serial: name}, ClaimsSHA256: sum("claims of " + name), MachineSHA256: sum("machine " + name),
		SourceAddress: "192.0.2.7",
	}
}

func tryDefer(t testing.TB, db *store.DB, q store.JoinRequest) (store.JoinRequest, store.DeferOutcome) {
	t.Helper()
	made, outcome, err := db.DeferJoin(t.Context(), q)
	must(t, err)
	return made, outcome
}

func deferred(t testing.TB, db *store.DB, q store.JoinRequest) store.JoinRequest {
	t.Helper()
	made, outcome := tryDefer(t, db, q)
	if outcome != store.Deferred {
		t.Fatalf("the deferral is %d, want Deferred", outcome)
	}
	return made
}

func approve(t testing.TB, db *store.DB, q store.JoinRequest) (made store.JoinRequest, err error) {
	err = db.Write(t.Context(), func(tx *store.Tx) error {
		made, err = tx.ApproveRequest(t.Context(), "acme", "lab", q.ID, q.CSRSHA256, "acme/ops", "")
		return err
	})
	return made, err
}

func deny(t testing.TB, db *store.DB, q store.JoinRequest) (made store.JoinRequest, err error) {
	err = db.Write(t.Context(), func(tx *store.Tx) error {
		made, err = tx.DenyRequest(t.Context(), "acme", "lab", q.ID, "acme/sec", "")
		return err
	})
	return made, err
}

func approved(t testing.TB, db *store.DB, q store.JoinRequest) store.JoinRequest {
	t.Helper()
	q, err := approve(t, db, deferred(t, db, q))
	must(t, err)
	return q
}

func request(t testing.TB, db *store.DB, id string) store.JoinRequest {
	t.Helper()
	q, err := db.JoinRequest(t.Context(), "acme", "lab", id)
	must(t, err)
	return q
}

// copyRequest makes copies of a request for other machines, some of which have ended.
func copyRequest(t testing.TB, db *store.DB, q store.JoinRequest, live, ended int) {
	t.Helper()
	write(t, db, func(tx *store.Tx) error {
		return tx.Exec(t.Context(), `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?0)
			INSERT INTO join_requests SELECT 'jr_' || n, tenant_id, pool_id, token_id, CASE WHEN n <= ?1 THEN status ELSE 'canceled' END, reason, attestor,
			'csr' || n, 'key' || n, claims, claims_sha256, 'machine' || n, placeholders, hosted, reclaims_node_id, source_address, seen, created_at,
			last_seen_at, expires_at, decided_at, decided_by, note, node_id, CASE WHEN n <= ?1 THEN NULL ELSE created_at END, waived
			FROM numbers, join_requests WHERE id = ?2`, live+ended, live, q.ID)
	})
}

// published counts the events of a type.
func published(t testing.TB, db *store.DB, kind string) int {
	t.Helper()
	return count(t, db, "events WHERE type = '"+kind+"'")
}

// eventsSince positions what was published since the last call and returns it
// as "type subject data", in its order.
func eventsSince(t testing.TB, db *store.DB) (all []string) {
	t.Helper()
	last, err := db.LastPosition(t.Context())
	must(t, err)
	positioned(t, db)
	page, err := db.Events(t.Context(), store.EventQuery{TenantID: "acme", After: last, Limit: 10_000})
	must(t, err)
	for _, e := range page.Events {
		all = append(all, e.Type+" "+e.Subject+" "+canonical(t, e.Data))
	}
	return all
}

// canonical is JSON as one text, on both databases.
func canonical(t testing.TB, data []byte) string {
	t.Helper()
	var fields any
	must(t, json.Unmarshal(data, &fields))
	text, err := json.Marshal(fields)
	must(t, err)
	return string(text)
}

// rows is every row of every table, each as one text.
func rows(t testing.TB, db *store.DB) map[string][]string {
	t.Helper()
	list := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if isPostgres(db) {
		list = "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = current_schema()"
	}
	var tables []string
	must(t, db.Query(t.Context(), list).Scan(&tables))
	all := map[string][]string{}
	for _, table := range tables {
		var texts []string
		must(t, db.Query(t.Context(), "SELECT "+rowText(t, db, table)+" FROM "+table+" AS r").Scan(&texts))
		slices.Sort(texts)
		all[table] = texts
	}
	for _, table := range []string{"nodes", "join_requests", "events", "river_job", "schema_migrations"} {
		if _, ok := all[table]; !ok {
			t.Fatalf("there is no table %s among %v", table, tables)
		}
	}
	return all
}

// rowText is the expression for a row of a table as a text.
func rowText(t testing.TB, db *store.DB, table string) string {
	t.Helper()
	if isPostgres(db) {
		return "CAST(r AS text)"
	}
	var columns []string
	must(t, db.Query(t.Context(), "SELECT name FROM pragma_table_info(?)", table).Scan(&columns))
	for i := range columns {
		columns[i] = "quote(" + columns[i] + ")"
	}
	return strings.Join(columns, " || ',' || ")
}

// unchanged runs fn and reports every row that it has changed.
func unchanged(t testing.TB, db *store.DB, what string, fn func()) {
	t.Helper()
	before := rows(t, db)
	fn()
	unchangedSince(t, db, what, before)
}

// unchangedSince reports every row that is not as it was before.
func unchangedSince(t testing.TB, db *store.DB, what string, before map[string][]string) {
	t.Helper()
	after := rows(t, db)
	for table := range after {
		for _, row := range before[table] {
			if !slices.Contains(after[table], row) {
				t.Errorf("%s: gone from %s: %s", what, table, row)
			}
		}
		for _, row := range after[table] {
			if !slices.Contains(before[table], row) {
				t.Errorf("%s: new in %s: %s", what, table, row)
			}
		}
	}
}

// replicas are two handles on one database.
func replicas(t testing.TB, db *store.DB) []*store.DB {
	t.Helper()
	return []*store.DB{db, storetest.Replica(t, db)}
}

// atNoon stops the clock of a database at noon and returns it.
func atNoon(db *store.DB) *storetest.Clock {
	clock := storetest.ClockOf(db)
	clock.Set(noon)
	return clock
}

// tally is how often each of some outcomes came, such as "0:5 2:59".
func tally[T cmp.Ordered](outcomes []T) string {
	counts := map[T]int{}
	var kinds []T
	for _, outcome := range outcomes {
		if counts[outcome] == 0 {
			kinds = append(kinds, outcome)
		}
		counts[outcome]++
	}
	slices.Sort(kinds)
	var text []string
	for _, kind := range kinds {
		text = append(text, fmt.Sprint(kind, ":", counts[kind]))
	}
	return strings.Join(text, " ")
}
