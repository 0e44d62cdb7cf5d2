package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// auditorsMint lets an auditor do what no built-in role lets it do.
const auditorsMint = `permit (principal in Role::"pool-auditor", action == Action::"compute:join-tokens:create", resource is ComputePool);`

// A place is where a server is told to keep and take everything.
type place struct{ data, db, cert, key, policies string }

func newPlace(t testing.TB) place {
	t.Helper()
	dir := t.TempDir()
	cert, key := certificate(t, dir)
	p := place{filepath.Join(dir, "data"), filepath.Join(dir, "else.db"), cert, key, filepath.Join(dir, "policies")}
	if err := os.Mkdir(p.policies, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.policies, "auditors.cedar"), []byte(auditorsMint), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// serveFlags are the flags of serve with values that work.
func (p place) serveFlags() map[string]string {
	return map[string]string{
		"listen": "127.0.0.1:0", "data": p.data, "db": "sqlite:" + p.db, "tls-cert": p.cert, "tls-key": p.key,
		"policy-dir": p.policies, "log-level": "trace", "log-format": "json",
	}
}

// wrongFlags are the flags of serve with values of which none works.
func wrongFlags() map[string]string {
	return map[string]string{
		"listen": "nowhere", "data": "/dev/null/data", "db": "mysql://nowhere", "tls-cert": "/dev/null/cert", "tls-key": "/dev/null/key",
		"policy-dir": "/dev/null/policies", "log-level": "loud", "log-format": "xml",
	}
}

func asEnv(flags map[string]string) (env []string) {
	for name, value := range flags {
		env = append(env, "BC_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))+"="+value)
	}
	return env
}

func asArgs(flags map[string]string) (args []string) {
	for name, value := range flags {
		args = append(args, "--"+name, value)
	}
	return args
}

// TestEnvironment_SetsEveryFlag holds that each flag of serve can be given as
// BC_…, and that the flag wins.
func TestEnvironment_SetsEveryFlag(t *testing.T) {
	t.Parallel()
	t.Run("environment alone", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		p.holds(t, setting{env: asEnv(p.serveFlags())}, "serve")
	})
	t.Run("flags win", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		p.holds(t, setting{env: asEnv(wrongFlags())}, append([]string{"serve"}, asArgs(p.serveFlags())...)...)
	})
}

// holds checks that a server takes everything from its place.
func (p place) holds(t *testing.T, with setting, args ...string) {
	s := &server{process: launch(t, with, args...), data: p.data, db: "sqlite:" + p.db}
	s.ready(t)
	if !strings.HasPrefix(s.url, "https://127.0.0.1:") {
		t.Errorf("it listens on %s", s.url) // --listen, --tls-cert, --tls-key
	}
	s.client = trusting(t, p.cert)
	admin := s.admin(t)                            // --data
	wantNumber(t, connect(t, s.db), 1, allAPIKeys) // --db
	withLab(t, s, admin)
	auditor := newKey(t, s, admin, "eve", "pool-auditor")
	ok[minted](t, s.call(t, auditor, "joinTokens.create", mint("by-policy"))) // --policy-dir
	statements := 0
	for line := range strings.Lines(s.stderr.String()) {
		var record struct{ Level, Msg string }
		if err := json.Unmarshal([]byte(line), &record); err != nil { // --log-format
			t.Errorf("a line of the log is no JSON: %s", line)
		}
		if record.Level == "TRACE" && record.Msg == "statement" { // --log-level
			statements++
		}
	}
	if statements == 0 {
		t.Error("the log has no statement")
	}
}

const allAPIKeys = "SELECT count(*) FROM api_keys"

// TestEnvironment_TestKnowsEveryFlag holds that the test above leaves no flag out.
func TestEnvironment_TestKnowsEveryFlag(t *testing.T) {
	t.Parallel()
	var known []string
	for name := range wrongFlags() {
		known = append(known, name)
	}
	help := runWith(t, setting{}, "serve", "--help").stdout
	for _, flag := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`).FindAllStringSubmatch(help, -1) {
		if name := flag[1]; name != "help" && !slices.Contains(known, name) {
			t.Errorf("--%s is not tested", name)
		}
	}
}

func TestEnvironment_SetsFlagsOfKeysCreate(t *testing.T) {
	t.Parallel()
	db := "sqlite:" + filepath.Join(t.TempDir(), "bc.db")
	env := []string{"BC_DB=" + db, "BC_TENANT=acme", "BC_IDENTITY=ops", "BC_ROLE=tenant-admin"}
	if e := runWith(t, setting{env: env}, "keys", "create", "--identity", "dev"); e.code != 0 {
		t.Fatalf("ended with %d: %s", e.code, e.stderr)
	}
	wantNumber(t, connect(t, db), 1, allAPIKeys+" WHERE tenant_id = 'acme' AND identity = 'dev' AND role = 'tenant-admin'")
	runWith(t, setting{env: append(env, "BC_POOL=lab")}, "keys", "create").refused(t, 1, "--pool")
}
