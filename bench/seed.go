package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// A population is what a pool holds: tokens of which some are live, while the
// rest have expired and were swept.
type population struct{ tokens, live int }

// fewTokens is the pool that we are compared with: as many live tokens as make
// full pages, at the start and in the middle, and nothing else.
var (
	fewTokens  = population{tokens: 1_000, live: 1_000}
	manyTokens = population{tokens: 1_000_000, live: 10_000}
)

// columns are those of join_tokens that a seed fills.
const columns = `id, tenant_id, pool_id, secret_sha256, max_uses, uses, expect_mac,
	allow_reclaim, hosted, created_at, created_by, expires_at, ended_at`

// Rows lie in the order in which they were made, the live ones last, while ids are
// hashes: live tokens lie anywhere between ended ones. Indexes are made afterwards,
// which is faster by far.

// seedPostgres fills the pool. Foreign keys are not checked for every row.
func seedPostgres(ctx context.Context, db *sql.DB, p population) error {
	db.SetMaxOpenConns(1) // settings hold for a connection
	indexes, err := texts(ctx, db, `SELECT indexdef FROM pg_indexes WHERE tablename = 'join_tokens' AND indexname <> 'join_tokens_pkey'`)
	if err != nil {
		return err
	}
	names, err := texts(ctx, db, `SELECT indexname FROM pg_indexes WHERE tablename = 'join_tokens' AND indexname <> 'join_tokens_pkey'`)
	if err != nil {
		return err
	}
	statements := []string{
		"SET session_replication_role = replica",
		"SET synchronous_commit = off",
		"SET maintenance_work_mem = '256MB'",
		"ALTER TABLE join_tokens DROP CONSTRAINT join_tokens_pkey CASCADE",
	}
	for _, name := range names {
		statements = append(statements, "DROP INDEX "+name)
	}
	statements = append(statements, fmt.Sprintf(`INSERT INTO join_tokens (`+columns+`)
		SELECT 'jt_' || md5(i::text) || substr(md5('more' || i), 1, 20), '%s', '%s', sha256(i::text::bytea), 8, 1,
			'a0:36:9f:7b:0c:1d', true, 'kubernetes', now() - interval '1 day', '%s/bench',
			CASE WHEN i > %d THEN now() + interval '1 day' ELSE now() - interval '1 hour' END,
			CASE WHEN i > %d THEN NULL ELSE now() - interval '1 minute' END
		FROM generate_series(1, %d) AS i`, tenant, pool, tenant, p.tokens-p.live, p.tokens-p.live, p.tokens),
		"ALTER TABLE join_tokens ADD PRIMARY KEY (id)")
	statements = append(statements, indexes...)
	return perform(ctx, db, append(statements, "RESET session_replication_role", "VACUUM (ANALYZE) join_tokens", "ANALYZE", "CHECKPOINT"))
}

// seedSQLite is the same, in one transaction.
func seedSQLite(ctx context.Context, db *sql.DB, p population) error {
	db.SetMaxOpenConns(1)
	indexes, err := texts(ctx, db, "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'join_tokens' AND sql IS NOT NULL")
	if err != nil {
		return err
	}
	names, err := texts(ctx, db, "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'join_tokens' AND sql IS NOT NULL")
	if err != nil {
		return err
	}
	statements := []string{"PRAGMA cache_size = -400000", "BEGIN"}
	for _, name := range names {
		statements = append(statements, "DROP INDEX "+name)
	}
	statements = append(statements, fmt.Sprintf(`INSERT INTO join_tokens (`+columns+`)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		SELECT 'jt_' || lower(hex(randomblob(26))), '%s', '%s', randomblob(32), 8, 1, 'a0:36:9f:7b:0c:1d', true, 'kubernetes',
			%s, '%s/bench', CASE WHEN i > %d THEN %s ELSE %s END, CASE WHEN i > %d THEN NULL ELSE %s END
		FROM n`, p.tokens, tenant, pool, sqliteTime("-1 day"), tenant,
		p.tokens-p.live, sqliteTime("+1 day"), sqliteTime("-1 hour"), p.tokens-p.live, sqliteTime("-1 minute")))
	statements = append(statements, indexes...)
	return perform(ctx, db, append(statements, "COMMIT", "ANALYZE", "PRAGMA wal_checkpoint(TRUNCATE)"))
}

func perform(ctx context.Context, db *sql.DB, statements []string) error {
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("seed: %w", err)
		}
	}
	return nil
}

// sqliteTime is a time in the form in which the store keeps it.
func sqliteTime(offset string) string {
	return `strftime('%Y-%m-%d %H:%M:%S', 'now', '` + offset + `') || '.123456+00:00'`
}

func texts(ctx context.Context, db *sql.DB, query string) (list []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		list = append(list, strings.TrimSpace(text))
	}
	return list, rows.Err()
}

// middle is the id in the middle of the live tokens, in the order of a list.
func middle(ctx context.Context, db *sql.DB, p population) (id string, err error) {
	err = db.QueryRowContext(ctx, fmt.Sprintf(`SELECT id FROM join_tokens
		WHERE tenant_id = '%s' AND pool_id = '%s' AND ended_at IS NULL ORDER BY id LIMIT 1 OFFSET %d`,
		tenant, pool, p.live/2)).Scan(&id)
	return id, err
}
