package main_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// whoAmI is what the key of platform/admin alone can do in an empty database.
func isPlatformAdmin(t testing.TB, s *server, key string) {
	t.Helper()
	ok[object](t, s.call(t, key, "sites.create", object{"tenantId": "platform", "siteId": "fsn"}))
}

const adminRow = allAPIKeys + " WHERE tenant_id = 'platform' AND identity = 'admin' AND role = 'platform-admin'"

// TestFirstStart_LeavesTheAdminKey holds that the first start makes one key, in
// a file for its owner alone, that it works, and that a second start keeps it.
func TestFirstStart_LeavesTheAdminKey(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		url, data := storetest.EmptyURL(t, kind), filepath.Join(t.TempDir(), "deep", "data")
		first := launchServer(t, setting{}, data, url)
		first.ready(t)
		key := first.admin(t)
		info, err := os.Stat(filepath.Join(data, "admin.key"))
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("admin.key has mode %v, %v", info.Mode(), err)
		}
		if !strings.Contains(first.stderr.String(), filepath.Join(data, "admin.key")) {
			t.Error("the path of the key is not told")
		}
		isPlatformAdmin(t, first, key)
		db := connect(t, url)
		wantNumber(t, db, 1, adminRow)
		first.signal(t, syscall.SIGTERM)
		first.exit(t)

		second := launchServer(t, setting{}, data, url)
		second.ready(t)
		if again := second.admin(t); again != key {
			t.Error("the second start made another key")
		}
		isPlatformAdmin(t, second, key)
		wantNumber(t, db, 1, allAPIKeys)
	})
}

// TestFirstStart_KeyIsNowhereElse holds that the key is in its file and in no
// output, even with every statement logged, and in no table.
func TestFirstStart_KeyIsNowhereElse(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		s := serve(t, storetest.EmptyURL(t, kind), "--log-level", "trace")
		key := s.admin(t)
		isPlatformAdmin(t, s, key)
		secret := key[strings.IndexByte(key, '.')+1:]
		places := map[string][]byte{"stdout": []byte(s.stdout.String()), "/metrics": s.get(t, "/metrics").body}
		if kind == storetest.SQLite {
			for _, suffix := range []string{"", "-wal"} {
				places["the database file"+suffix] = readFile(t, strings.TrimPrefix(s.db, "sqlite:")+suffix)
			}
		} else {
			places["the tables"] = dump(t, s.db)
		}
		s.signal(t, syscall.SIGTERM)
		s.exit(t)
		places["stderr"] = []byte(s.stderr.String())
		for place, text := range places {
			if len(text) == 0 {
				t.Errorf("%s is empty: the test looks at nothing", place)
			}
			for _, part := range []string{secret[:24], secret[24:48]} {
				if bytes.Contains(text, []byte(part)) {
					t.Errorf("the admin key is in %s", place)
				}
			}
		}
	})
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// dump returns all rows of a Postgres database.
func dump(t testing.TB, url string) (all []byte) {
	t.Helper()
	db := connect(t, url)
	var tables string
	if err := db.QueryRow("SELECT string_agg(tablename, ',') FROM pg_tables WHERE schemaname = 'public'").Scan(&tables); err != nil {
		t.Fatal(err)
	}
	for table := range strings.SplitSeq(tables, ",") {
		var rows string
		if err := db.QueryRow("SELECT coalesce(string_agg(r::text, E'\\n'), '') FROM " + table + " AS r").Scan(&rows); err != nil {
			t.Fatal(err)
		}
		all = append(append(all, table...), rows...)
	}
	return all
}

// TestFirstStart_OfManyReplicasMakesOneKey holds that of processes that start at
// once on one empty database one makes the key, and all serve.
func TestFirstStart_OfManyReplicasMakesOneKey(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		url := storetest.EmptyURL(t, kind)
		var all []*server
		for range 8 {
			all = append(all, launchServer(t, setting{}, t.TempDir(), url))
		}
		key := ""
		for _, s := range all {
			s.ready(t)
			if _, err := os.Stat(filepath.Join(s.data, "admin.key")); err == nil {
				if key != "" {
					t.Error("there are two admin keys")
				}
				key = s.admin(t)
			}
		}
		if key == "" {
			t.Fatal("there is no admin key")
		}
		for _, s := range all {
			isPlatformAdmin(t, s, key)
		}
		db := connect(t, url)
		wantNumber(t, db, 1, allAPIKeys)
		wantNumber(t, db, 1, "SELECT count(*) FROM events WHERE type = 'security.api-key.created'")
		wantNumber(t, db, 1, "SELECT count(*) FROM sites")
	})
}

// unauthenticated checks that a key is worth nothing.
func unauthenticated(t testing.TB, s *server, key string) {
	t.Helper()
	if a := s.call(t, key, "sites.list", object{"tenantId": "platform"}); a.status != http.StatusUnauthorized {
		t.Errorf("status %d, want 401: %s", a.status, a.body)
	}
}
