package main

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
)

// seedNodes fills the pool with nodes as joins leave them: with identifiers, a
// confirmed certificate, and a use of a token each. Their ids are older than
// those of machines that join afterwards.
type seedNodes func(ctx context.Context, db *sql.DB, nodes int) error

// seedChain is as long as the chain of a certificate.
var seedChain = strings.Repeat("0123456789abcdef", 100)

// nodeRows are what the databases have to say differently: a row for each node.
const (
	postgresRows = `(SELECT 'nd_' || lpad(i::text, 26, '0') AS node, 'jt_' || lpad((i / 10000 + 1)::text, 26, '0') AS token,
		'sn' || i AS serial, uuid, mac, '\x00'::bytea AS secret,
		jsonb_build_object('serial', 'SN' || i, 'productUuid', uuid, 'macs', jsonb_build_array(mac), 'gpuUuids', jsonb_build_array()) AS claims,
		md5('number' || i) AS number, sha256(('csr' || i)::bytea) AS csr, sha256(('key' || i)::bytea) AS key,
		now() - interval '1 hour' AS before, now() + interval '1 day' AS later
		FROM (SELECT i, '4c4c4544-0051-3010-8052-' || lpad(i::text, 12, '0') AS uuid,
			'00:25:90:' || regexp_replace(lpad(to_hex(i), 6, '0'), '(..)(..)(..)', '\1:\2:\3') AS mac FROM generate_series(1, $nodes) AS i) AS n) AS rows`
	sqliteRows = `(SELECT 'nd_' || printf('%026d', i) AS node, 'jt_' || printf('%026d', i / 10000 + 1) AS token,
		'sn' || i AS serial, uuid, mac, x'00' AS secret,
		json_object('serial', 'SN' || i, 'productUuid', uuid, 'macs', json_array(mac), 'gpuUuids', json_array()) AS claims,
		lower(hex(randomblob(16))) AS number, randomblob(32) AS csr, randomblob(32) AS key, $before AS before, $later AS later
		FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $nodes)
			SELECT i, printf('4c4c4544-0051-3010-8052-%012d', i) AS uuid,
			printf('00:25:90:%02x:%02x:%02x', i / 65536, i / 256 % 256, i % 256) AS mac FROM n)) AS rows`
)

var nodeStatements = []string{
	`INSERT INTO join_tokens (id, tenant_id, pool_id, secret_sha256, max_uses, uses, allow_reclaim, created_at, created_by, expires_at, ended_at)
		SELECT DISTINCT token, '$tenant', '$pool', secret, 10000, 10000, false, before, '$tenant/bench', later, before FROM $rows`,
	`INSERT INTO nodes (id, tenant_id, pool_id, trust, claims, agent_version, token_id, created_at, joined_at, confirmed_at, last_seen_at)
		SELECT node, '$tenant', '$pool', 'tenant-owned', claims, '0.1.0', token, before, before, before, before FROM $rows`,
	`INSERT INTO node_identifiers (tenant_id, pool_id, kind, value, holder, node_id)
		SELECT '$tenant', '$pool', 'serial', serial, '', node FROM $rows`,
	`INSERT INTO node_identifiers (tenant_id, pool_id, kind, value, holder, node_id)
		SELECT '$tenant', '$pool', 'product-uuid', uuid, '', node FROM $rows`,
	`INSERT INTO node_identifiers (tenant_id, pool_id, kind, value, holder, node_id)
		SELECT '$tenant', '$pool', 'mac', mac, '', node FROM $rows`,
	`INSERT INTO node_certificates (serial, node_id, csr_sha256, key_sha256, new_key, trust, not_before, not_after, created_at, chain, confirmed_at)
		SELECT number, node, $csr, $key, true, 'tenant-owned', before, later, before, '$chain', before FROM $rows`,
	`INSERT INTO join_uses (token_id, csr_sha256, node_id, serial, reclaimed, claimed_at)
		SELECT n.token_id, c.csr_sha256, n.id, c.serial, false, n.created_at FROM nodes AS n JOIN node_certificates AS c ON c.node_id = n.id`,
}

func postgresNodes(ctx context.Context, db *sql.DB, nodes int) error {
	db.SetMaxOpenConns(1) // settings hold for a connection
	return perform(ctx, db, append(append([]string{"SET session_replication_role = replica", "SET synchronous_commit = off"},
		nodeSeed(nodes, "$rows", postgresRows, "$csr", "encode(csr, 'hex')", "$key", "encode(key, 'hex')")...),
		"RESET session_replication_role", "VACUUM (ANALYZE) nodes", "ANALYZE", "CHECKPOINT"))
}

// sqliteNodes leaves out ANALYZE, as bcserver does: SQLite plans without statistics.
func sqliteNodes(ctx context.Context, db *sql.DB, nodes int) error {
	db.SetMaxOpenConns(1)
	rows := strings.NewReplacer("$before", sqliteTime("-1 hour"), "$later", sqliteTime("+1 day")).Replace(sqliteRows)
	return perform(ctx, db, append(append([]string{"PRAGMA cache_size = -400000", "BEGIN"},
		nodeSeed(nodes, "$rows", rows, "$csr", "lower(hex(csr))", "$key", "lower(hex(key))")...),
		"COMMIT", "PRAGMA wal_checkpoint(TRUNCATE)"))
}

// nodeSeed are the statements in the words of a database.
func nodeSeed(nodes int, words ...string) []string {
	of := strings.NewReplacer(append(words, "$tenant", tenant, "$pool", pool, "$chain", seedChain)...)
	var out []string
	for _, s := range nodeStatements {
		out = append(out, strings.ReplaceAll(of.Replace(s), "$nodes", strconv.Itoa(nodes)))
	}
	return out
}
