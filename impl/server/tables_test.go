package server_test

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sort"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// sql opens the database past the store, to see what is really there and to do
// what no method does.
func (s *running) sql(t testing.TB) *sql.DB {
	t.Helper()
	driver, source := "postgres", s.dbURL
	if s.kind == storetest.SQLite {
		driver, source = "sqlite", strings.TrimPrefix(s.dbURL, "sqlite:")+"?_busy_timeout=30000"
	}
	db, err := sql.Open(driver, source) // the store has registered both
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

// count returns what SELECT count(*) FROM rest says.
func (s *running) count(t testing.TB, rest string) (n int) {
	t.Helper()
	db := s.sql(t)
	defer db.Close()
	if err := db.QueryRow("SELECT count(*) FROM " + rest).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// exec runs a statement that no method runs.
func (s *running) exec(t testing.TB, statement string) {
	t.Helper()
	db := s.sql(t)
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

// dump keeps the whole database for the scan.
func (s *running) dump(t testing.TB) {
	t.Helper()
	f := left.open(t, "tables")
	defer f.close(t)
	if s.kind == storetest.SQLite { // also what was deleted
		for _, end := range []string{"", "-wal"} {
			raw, err := os.ReadFile(strings.TrimPrefix(s.dbURL, "sqlite:") + end)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
			f.Write(raw)
		}
	}
	for table, rows := range s.tables(t) {
		for _, row := range rows {
			fmt.Fprintln(f, table, row)
		}
	}
}

// tables are the rows of all tables, as text, in an order of their own.
func (s *running) tables(t testing.TB) map[string][]string {
	t.Helper()
	db := s.sql(t)
	defer db.Close()
	list := "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = current_schema()"
	if s.kind == storetest.SQLite {
		list = "SELECT name FROM sqlite_master WHERE type = 'table'"
	}
	all := map[string][]string{}
	for _, name := range rowsOf(t, db, list) {
		all[name] = rowsOf(t, db, "SELECT * FROM "+name)
	}
	if len(all) < 9 { // a test may take one away
		t.Errorf("there are only %d tables to look at", len(all))
	}
	return all
}

// ofTheServer reports whether a table is written beside the calls: by the feed,
// the count of refusals, and the chores' queue.
func ofTheServer(table string) bool {
	return table == "leases" || table == "denials" || table == "sqlite_sequence" || strings.HasPrefix(table, "river_")
}

func rowsOf(t testing.TB, db *sql.DB, query string) (list []string) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		text := make([]string, len(values))
		for i, value := range values {
			if raw, ok := value.([]byte); ok {
				value = string(raw)
			}
			text[i] = fmt.Sprint(value)
		}
		list = append(list, strings.Join(text, " | "))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	sort.Strings(list)
	return list
}

// position gives every committed event its position, as the feed does in its
// own time.
func (s *running) position(t testing.TB) {
	t.Helper()
	for {
		n, err := s.db.PositionEvents(t.Context(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// published are the events of a tenant so far, of these types or of all.
func (s *running) published(t testing.TB, tenant string, types ...string) []store.Event {
	t.Helper()
	s.position(t)
	page, err := s.db.Events(t.Context(), store.EventQuery{TenantID: tenant, Types: types, Limit: 10_000})
	if err != nil || page.More {
		t.Fatalf("events of %s: more: %v, error: %v", tenant, page.More, err)
	}
	return page.Events
}
