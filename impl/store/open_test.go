package store_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// refused opens a database that cannot be opened and returns what is said.
func refused(t *testing.T, url string) string {
	t.Helper()
	db, err := store.Open(t.Context(), store.Config{URL: url})
	if err == nil {
		db.Close()
		t.Fatalf("%s was opened", url)
	}
	return err.Error()
}

func TestOpen_SaysWhatIsWrongAndNoPassword(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	free := listener.Addr().String()
	must(t, listener.Close())
	folder := t.TempDir()
	must(t, os.WriteFile(filepath.Join(folder, "text.db"), []byte(strings.Repeat("not a database ", 100)), 0o600))
	for _, c := range []struct{ url, want string }{
		{"", "must begin with sqlite: or postgres://"},
		{"mysql://u:hunter2@h/d", "must begin with sqlite: or postgres://"},
		{"bettercompute.db", "must begin with sqlite: or postgres://"},
		{"sqlite:", "names no file"},
		{"sqlite::memory:", "names no file"},
		{"sqlite://data/file.db", "sqlite:data/file.db"},
		{"sqlite:" + folder + "/no/such/file.db", "folder " + folder + "/no/such of the database cannot be written: no such file"},
		{"sqlite:" + folder + "/text.db/file.db", "text.db of the database cannot be written: not a directory"},
		{"sqlite:" + folder, "cannot be written: is a directory"},
		{"sqlite:" + folder + "/text.db", "file is not a database"},
		{"postgres://u:hunter2@" + free + "/d", "cannot use Postgres at 127.0.0.1 port"},
		{"postgres://u:hunter2@" + free + "/d", "connection refused"},
		{"postgres://u:hunter2@no-such-host.invalid/d", `at no-such-host.invalid port 5432, database "d", as user "u"`},
		{"postgres://u:hunter2/x@h/d", "malformed"},
		{"postgres://u:hunter2#x@h/d", "malformed"},
		{"postgres://u:hunter2%@h/d", "malformed"},
		{"postgres:u:hunter2@h", "malformed"},
		{"postgres://u:hunter2@h/d?sslmode=hunter2", "has an option that is unknown or malformed"},
	} {
		got := refused(t, c.url)
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %q does not say %q", c.url, got, c.want)
		}
		if strings.Contains(got, "hunter2") || strings.Contains(got, "\n") {
			t.Errorf("%s: %q tells the password or is more than a line", c.url, got)
		}
	}
}

func TestOpen_FolderWithoutWritePermission(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	must(t, os.Chmod(folder, 0o555))
	said := make(chan string)
	go func() { // a thread of its own, which ends with the goroutine
		defer close(said)
		runtime.LockOSThread()
		if os.Geteuid() == 0 {
			if err := syscall.Setfsuid(65534); err != nil {
				t.Error(err)
				return
			}
		}
		_, err := store.Open(context.Background(), store.Config{URL: "sqlite:" + folder + "/file.db"})
		said <- fmt.Sprint(err)
	}()
	if got, want := <-said, "the folder "+folder+" of the database cannot be written: permission denied"; !strings.Contains(got, want) {
		t.Errorf("%q does not say %q", got, want)
	}
}

func TestOpen_PostgresRefusesTheLogin(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(storetest.URL(t, storetest.Postgres))
	must(t, err)
	u.User = url.UserPassword("nobody-there", "hunter2")
	if got := refused(t, u.String()); !strings.Contains(got, `as user "nobody-there": `) || strings.Contains(got, "hunter2") {
		t.Errorf("said %q", got)
	}
	u, err = url.Parse(storetest.URL(t, storetest.Postgres))
	must(t, err)
	u.Path = "/no_such_database"
	if got := refused(t, u.String()); !strings.Contains(got, `database "no_such_database" does not exist`) {
		t.Errorf("said %q", got)
	}
}

func TestFailure_WhatIsUnavailable(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	plain := errors.New("syntax error")
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want problem.Code
	}{
		{t.Context(), driver.ErrBadConn, problem.Unavailable},
		{t.Context(), io.EOF, problem.Unavailable},
		{t.Context(), io.ErrUnexpectedEOF, problem.Unavailable},
		{t.Context(), sql.ErrConnDone, problem.Unavailable},
		{t.Context(), &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, problem.Unavailable},
		{t.Context(), fmt.Errorf("wrapped: %w", io.EOF), problem.Unavailable},
		{t.Context(), plain, problem.Internal},
		{t.Context(), sql.ErrTxDone, problem.Internal},
		{ended, plain, problem.Unavailable}, // the caller has gone, or its time is over
		{t.Context(), fmt.Errorf("wrapped: %w", fault.NotFound("pool")), problem.NotFound},
		{ended, fault.NotFound("pool"), problem.NotFound},
	} {
		got := fault.From(store.Failure(c.ctx, "test", c.err))
		if got.Code != c.want {
			t.Errorf("%v is %s, want %s", c.err, got.Code, c.want)
		}
		if c.want != problem.NotFound && !strings.Contains(got.Error(), c.err.Error()) {
			t.Errorf("%q hides the cause %q", got, c.err)
		}
	}
	if err := store.Failure(ended, "test", nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}

func TestTrace_LogsStatementsAtTheirLevelOnly(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		for level, want := range map[slog.Level]bool{store.LevelTrace: true, slog.LevelDebug: false} {
			var out strings.Builder
			log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level}))
			db := storetest.Open(t, store.Config{URL: storetest.URL(t, kind), Log: log})
			_, err := db.Pool(t.Context(), "acme", "lab")
			wantCode(t, err, problem.NotFound)
			if got := strings.Contains(out.String(), "pool_id"); got != want {
				t.Errorf("at level %v the log is %q", level, out.String())
			}
		}
	})
}

// Values are written into statements: nothing in them may end its literal.
func TestValues_AreOnlyValues(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for i, value := range []string{`'`, `''; DROP TABLE sites; --`, `\`, `\'`, `?`, `?0`, `$1`, `"`, "`", "é 漢 🦀", "a\tb\nc", `{"a":1}`, `/*`} {
			site := store.Site{TenantID: "acme", SiteID: fmt.Sprint(i), CreatedBy: value}
			write(t, db, func(tx *store.Tx) error { _, _, err := tx.CreateSite(t.Context(), site); return err })
			stored, err := db.Site(t.Context(), "acme", fmt.Sprint(i))
			must(t, err)
			if stored.CreatedBy != value {
				t.Errorf("%q came back as %q", value, stored.CreatedBy)
			}
		}
		positioned(t, db)
		if n := len(eventsOf(t, db, "acme")); n != 13 {
			t.Errorf("%d events, want 13", n)
		}
		if err := db.Write(t.Context(), func(tx *store.Tx) error { return createSite(t, tx, "acme", "nul\x00") }); err == nil {
			t.Error("a NUL was written")
		}
	})
}
