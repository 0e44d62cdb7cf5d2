package server_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/server"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// configFor is a configuration for a database that is not migrated yet.
func configFor(t *testing.T, kind storetest.Kind) server.Config {
	t.Helper()
	return server.Config{Listen: "127.0.0.1:0", URL: storetest.EmptyURL(t, kind), Data: filepath.Join(t.TempDir(), "data"), Log: traced(t), SealKeys: sealKeys(t)}
}

// traced is a log that is scanned for secrets.
func traced(t *testing.T) *slog.Logger {
	t.Helper()
	f := left.open(t, "log")
	t.Cleanup(func() { f.close(t) })
	return slog.New(slog.NewTextHandler(f, &slog.HandlerOptions{Level: store.LevelTrace}))
}

// TestFirstStart_AdminKey holds that the first start writes one key, for its
// owner's eyes alone, that the key works, and that later starts make none.
func TestFirstStart_AdminKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		file := filepath.Join(s.data, "admin.key")
		info, err := os.Stat(file)
		if err != nil || info.Mode() != 0o600 {
			t.Fatalf("mode %v, error %v", info.Mode(), err)
		}
		text, err := os.ReadFile(file)
		if err != nil || string(text) != s.admin+"\n" || !keyForm.MatchString(s.admin) {
			t.Errorf("the file does not hold a key and a line's end (error: %v)", err)
		}
		keys := as[api.APIKeysListOutput](t, s.call(t, s.admin, "apiKeys.list", object{"tenantId": "platform"})).APIKeys
		if len(keys) != 1 || keys[0].Identity != "admin" || keys[0].Role != "platform-admin" {
			t.Errorf("keys %+v", keys)
		}
		if log := s.log.text(t); !strings.Contains(log, file) {
			t.Error("the log does not say where the key is")
		}
		other := s.replica(t)
		if _, err := os.Stat(filepath.Join(other.data, "admin.key")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("another replica made a key too (error: %v)", err)
		}
		as[api.SitesListOutput](t, other.call(t, s.admin, "sites.list", object{"tenantId": "platform"}))
	})
}

// TestFirstStart_Replicas starts many replicas at once on one empty database:
// one key, in one folder.
func TestFirstStart_Replicas(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		const replicas = 6
		config, dirs, errs := configFor(t, kind), make([]string, replicas), make([]error, replicas)
		for i := range dirs {
			dirs[i] = t.TempDir()
		}
		together(replicas, func(i int) {
			mine := config
			mine.Data = dirs[i]
			db, err := server.OpenMigrated(t.Context(), mine)
			if errs[i] = err; err == nil {
				errs[i] = db.Close()
			}
		})
		files := 0
		for i, dir := range dirs {
			if errs[i] != nil {
				t.Errorf("replica %d: %v", i, errs[i])
			}
			if text, err := os.ReadFile(filepath.Join(dir, "admin.key")); err == nil {
				files++
				left.secret(strings.TrimSpace(string(text)))
			}
		}
		if files != 1 {
			t.Errorf("there are %d files with keys", files)
		}
	})
}

// TestFirstStart_TakesUpAnEarlierOne holds that the file of a start that did not
// live to store its hash is taken up, and that any other file is left alone.
func TestFirstStart_TakesUpAnEarlierOne(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		config := configFor(t, kind)
		if err := os.MkdirAll(config.Data, 0o700); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(config.Data, "admin.key")
		for _, text := range []string{"", "something else\n", "bck_ak_" + x26 + "." + x(49) + "\n"} {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := server.OpenMigrated(t.Context(), config); !errors.Is(err, server.ErrConfig) || !strings.Contains(err.Error(), file) {
				t.Errorf("with %q in the file: %v", text, err)
			}
			if kept, err := os.ReadFile(file); err != nil || string(kept) != text {
				t.Errorf("the file became %q (error: %v)", kept, err)
			}
		}
		key := forged("bck_", "ak_"+x26)
		if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		db, err := server.OpenMigrated(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if stored, err := db.APIKey(t.Context(), "ak_"+x26); err != nil || stored.Role != "platform-admin" {
			t.Errorf("stored %+v (error: %v)", stored, err)
		}
	})
}

// TestCreateKey_AtTheMachine holds bcserver keys create: the rules of
// apiKeys.create, and no caller to be beyond.
func TestCreateKey_AtTheMachine(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		config := server.Config{URL: s.dbURL, Data: s.data, Log: traced(t), SealKeys: sealKeys(t)}
		create := func(tenant, identity, role, pool string) (string, error) {
			key, err := server.CreateKey(t.Context(), config, server.KeyRequest{Tenant: tenant, Identity: identity, Role: role, Pool: pool})
			if err == nil {
				left.secret(key.Reveal())
			}
			return key.Reveal(), err
		}
		for _, c := range [][4]string{{"acme", "ops", "tenant-admin", ""}, {"acme", "bot", "pool-operator", "lab"}, {"platform", "root", "platform-admin", ""}} {
			key, err := create(c[0], c[1], c[2], c[3])
			if err != nil || !keyForm.MatchString(key) {
				t.Fatalf("%v: %v", c, err)
			}
			if a := s.call(t, key, "joinTokens.list", object{"tenantId": c[0], "poolId": "lab"}); a.status != 200 {
				t.Errorf("the key of %v: %d %s", c, a.status, a.body)
			}
		}
		for _, c := range []struct {
			tenant, identity, role, pool, field, rule string
		}{
			{"acme", "ops", "platform-admin", "", "role", "grant"},
			{"acme", "ops", "tenant-admin", "lab", "poolId", "unsupported"},
			{"acme", "ops", "root", "", "role", "enum"},
			{"ac me", "ops", "tenant-admin", "", "tenantId", "pattern"},
			{"acme", "", "tenant-admin", "", "identity", "pattern"},
		} {
			var violations strictjson.Violations
			if _, err := create(c.tenant, c.identity, c.role, c.pool); !errors.As(err, &violations) || len(violations) != 1 || violations[0].Field != c.field || string(violations[0].Rule) != c.rule {
				t.Errorf("%+v: %v", c, err)
			}
		}
		if _, err := create("acme", "bot", "pool-operator", "missing"); !fault.Is(err, problem.NotFound) {
			t.Errorf("a missing pool: %v", err)
		}
	})
}

// TestConfig_Refused holds what a server is not started with.
func TestConfig_Refused(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*server.Config){
		"the world without TLS": func(c *server.Config) { c.Listen = "0.0.0.0:0" },
		"every address":         func(c *server.Config) { c.Listen = ":0" },
		"a name":                func(c *server.Config) { c.Listen = "example.org:443" },
		"no port":               func(c *server.Config) { c.Listen = "127.0.0.1" },
		"half of TLS":           func(c *server.Config) { c.TLSCert = "x" },
		"a missing policy dir":  func(c *server.Config) { c.PolicyDir = "/no/such/folder" },
		"no database":           func(c *server.Config) { c.URL = "mysql://x" },
		"a data file":           func(c *server.Config) { c.Data = "/dev/null/data" },
	} {
		config := configFor(t, storetest.SQLite)
		change(&config)
		if s, err := server.New(t.Context(), config); err == nil {
			t.Errorf("started with %s", what)
			s.Close()
		}
	}
	for _, listen := range []string{"127.0.0.1:0", "localhost:0", "[::1]:0", "127.1.2.3:0"} {
		config := configFor(t, storetest.SQLite)
		config.Listen = listen
		s, err := server.New(t.Context(), config)
		if err != nil {
			t.Errorf("%s: %v", listen, err)
			continue
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
