package store_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// lockerURL tells the test binary, run again, which database to lock.
const lockerURL = "BC_STORE_TEST_LOCK"

// TestMain is the second process of TestSQLite_AnotherProcessHoldsTheLock_WriterWaits.
func TestMain(m *testing.M) {
	if url := os.Getenv(lockerURL); url != "" {
		if err := lockUntilEOF(url); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// lockUntilEOF writes a site, says so before it commits, and commits when
// standard input ends.
func lockUntilEOF(url string) error {
	ctx := context.Background()
	db, err := store.Open(ctx, store.Config{URL: url})
	if err != nil {
		return err
	}
	err = db.Write(ctx, func(tx *store.Tx) error {
		_, _, err := tx.CreateSite(ctx, store.Site{TenantID: "acme", SiteID: "berlin"})
		if err == nil {
			fmt.Println("locked")
			_, err = io.Copy(io.Discard, os.Stdin)
		}
		return err
	})
	if err != nil {
		return err
	}
	return db.Close()
}

func TestSQLite_AnotherProcessHoldsTheLock_WriterWaits(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t, storetest.SQLite)
	db := open(t, url)
	locker := exec.CommandContext(t.Context(), os.Args[0])
	locker.Env = append(os.Environ(), lockerURL+"="+url)
	locker.Stderr = os.Stderr
	stdin, err := locker.StdinPipe()
	must(t, err)
	stdout, err := locker.StdoutPipe()
	must(t, err)
	must(t, locker.Start())
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "locked\n" {
		t.Fatalf("the other process says %q, error %v", line, err)
	}
	if n := count(t, db, "sites"); n != 0 {
		t.Error("a reader does not wait and sees what is committed; it saw more")
	}
	created := make(chan bool)
	go func() {
		var made bool
		err := db.Write(t.Context(), func(tx *store.Tx) (err error) {
			_, made, err = tx.CreateSite(t.Context(), store.Site{TenantID: "acme", SiteID: "berlin"})
			return err
		})
		if err != nil {
			t.Error(err)
		}
		created <- made
	}()
	for db.Stats().InUse == 0 { // until it is at the lock
		runtime.Gosched()
	}
	select {
	case <-created:
		t.Error("the writer did not wait")
	default:
	}
	must(t, stdin.Close())
	if <-created {
		t.Error("the writer did not see the row of the one it waited for")
	}
	must(t, locker.Wait())
}

func TestSQLite_ManyProcessesOpenOneNewFile(t *testing.T) {
	t.Parallel()
	url := storetest.EmptyURL(t, storetest.SQLite)
	together(8, func(i int) {
		db, err := store.Open(t.Context(), store.Config{URL: url})
		if err != nil {
			t.Error(err)
			return
		}
		defer db.Close()
		if err := db.Migrate(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
}

func TestSQLite_CommitsAreDurableAndReadersOnlyRead(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.URL(t, storetest.SQLite))
	write(t, db, func(tx *store.Tx) error {
		for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "30000"} {
			var got string
			must(t, tx.Query(t.Context(), "PRAGMA "+pragma).Scan(&got))
			if got != want {
				t.Errorf("%s is %s, want %s", pragma, got, want)
			}
		}
		return nil
	})
	var n int
	if err := db.Query(t.Context(), "DELETE FROM sites RETURNING 1").Scan(&n); err == nil || !strings.Contains(err.Error(), "readonly") {
		t.Errorf("a reader wrote: %v", err)
	}
}

func TestSQLite_FileIsForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	odd := filepath.Join(folder, "odd name? 100% #1.db")
	db := open(t, "sqlite:"+odd)
	must(t, db.Migrate(t.Context(), nil))
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	must(t, err)
	if len(files) != 3 || files[0] != odd || files[1] != odd+"-shm" || files[2] != odd+"-wal" {
		t.Errorf("files %q", files)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", file, info.Mode())
		}
	}
}

// A lock that is never released ends as UNAVAILABLE: here at once, as the
// connection is one that does not wait.
func TestSQLite_BusyIsUnavailable(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.URL(t, storetest.SQLite))
	other, err := sql.Open("sqlite", strings.TrimPrefix(storetest.URLOf(db), "sqlite:"))
	must(t, err)
	defer other.Close()
	write(t, db, func(*store.Tx) error {
		_, err := other.ExecContext(t.Context(), "DELETE FROM sites")
		if err == nil {
			t.Error("two writers at once")
		}
		wantCode(t, store.Failure(t.Context(), "test", err), problem.Unavailable)
		return nil
	})
}
