package main_test

import (
	"testing"

	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// every command that opens a database.
func onDatabase(db string) [][]string {
	return [][]string{
		{"serve", "--listen", "127.0.0.1:0", "--db", db},
		{"migrate", "--db", db},
		{"keys", "create", "--db", db, "--tenant", "acme", "--identity", "ops", "--role", "tenant-admin"},
		{"ca", "show", "--db", db},
		{"ca", "rotate", "--db", db},
		{"seal", "rotate", "--db", db},
	}
}

// TestSchema_NewerDatabaseIsRefused holds that a binary leaves a database alone
// whose schema it does not know.
func TestSchema_NewerDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change string
		says   string
	}{
		"newer":  {"INSERT INTO schema_migrations (version, name, sha256, applied_at) VALUES (9999, 'from_the_future', 'ff', '2026-01-01 00:00:00+00')", "9999 (from_the_future)"},
		"other":  {"UPDATE schema_migrations SET name = 'of_another_line' WHERE version = 1", "of_another_line"},
		"edited": {"UPDATE schema_migrations SET sha256 = 'feedfeedfeedfeed' WHERE version = 1", "feedfeed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
				url := storetest.URL(t, kind)
				db := connect(t, url)
				execute(t, db, c.change)
				for _, args := range onDatabase(url) {
					dir := t.TempDir()
					runWith(t, setting{}, append(args, "--data", dir)...).refused(t, 1, c.says)
					wantEmpty(t, dir)
				}
				wantNumber(t, db, 0, allAPIKeys)
			})
		})
	}
}

// TestSchema_NewerDatabaseTakesAReplicaOutOfService holds that a server whose
// database is migrated under it by a newer binary is no longer ready.
func TestSchema_NewerDatabaseTakesAReplicaOutOfService(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		s := serve(t, storetest.URL(t, kind))
		if a := s.get(t, "/readyz"); a.status != 200 {
			t.Fatalf("/readyz answers %d", a.status)
		}
		execute(t, connect(t, s.db), "INSERT INTO schema_migrations (version, name, sha256, applied_at) VALUES (9999, 'from_the_future', 'ff', '2026-01-01 00:00:00+00')")
		s.get(t, "/readyz").refused(t, "UNAVAILABLE")
		if a := s.get(t, "/healthz"); a.status != 200 {
			t.Errorf("/healthz answers %d", a.status)
		}
	})
}

// TestMigrate_IsIdempotent holds that migrate can be run any number of times,
// also while a server runs, and that its first run is the first start.
func TestMigrate_IsIdempotent(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		url, data := storetest.EmptyURL(t, kind), t.TempDir()
		args := []string{"migrate", "--db", url, "--data", data}
		var key string
		for turn := range 4 {
			if turn == 2 {
				s := launchServer(t, setting{}, data, url)
				s.ready(t)
				ok[object](t, s.call(t, key, "sites.list", object{"tenantId": "acme"}))
			}
			e := runWith(t, setting{}, args...)
			if e.code != 0 || e.stdout != "the database is up to date\n" {
				t.Fatalf("turn %d ended with %d, stdout %q, stderr %q", turn, e.code, e.stdout, e.stderr)
			}
			if now := readKey(t, data); turn > 0 && now != key {
				t.Fatalf("turn %d made another admin key", turn)
			} else {
				key = now
			}
		}
		wantNumber(t, connect(t, url), 1, allAPIKeys)
	})
}
