package main_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"regexp"
	"testing"

	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// A shown CA, as ca show prints it.
type shownCA struct {
	Certificates []struct {
		Name, ID, Serial, SHA256 string
		Issues                   bool
	}
	RootSHA256 []string
}

func showCA(t testing.TB, args ...string) (c shownCA) {
	t.Helper()
	e := runWith(t, setting{}, append([]string{"ca", "show", "--output", "json"}, args...)...)
	if e.code != 0 || json.Unmarshal([]byte(e.stdout), &c) != nil {
		t.Fatalf("ca show ended with %d, stdout %q, stderr %q", e.code, e.stdout, e.stderr)
	}
	return c
}

// issuing is the serial number of what issues under a name.
func (c shownCA) issuing(t testing.TB, name string) (serial string) {
	t.Helper()
	for _, cert := range c.Certificates {
		if cert.Name == name && cert.Issues {
			if serial != "" {
				t.Errorf("two issue as %s", name)
			}
			serial = cert.Serial
		}
	}
	return serial
}

func rootSum(t testing.TB, bundle []byte) string {
	t.Helper()
	block, rest := pem.Decode(bundle)
	if block == nil || len(rest) > 0 {
		t.Fatalf("the bundle is %q", bundle)
	}
	sum := sha256.Sum256(block.Bytes)
	return hex.EncodeToString(sum[:])
}

// TestCA_ShowsATable holds what a person reads.
func TestCA_ShowsATable(t *testing.T) {
	t.Parallel()
	s := serve(t, storetest.EmptyURL(t, storetest.SQLite))
	e := runWith(t, setting{}, "ca", "show", "--db", s.db)
	sum := rootSum(t, s.get(t, "/ca.pem").body)
	for _, line := range []string{
		`(?m)^NAME +ISSUES +NOT BEFORE +NOT AFTER +ID +SERIAL +SHA-256$`,
		`(?m)^root +yes +\S+Z +\S+Z +iss_\w+ +[0-9a-f]{32} +` + sum + `$`,
		`(?m)^node-platform +yes `, `(?m)^node-tenant +yes `, `(?m)^server +yes `,
		`(?m)^  bcd join --ca-sha256 ` + sum + `$`,
	} {
		if !regexp.MustCompile(line).MatchString(e.stdout) {
			t.Errorf("nothing matches %s in\n%s", line, e.stdout)
		}
	}
}

// TestCA_NoDatabaseIsMade holds that the keys of a database that is not there
// are not shown and not changed, and that nothing is made.
func TestCA_NoDatabaseIsMade(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"ca", "show"}, {"ca", "rotate"}, {"seal", "rotate"}} {
		dir := t.TempDir()
		runWith(t, setting{dir: dir}, args...).refused(t, 1, "--db", "there is no database bettercompute-data/bettercompute.db")
		runWith(t, setting{dir: dir, bare: true}, args...).refused(t, 1, "--db", "there is no database")
		wantEmpty(t, dir)
		url := storetest.EmptyURL(t, storetest.Postgres)
		runWith(t, setting{dir: dir}, append(args, "--db", url)...).refused(t, 1, "not migrated")
		wantNumber(t, connect(t, url), 0, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
		wantEmpty(t, dir)
	}
}
