package main_test

import (
	"crypto/tls"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/seal"
)

// auditorsMint lets an auditor do what no built-in role lets it do.
const auditorsMint = `permit (principal in Role::"pool-auditor", action == Action::"compute:join-tokens:create", resource is ComputePool);`

// A place is where a server is told to keep and take everything.
type place struct{ data, db, cert, key, policies, sealKey, ca, placeholders string }

func newPlace(t testing.TB) place {
	t.Helper()
	dir := t.TempDir()
	cert, key := certificate(t, dir)
	p := place{
		filepath.Join(dir, "data"), filepath.Join(dir, "else.db"), cert, key, filepath.Join(dir, "policies"),
		filepath.Join(dir, "else.key"), filepath.Join(dir, "ca"), filepath.Join(dir, "placeholders.yaml"),
	}
	writeFile(t, p.sealKey, seal.NewKeyText())
	writeFile(t, p.placeholders, "rules:\n- {id: ours, kind: serial, exact: [none-of-ours], why: a test}\n")
	writeCA(t, p.ca)
	if err := os.Mkdir(p.policies, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.policies, "auditors.cedar"), []byte(auditorsMint), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// serveFlags are the flags of serve with values that work, but for the kind of TLS.
func (p place) serveFlags() map[string]string {
	return map[string]string{
		"listen": "127.0.0.1:0", "data": p.data, "db": "sqlite:" + p.db, "seal-key-file": p.sealKey, "ca-dir": p.ca,
		"policy-dir": p.policies, "placeholders": p.placeholders, "trusted-proxy": "10.0.0.0/8,192.0.2.1/32",
		"join-rate-per-address": "0.5", "join-burst-per-address": "3", "join-rate": "20", "node-rate": "5", "log-level": "trace", "log-format": "json",
	}
}

// withFiles and withAuto add flags of TLS, of which some exclude others.
func (p place) withFiles(flags map[string]string) map[string]string {
	flags["tls"], flags["tls-cert"], flags["tls-key"] = "files", p.cert, p.key
	return flags
}

func (p place) withAuto(flags map[string]string) map[string]string {
	flags["tls"], flags["tls-host"] = "auto", "bc.example.org,192.0.2.1"
	return flags
}

// wrongFlags are the flags of serve with values of which none works.
func wrongFlags() map[string]string {
	return map[string]string{
		"listen": "nowhere", "data": "/dev/null/data", "db": "mysql://nowhere", "seal-key-file": "/dev/null/key", "ca-dir": "/dev/null/ca",
		"tls": "loud", "tls-cert": "/dev/null/cert", "tls-key": "/dev/null/key", "tls-host": "no name",
		"policy-dir": "/dev/null/policies", "placeholders": "/dev/null/placeholders", "trusted-proxy": "nowhere",
		"join-rate-per-address": "-1", "join-burst-per-address": "0", "join-rate": "NaN", "node-rate": "-2", "log-level": "loud", "log-format": "xml",
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
		p.holds(t, p.cert, setting{bare: true, env: asEnv(p.withFiles(p.serveFlags()))}, "serve")
	})
	t.Run("environment alone, auto", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		p.holds(t, filepath.Join(p.data, "ca.pem"), setting{bare: true, env: asEnv(p.withAuto(p.serveFlags()))}, "serve")
	})
	t.Run("flags win", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		wrong := wrongFlags()
		delete(wrong, "tls-host")
		p.holds(t, p.cert, setting{bare: true, env: asEnv(wrong)}, append([]string{"serve"}, asArgs(p.withFiles(p.serveFlags()))...)...)
	})
	t.Run("flags win, auto", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t)
		wrong := wrongFlags()
		delete(wrong, "tls-cert")
		delete(wrong, "tls-key")
		p.holds(t, filepath.Join(p.data, "ca.pem"), setting{bare: true, env: asEnv(wrong)}, append([]string{"serve"}, asArgs(p.withAuto(p.serveFlags()))...)...)
	})
}

// TestEnvironment_WrongValuesAreRefused holds that each one is, by its name.
func TestEnvironment_WrongValuesAreRefused(t *testing.T) {
	t.Parallel()
	for flag, value := range wrongFlags() {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			flags := p.serveFlags()
			switch flag {
			case "tls-cert", "tls-key":
				flags = p.withFiles(flags)
			default:
				flags = p.withAuto(flags)
			}
			flags[flag] = value
			e := runWith(t, setting{bare: true, env: asEnv(flags)}, "serve")
			if code := e.code; code != 1 && code != 2 || !strings.Contains(e.stderr, "--"+flag) && !strings.Contains(e.stderr, asEnv(map[string]string{flag: ""})[0][:len(flag)+3]) {
				t.Errorf("ended with %d: %s", code, e.stderr)
			}
			if _, err := os.Stat(p.data); err == nil && flag != "db" {
				t.Error("something was made")
			}
		})
	}
}

// holds checks that a server takes everything from its place.
func (p place) holds(t *testing.T, trusts string, with setting, args ...string) {
	s := &server{process: launch(t, with, args...), data: p.data, db: "sqlite:" + p.db}
	s.ready(t)
	if !strings.HasPrefix(s.url, "https://127.0.0.1:") {
		t.Errorf("it listens on %s", s.url) // --listen, --tls
	}
	s.client = trusting(t, trusts) // --tls-cert, --tls-key, or --tls-host
	if trusts != p.cert {
		for _, host := range []string{"bc.example.org", "192.0.2.1"} {
			if conn, err := tls.Dial("tcp", s.address(), &tls.Config{RootCAs: roots(t, trusts), ServerName: host}); err != nil {
				t.Error(err)
			} else {
				conn.Close()
			}
		}
	}
	if bundle := s.get(t, "/ca.pem").body; string(bundle) != string(readFile(t, filepath.Join(p.ca, "ca.pem"))) { // --ca-dir
		t.Errorf("/ca.pem answers %s", bundle)
	}
	wantNumber(t, connect(t, s.db), 0, "SELECT count(*) FROM ca_keys")
	if _, err := os.Stat(filepath.Join(p.data, "seal.key")); err == nil { // --seal-key-file
		t.Error("it made another seal key")
	}
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
