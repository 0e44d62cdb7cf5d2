package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bettercompute/bettercompute/impl/bearer"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// TestFirstStart_TakesUpTheKeyOfOneThatBroke holds that a start which was killed
// between the file and the commit is completed by the next one.
func TestFirstStart_TakesUpTheKeyOfOneThatBroke(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		data := t.TempDir()
		minted, _ := bearer.Mint(bearer.APIKey, "ak_0123456789abcdefghjkmnpqrs")
		writeFile(t, filepath.Join(data, "admin.key"), minted.Reveal()+"\n")
		s := launchServer(t, setting{}, data, storetest.EmptyURL(t, kind))
		s.ready(t)
		if readKey(t, data) != minted.Reveal() {
			t.Error("the file was changed")
		}
		if !strings.Contains(s.stderr.String(), "taken from its file") {
			t.Error("the operator is not told")
		}
		isPlatformAdmin(t, s, minted.Reveal())
		wantNumber(t, connect(t, s.db), 1, allAPIKeys)
	})
}

func writeFile(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFirstStart_KilledBeforeTheCommit is the same with a real kill: the lock
// that a test holds stops the start between the file and the commit.
func TestFirstStart_KilledBeforeTheCommit(t *testing.T) {
	t.Parallel()
	url, data := storetest.URL(t, storetest.Postgres), t.TempDir()
	db := connect(t, url)
	first := launchServer(t, setting{}, data, url)
	blocked(t, first, "LOCK TABLE api_keys IN SHARE MODE", func() {
		first.signal(t, syscall.SIGKILL)
		first.exit(t)
	})
	key := readKey(t, data)
	wantNumber(t, db, 0, allAPIKeys)

	second := launchServer(t, setting{}, data, url)
	second.ready(t)
	if readKey(t, data) != key {
		t.Error("the second start made another key")
	}
	isPlatformAdmin(t, second, key)
	wantNumber(t, db, 1, allAPIKeys)
}

// TestFirstStart_StoppedBeforeTheCommit holds that a start which is asked to stop
// takes its file with it, as nothing was committed.
func TestFirstStart_StoppedBeforeTheCommit(t *testing.T) {
	t.Parallel()
	url, data := storetest.URL(t, storetest.Postgres), t.TempDir()
	s := launchServer(t, setting{}, data, url)
	blocked(t, s, "LOCK TABLE api_keys IN SHARE MODE", func() {
		s.signal(t, syscall.SIGTERM)
		s.exit(t)
	})
	if out := s.stdout.String(); out != "" {
		t.Errorf("stdout is %q", out)
	}
	wantEmpty(t, data)
	wantNumber(t, connect(t, url), 0, allAPIKeys)
}

// blocked runs fn once a start has written the key's file and waits for a lock
// of the test.
func blocked(t testing.TB, s *server, lock string, fn func()) {
	t.Helper()
	tx, err := connect(t, s.db).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(t.Context(), lock); err != nil {
		t.Fatal(err)
	}
	db := connect(t, s.db)
	eventually(t, "the start waits for the lock", func() bool {
		return number(t, db, "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'api_keys'::regclass") == 1
	})
	fn()
}

// TestFirstStart_RefusesAFileThatIsNoKey holds that a file which is in the way
// is neither used nor overwritten, and named.
func TestFirstStart_RefusesAFileThatIsNoKey(t *testing.T) {
	t.Parallel()
	token, _ := bearer.Mint(bearer.JoinToken, "jt_0123456789abcdefghjkmnpqrs")
	key, _ := bearer.Mint(bearer.APIKey, "ak_0123456789abcdefghjkmnpqrs")
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		for name, text := range map[string]string{
			"empty":        "",
			"a text":       "correct horse battery staple\n",
			"a typo":       key.Reveal()[:60] + "~" + key.Reveal()[61:],
			"cut off":      key.Reveal()[:60],
			"another kind": token.Reveal(),
			"two keys":     key.Reveal() + "\n" + key.Reveal() + "\n",
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				url, file := storetest.URL(t, kind), filepath.Join(t.TempDir(), "admin.key")
				writeFile(t, file, text)
				e := runWith(t, setting{}, "serve", "--listen", "127.0.0.1:0", "--db", url, "--data", filepath.Dir(file))
				e.refused(t, 1, "--data", file, "holds no API key", "move the file away")
				if string(readFile(t, file)) != text {
					t.Error("the file was changed")
				}
				wantNumber(t, connect(t, url), 0, allAPIKeys)
			})
		}
	})
}

// TestFirstStart_LeavesAFileAloneWhereThereAreKeys holds that on a database with
// keys nobody cares what is in the file.
func TestFirstStart_LeavesAFileAloneWhereThereAreKeys(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		first := serve(t, storetest.EmptyURL(t, kind))
		stray, _ := bearer.Mint(bearer.APIKey, "ak_0123456789abcdefghjkmnpqrs")
		data := t.TempDir()
		writeFile(t, filepath.Join(data, "admin.key"), stray.Reveal())
		second := launchServer(t, setting{}, data, first.db)
		second.ready(t)
		unauthenticated(t, second, stray.Reveal())
		isPlatformAdmin(t, second, first.admin(t))
		wantNumber(t, connect(t, first.db), 1, allAPIKeys)
	})
}
