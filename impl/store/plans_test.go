package store_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// statements is a log handler that keeps the statements it is given.
type statements struct {
	slog.Handler
	mu  *sync.Mutex
	all *[]string
}

func newStatements() statements {
	return statements{slog.DiscardHandler, new(sync.Mutex), new([]string)}
}

// Enabled implements [slog.Handler].
func (s statements) Enabled(_ context.Context, level slog.Level) bool {
	return level >= store.LevelTrace
}

// Handle implements [slog.Handler].
func (s statements) Handle(_ context.Context, record slog.Record) error {
	record.Attrs(func(a slog.Attr) bool {
		if a.Key == "sql" {
			s.mu.Lock()
			defer s.mu.Unlock()
			*s.all = append(*s.all, a.Value.String())
		}
		return true
	})
	return nil
}

// take returns the statements so far and forgets them.
func (s statements) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := *s.all
	*s.all = nil
	return all
}

// traced opens a database of which the statements are kept.
func traced(t *testing.T, kind storetest.Kind) (*store.DB, statements) {
	log := newStatements()
	return storetest.Open(t, store.Config{URL: storetest.URL(t, kind), Log: slog.New(log)}), log
}

// plan returns how the database runs the one statement with text in it.
func plan(t *testing.T, db *store.DB, log statements, text string) string {
	t.Helper()
	explain := "EXPLAIN QUERY PLAN "
	if isPostgres(db) {
		explain = "EXPLAIN "
	}
	for _, statement := range log.take() {
		if !strings.Contains(statement, text) {
			continue
		}
		var lines []string
		if isPostgres(db) {
			must(t, db.Query(t.Context(), explain+statement).Scan(&lines))
		} else {
			var ids, parents, unused []int
			must(t, db.Query(t.Context(), explain+statement).Scan(&ids, &parents, &unused, &lines))
		}
		return strings.Join(lines, "\n")
	}
	t.Fatalf("no statement has %q in it", text)
	return ""
}

func TestPlans_UseThePartialIndexes(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		db, log := traced(t, kind)
		storetest.ClockOf(db).Set(noon)
		withLab(t, db)
		mint(t, db, tokenID(0), nil)
		rows := "20000"
		if !isPostgres(db) {
			rows = "2000" // its plans do not depend on how many there are
		}
		// Ten pools with 2,000 tokens each, a quarter of them live, in no order, as
		// ids are hashes; a hundred tenants with 200 events each.
		const numbers = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %s) "
		const token = `INSERT INTO join_tokens (id, tenant_id, pool_id, secret_sha256, max_uses, uses, allow_reclaim, created_at, created_by, expires_at, ended_at) `
		write(t, db, func(tx *store.Tx) error {
			for _, statement := range []string{
				"INSERT INTO pools " + fmt.Sprintf(numbers, "10") + `SELECT tenant_id, 'pool' || n, site_tenant_id, site_id, agent, attestor,
				platform_operated, allow_virtual_machines, erase, created_at, created_by, updated_at FROM numbers, pools WHERE pool_id = 'lab'`,
				token + fmt.Sprintf(numbers, rows) + `SELECT 'jt_' || (1000000 + n * 7919 % 20000), tenant_id, 'pool' || (n % 10 + 1), secret_sha256, 1, 0, FALSE,
				created_at, created_by, expires_at, CASE WHEN n / 10 % 4 = 0 THEN NULL ELSE created_at END FROM numbers, join_tokens`,
				"INSERT INTO events (id, position, type, tenant_id, pool_id, source, subject, time, data) " + fmt.Sprintf(numbers, rows) +
					"SELECT 'old_' || n, n, 'x', 'tenant' || (n % 100), 'pool' || (n / 100 % 10), 's', 's', created_at, '{}' FROM numbers, join_tokens WHERE join_tokens.id = ?",
				"UPDATE event_position SET last = 20000",
				"ANALYZE",
			} {
				if err := tx.Exec(t.Context(), statement, tokenID(0)); err != nil {
					return err
				}
			}
			return nil
		})
		for _, c := range []struct {
			name, index, statement string
			run                    func() error
		}{
			{"live tokens", "join_tokens_live", "expires_at >", func() error {
				_, _, err := db.JoinTokens(t.Context(), store.JoinTokenQuery{TenantID: "acme", PoolID: "pool7", After: "jt_1010000", Limit: 50})
				return err
			}},
			{"all tokens", "join_tokens_all", `FROM "join_tokens"`, func() error {
				_, _, err := db.JoinTokens(t.Context(), store.JoinTokenQuery{TenantID: "acme", PoolID: "pool7", After: "jt_1010000", Limit: 50, IncludeInactive: true})
				return err
			}},
			{"expired tokens", "join_tokens_expiring", "ORDER BY expires_at", func() error {
				_, err := db.EndJoinTokens(t.Context(), 50)
				return err
			}},
			{"spent tokens", "join_tokens_spent", "max_uses - uses", func() error {
				_, err := db.EndJoinTokens(t.Context(), 50)
				return err
			}},
			{"new events", "events_unpositioned", "row_number()", func() error {
				_, err := db.PositionEvents(t.Context(), 50)
				return err
			}},
			{"a tenant's events", "events_of_tenant", `FROM "events"`, func() error {
				_, err := db.Events(t.Context(), store.EventQuery{TenantID: "tenant7", After: 10_000, Limit: 50})
				return err
			}},
			{"a pool's events", "events_of_pool", `FROM "events"`, func() error {
				_, err := db.Events(t.Context(), store.EventQuery{TenantID: "tenant7", PoolID: "pool7", After: 10_000, Limit: 50})
				return err
			}},
		} {
			log.take()
			must(t, c.run())
			plan := plan(t, db, log, c.statement)
			if !strings.Contains(plan, c.index) || strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "Seq Scan on join_tokens") {
				t.Errorf("%s: want index %s, got\n%s", c.name, c.index, plan)
			}
		}
	})
}

func TestMintToken_FewStatements(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		db, log := traced(t, kind)
		withLab(t, db)
		log.take()
		mint(t, db, tokenID(1), nil)
		got := log.take()
		want := []string{"BEGIN", `INSERT INTO "join_tokens"`, `INSERT INTO "events"`, "COMMIT"}
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || !strings.HasPrefix(got[i], want[i]) {
				t.Fatalf("statements are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if strings.Contains(got[i], "RETURNING") || strings.Contains(got[i], "$1") {
				t.Errorf("not lean: %s", got[i])
			}
		}
	})
}
