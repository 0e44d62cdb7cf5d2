package main_test

import (
	"database/sql"
	"strings"
	"testing"

	_ "github.com/bettercompute/bettercompute/impl/store" // registers the drivers
)

// connect opens a database past the servers, to see what is really there. Its
// connections are those of another process.
func connect(t testing.TB, url string) *sql.DB {
	t.Helper()
	driver, source := "postgres", url
	if file, found := strings.CutPrefix(url, "sqlite:"); found {
		driver, source = "sqlite", "file:"+file+"?_busy_timeout=30000"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

// number returns the one number that a query selects.
func number(t testing.TB, db *sql.DB, query string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// execute runs a statement.
func execute(t testing.TB, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// wantNumber checks what a query selects.
func wantNumber(t testing.TB, db *sql.DB, want int, query string) {
	t.Helper()
	if n := number(t, db, query); n != want {
		t.Errorf("%s: %d, want %d", query, n, want)
	}
}
