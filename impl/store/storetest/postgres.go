package storetest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/bettercompute/bettercompute/migrations"
)

const howToGet = `
**********************************************************************
No Postgres: the Postgres half of this test is left out.
Run it as   .ci/with-postgres go test ./...   which starts one, or set
BC_TEST_POSTGRES=postgres://user:password@host:port/postgres
to a server on which databases may be created.
**********************************************************************`

// server is a connection for making and dropping databases. It lives as long
// as the process.
var server = sync.OnceValues(func() (*sql.DB, error) {
	db, err := sql.Open("postgres", os.Getenv("BC_TEST_POSTGRES")) // the store registers the driver
	if err == nil {
		db.SetMaxOpenConns(2)
	}
	return db, err
})

func postgresURL(t testing.TB, migrated bool) string {
	t.Helper()
	if os.Getenv("BC_TEST_POSTGRES") == "" {
		if os.Getenv("CI") != "" {
			t.Fatal(howToGet)
		}
		t.Skip(howToGet)
	}
	name := "bc_test_" + strings.ToLower(rand.Text())
	create := "CREATE DATABASE " + name
	db, err := server()
	if err == nil && migrated {
		var template string
		if template, err = postgresTemplate(); err == nil {
			create += " TEMPLATE " + template
		}
	}
	if err == nil {
		_, err = db.Exec(create)
	}
	var url string
	if err == nil {
		url, err = withDatabase(os.Getenv("BC_TEST_POSTGRES"), name)
	}
	if err != nil {
		t.Fatalf("storetest: create Postgres database: %v", err)
	}
	t.Cleanup(func() {
		if _, err := db.Exec("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Errorf("storetest: drop Postgres database: %v", err)
		}
	})
	return url
}

// postgresTemplate makes the template for this schema where the server has none
// and returns its name. It gets that name when it is complete, under a lock.
var postgresTemplate = sync.OnceValues(func() (name string, err error) {
	name, err = templateName()
	if err != nil {
		return "", err
	}
	db, err := server()
	if err != nil {
		return "", err
	}
	ctx := context.Background()
	conn, err := db.Conn(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock(7020231106)"); err != nil {
		return "", err
	}
	defer conn.ExecContext(ctx, "SELECT pg_advisory_unlock(7020231106)")
	var there bool
	err = conn.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = '"+name+"')").Scan(&there)
	if err != nil || there {
		return name, err
	}
	draft := name + "_draft"
	url, err := withDatabase(os.Getenv("BC_TEST_POSTGRES"), draft)
	if err != nil {
		return "", err
	}
	for _, statement := range []string{"DROP DATABASE IF EXISTS " + draft, "CREATE DATABASE " + draft} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return "", err
		}
	}
	if err := migrate(url); err != nil {
		return "", err
	}
	_, err = conn.ExecContext(ctx, "ALTER DATABASE "+draft+" RENAME TO "+name)
	return name, err
})

// templateName follows from the schema's text.
func templateName() (string, error) {
	files, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, file := range files {
		text, err := fs.ReadFile(migrations.FS, file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", file, len(text), text)
	}
	return "bc_template_" + hex.EncodeToString(sum.Sum(nil)[:8]), nil
}
