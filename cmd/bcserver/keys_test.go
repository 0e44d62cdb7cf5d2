package main_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

var keyForm = regexp.MustCompile(`^bck_ak_[0-9a-z]+\.[0-9A-Za-z]{49}\n$`)

// TestKeysCreate_PrintsAKeyThatWorks holds that a key made at the database, also
// while a server runs on it, is printed once and works at once.
func TestKeysCreate_PrintsAKeyThatWorks(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		s := serve(t, storetest.EmptyURL(t, kind))
		withLab(t, s, s.admin(t))
		list := object{"tenantId": "acme", "poolId": "lab"}
		for i, role := range []string{"tenant-admin", "pool-operator", "pool-auditor"} {
			args := []string{"keys", "create", "--db", s.db, "--data", s.data, "--tenant", "acme", "--identity", "by-hand", "--role", role}
			if role != "tenant-admin" {
				args = append(args, "--pool", "lab")
			}
			e := runWith(t, setting{}, args...)
			if e.code != 0 || !keyForm.MatchString(e.stdout) {
				t.Fatalf("ended with %d, stdout %q, stderr %q", e.code, e.stdout, e.stderr)
			}
			key := strings.TrimSpace(e.stdout)
			if strings.Contains(e.stderr, key[len(key)-40:]) {
				t.Error("the key is on stderr too")
			}
			ok[object](t, s.call(t, key, "joinTokens.list", list))
			wantNumber(t, connect(t, s.db), i+1, allAPIKeys+" WHERE identity = 'by-hand' AND created_by = 'platform/bcserver'")
		}
		wantNumber(t, connect(t, s.db), 3, "SELECT count(*) FROM events WHERE type = 'security.api-key.created' AND source = '/tenant/acme' AND subject IN (SELECT id FROM api_keys WHERE identity = 'by-hand')")
	})
}

// TestKeysCreate_ManyAtOnce holds that keys are made one beside the other, by
// processes of their own, while a server writes.
func TestKeysCreate_ManyAtOnce(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		s := serve(t, storetest.EmptyURL(t, kind))
		ops := withLab(t, s, s.admin(t))
		var makers []*process
		for i := range 6 {
			makers = append(makers, launch(t, setting{}, "keys", "create", "--db", s.db, "--data", s.data,
				"--tenant", "acme", "--identity", fmt.Sprint("maker", i), "--role", "pool-auditor"))
		}
		for i := range 40 {
			ok[minted](t, s.call(t, ops, "joinTokens.create", mint(fmt.Sprint("beside-", i))))
		}
		for _, p := range makers {
			if code := p.exit(t); code != 0 || !keyForm.MatchString(p.stdout.String()) {
				t.Errorf("ended with %d, stdout %q", code, p.stdout)
			}
		}
		db := connect(t, s.db)
		wantNumber(t, db, 6, allAPIKeys+" WHERE identity LIKE 'maker%'")
		wantNumber(t, db, 40, "SELECT count(*) FROM join_tokens")
	})
}

// TestKeysCreate_WrongValuesAreRefused holds that the rules of apiKeys.create
// hold here too, in the words of the flags, and that nothing is made.
func TestKeysCreate_WrongValuesAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags map[string]string
		says  []string
	}{
		"nothing":               {nil, []string{"--tenant", "--identity", "--role"}},
		"no tenant":             {map[string]string{"identity": "ops", "role": "tenant-admin"}, []string{"--tenant", "pattern"}},
		"no identity":           {map[string]string{"tenant": "acme", "role": "tenant-admin"}, []string{"--identity", "pattern"}},
		"no role":               {map[string]string{"tenant": "acme", "identity": "ops"}, []string{"--role", "enum", "platform-admin, tenant-admin, pool-operator, pool-auditor"}},
		"blank in tenant":       {map[string]string{"tenant": "ac me", "identity": "ops", "role": "tenant-admin"}, []string{"--tenant", "pattern"}},
		"long identity":         {map[string]string{"tenant": "acme", "identity": strings.Repeat("o", 129), "role": "tenant-admin"}, []string{"--identity", "128"}},
		"unknown role":          {map[string]string{"tenant": "acme", "identity": "ops", "role": "root"}, []string{"--role", "enum"}},
		"platform's role":       {map[string]string{"tenant": "acme", "identity": "ops", "role": "platform-admin"}, []string{"--role", "platform", "grant"}},
		"pool and no pool role": {map[string]string{"tenant": "acme", "identity": "ops", "role": "tenant-admin", "pool": "lab"}, []string{"--pool", "tenant-admin", "unsupported"}},
		"slash in pool":         {map[string]string{"tenant": "acme", "identity": "ops", "role": "pool-auditor", "pool": "a/b"}, []string{"--pool", "pattern"}},
		"no UTF-8":              {map[string]string{"tenant": "acme\xff", "identity": "ops", "role": "tenant-admin"}, []string{"--tenant", "pattern"}},
		"several at once":       {map[string]string{"tenant": "", "identity": " ", "role": "root"}, []string{"--tenant", "--identity", "--role"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			runWith(t, setting{dir: dir}, append([]string{"keys", "create"}, asArgs(c.flags)...)...).refused(t, 1, c.says...)
			wantEmpty(t, dir)
		})
	}
}

func TestKeysCreate_UnknownPoolIsRefused(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		url := storetest.EmptyURL(t, kind)
		runWith(t, setting{}, "keys", "create", "--db", url, "--tenant", "acme", "--identity", "ops", "--role", "pool-auditor", "--pool", "lab").
			refused(t, 1, "--pool", "no such pool")
		wantNumber(t, connect(t, url), 1, allAPIKeys) // the admin's
	})
}

// TestKeysCreate_OnAnEmptyDatabaseIsTheFirstStart holds that the admin key is made
// before any other, so that there is never a database with keys and without it.
func TestKeysCreate_OnAnEmptyDatabaseIsTheFirstStart(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		url, data := storetest.EmptyURL(t, kind), filepath.Join(t.TempDir(), "data")
		e := runWith(t, setting{}, "keys", "create", "--db", url, "--data", data, "--tenant", "acme", "--identity", "ops", "--role", "tenant-admin")
		if e.code != 0 || !keyForm.MatchString(e.stdout) {
			t.Fatalf("ended with %d, stdout %q, stderr %q", e.code, e.stdout, e.stderr)
		}
		s := launchServer(t, setting{}, data, url)
		s.ready(t)
		isPlatformAdmin(t, s, readKey(t, data))
		ok[object](t, s.call(t, strings.TrimSpace(e.stdout), "sites.list", object{"tenantId": "acme"}))
		wantNumber(t, connect(t, url), 2, allAPIKeys)
	})
}
