package main_test

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// password is in no message and no log, in whole or in half.
const password = "hunter2Xq9sesame"

// wantNoPassword checks that a text holds no part of the password.
func wantNoPassword(t testing.TB, text string) {
	t.Helper()
	for _, part := range []string{password[:8], password[8:]} {
		if strings.Contains(text, part) {
			t.Errorf("the password is told: %s", text)
		}
	}
}

// TestDB_WrongURLIsRefused holds that every command refuses a database URL that
// cannot work, with a message that names --db and never the password.
func TestDB_WrongURLIsRefused(t *testing.T) {
	t.Parallel()
	folder, file := t.TempDir(), filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("this is no database, but a text of some length\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	user := "postgres://bc:" + password
	for name, c := range map[string]struct {
		db   string
		says []string
	}{
		"unknown scheme":      {"mysql://bc:" + password + "@127.0.0.1/bc", []string{"sqlite:", "postgres://"}},
		"no scheme":           {"bettercompute.db", []string{"sqlite:", "postgres://"}},
		"key and value":       {"host=127.0.0.1 user=bc password=" + password, []string{"sqlite:", "postgres://"}},
		"scheme in capitals":  {"POSTGRES://bc:" + password + "@127.0.0.1/bc", []string{"postgres://"}},
		"no slashes":          {"postgres:bc:" + password + "@127.0.0.1/bc", []string{"malformed", "postgres://user:password@host"}},
		"bad percent":         {user + "%zz@127.0.0.1/bc", []string{"malformed", "percent-encoded"}},
		"bad port":            {user + "@127.0.0.1:fivefour/bc", []string{"malformed"}},
		"bad host":            {user + "@[::1/bc", []string{"malformed"}},
		"hash in password":    {user + "#1@127.0.0.1/bc", []string{"malformed", "percent-encoded"}},
		"slash in password":   {user + "/1@127.0.0.1/bc", []string{"malformed"}},
		"unknown option":      {user + "@127.0.0.1/bc?sslmode=maybe", []string{"option"}},
		"nothing listens":     {user + "@127.0.0.1:1/bc", []string{"127.0.0.1 port 1", `"bc"`, "connection refused"}},
		"no such host":        {user + "@nowhere.invalid/bc", []string{"nowhere.invalid", "port 5432"}},
		"SQLite without file": {"sqlite:", []string{"sqlite:<path>"}},
		"SQLite in memory":    {"sqlite::memory:", []string{"sqlite:<path>"}},
		"SQLite with slashes": {"sqlite://data/bc.db", []string{"sqlite:data/file.db"}},
		"folder is missing":   {"sqlite:" + filepath.Join(folder, "none", "bc.db"), []string{"cannot be written", "no such file"}},
		"file is a folder":    {"sqlite:" + folder, []string{folder, "is a directory"}},
		"below a file":        {"sqlite:" + filepath.Join(file, "bc.db"), []string{file, "not a directory"}},
		"file is a text":      {"sqlite:" + file, []string{file, "not a database"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, args := range [][]string{
				{"serve", "--listen", "127.0.0.1:0"},
				{"migrate"},
				{"keys", "create", "--tenant", "acme", "--identity", "ops", "--role", "tenant-admin"},
			} {
				e := runWith(t, setting{}, append(args, "--db", c.db)...)
				e.refused(t, 1, append(c.says, "--db")...)
				wantNoPassword(t, e.stderr)
			}
		})
	}
}

// TestDB_SilentServerIsGivenUp holds that a server that accepts and never
// answers does not keep a start waiting for ever.
func TestDB_SilentServerIsGivenUp(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	e := runWith(t, setting{}, "migrate", "--db", "postgres://bc:"+password+"@"+silent.Addr().String()+"/bc?connect_timeout=2")
	e.refused(t, 1, "--db", "127.0.0.1 port", "timeout")
	wantNoPassword(t, e.stderr)
}

func TestDB_WhatPostgresRefusesIsToldWithoutThePassword(t *testing.T) {
	t.Parallel()
	there := withPassword(t, storetest.EmptyURL(t, storetest.Postgres), password)
	for name, c := range map[string]struct {
		path, query string
		says        []string
	}{
		"no such database": {path: "/bc_test_nowhere", says: []string{`"bc_test_nowhere"`, "does not exist"}},
		"no TLS there":     {query: "sslmode=require", says: []string{"sslmode=disable"}},
		"no such encoding": {query: "sslmode=disable&client_encoding=KLINGON", says: []string{"option"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, err := url.Parse(there)
			if err != nil {
				t.Fatal(err)
			}
			if c.path != "" {
				u.Path = c.path
			}
			if c.query != "" {
				u.RawQuery = c.query
			}
			e := runWith(t, setting{}, "serve", "--listen", "127.0.0.1:0", "--db", u.String())
			e.refused(t, 1, append(c.says, "--db")...)
			wantNoPassword(t, e.stderr)
		})
	}
}

// TestDB_PasswordIsInNoLog holds that a server that logs everything does not
// log the password of its database.
func TestDB_PasswordIsInNoLog(t *testing.T) {
	t.Parallel()
	s := serve(t, withPassword(t, storetest.EmptyURL(t, storetest.Postgres), password), "--log-level", "trace")
	ok[minted](t, s.call(t, withLab(t, s, s.admin(t)), "joinTokens.create", mint("one")))
	wantNoPassword(t, s.stderr.String())
	wantNoPassword(t, string(s.get(t, "/metrics").body))
}

// withPassword is a URL with a password; Postgres does not ask those whom it trusts.
func withPassword(t testing.TB, text, password string) string {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(u.User.Username(), password)
	return u.String()
}
