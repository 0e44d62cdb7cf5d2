// Package storetest runs tests against the real store: a fresh, migrated SQLite file, and a fresh, migrated Postgres database.
//
// Postgres is the server that BC_TEST_POSTGRES names, on which databases may be
// created; .ci/with-postgres starts one. Without it the Postgres half of a test
// is skipped, or fails where CI is set. One database named bc_template_… stays
// on the server, for the next run with the same schema.
package storetest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/store"
)

// Kind is one of the databases.
type Kind string

// The databases.
const (
	SQLite   Kind = "sqlite"
	Postgres Kind = "postgres"
)

// Kinds lists both.
var Kinds = []Kind{SQLite, Postgres}

// conns keeps a test's handle small, as many tests share one server.
const conns = 4

// EachKind runs fn once for each database, as parallel subtests.
func EachKind(t *testing.T, fn func(t *testing.T, kind Kind)) {
	t.Helper()
	for _, kind := range Kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			fn(t, kind)
		})
	}
}

// Each runs fn on a fresh, migrated and empty database of each kind, as
// parallel subtests. The database is gone when the subtest ends.
func Each(t *testing.T, fn func(t *testing.T, db *store.DB)) {
	t.Helper()
	EachKind(t, func(t *testing.T, kind Kind) {
		t.Helper()
		fn(t, Open(t, store.Config{URL: URL(t, kind)}))
	})
}

// URL makes a fresh, migrated and empty database, which is dropped when the
// test ends, and returns its URL.
func URL(t testing.TB, kind Kind) string {
	t.Helper()
	if kind == Postgres {
		return postgresURL(t, true)
	}
	file := filepath.Join(t.TempDir(), "bettercompute.db")
	template, err := sqliteTemplate()
	if err == nil {
		err = os.WriteFile(file, template, 0o600)
	}
	if err != nil {
		t.Fatalf("storetest: %v", err)
	}
	return "sqlite:" + file
}

// EmptyURL is URL without a schema.
func EmptyURL(t testing.TB, kind Kind) string {
	t.Helper()
	if kind == Postgres {
		return postgresURL(t, false)
	}
	return "sqlite:" + filepath.Join(t.TempDir(), "bettercompute.db")
}

// handles knows, of every open *store.DB, what a second one needs.
var handles sync.Map // *store.DB → handle

type handle struct {
	config store.Config
	clock  *Clock
}

// Open opens a handle, which is closed when the test ends. Its clock is
// ClockOf(db), unless config has one.
func Open(t testing.TB, config store.Config) *store.DB {
	t.Helper()
	return open(t, config, &Clock{})
}

// Replica opens another handle on db's database, as a second server would,
// with the same clock.
func Replica(t testing.TB, db *store.DB) *store.DB {
	t.Helper()
	h := handleOf(db)
	return open(t, h.config, h.clock)
}

// ClockOf is the clock of a handle of this package and all its replicas.
func ClockOf(db *store.DB) *Clock { return handleOf(db).clock }

// URLOf is the URL of the database of a handle of this package.
func URLOf(db *store.DB) string { return handleOf(db).config.URL }

func open(t testing.TB, config store.Config, clock *Clock) *store.DB {
	t.Helper()
	h := handle{config, clock}
	if config.Now == nil {
		config.Now = clock.Now
	}
	if config.MaxConns == 0 {
		config.MaxConns = conns
	}
	db, err := store.Open(context.Background(), config)
	if err != nil {
		t.Fatalf("storetest: %v", err)
	}
	handles.Store(db, h)
	t.Cleanup(func() {
		handles.Delete(db)
		if err := db.Close(); err != nil {
			t.Errorf("storetest: close: %v", err)
		}
	})
	return db
}

func handleOf(db *store.DB) handle {
	h, ok := handles.Load(db)
	if !ok {
		panic("storetest: this handle was not opened by storetest")
	}
	return h.(handle)
}

// Clock is a clock that a test may set. Until then it is the real one.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// Now is the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return time.Now()
	}
	return c.at
}

// Set stops the clock at a time.
func (c *Clock) Set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
}

// Advance moves the clock on and stops it there.
func (c *Clock) Advance(by time.Duration) { c.Set(c.Now().Add(by)) }

// sqliteTemplate is the file of a migrated and empty database.
var sqliteTemplate = sync.OnceValues(func() (template []byte, err error) {
	folder, err := os.MkdirTemp("", "storetest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "template.db")
	if err := migrate("sqlite:" + file); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

func migrate(url string) error {
	ctx := context.Background()
	db, err := store.Open(ctx, store.Config{URL: url})
	if err != nil {
		return err
	}
	if err := db.Migrate(ctx, nil); err != nil {
		return err
	}
	return db.Close()
}

func withDatabase(server, name string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("BC_TEST_POSTGRES is not a URL")
	}
	u.Path = "/" + name
	return u.String(), nil
}

// Yard makes the site berlin of acme, and on it the pools lab and other of acme,
// and lab of globex, each with the attestor.
func Yard(t testing.TB, db *store.DB, attestor string) {
	t.Helper()
	err := db.Write(t.Context(), func(tx *store.Tx) error {
		if _, _, err := tx.CreateSite(t.Context(), store.Site{TenantID: "acme", SiteID: "berlin", CreatedBy: "acme/ops"}); err != nil {
			return err
		}
		for _, of := range YardPools() {
			_, _, err := tx.CreatePool(t.Context(), store.Pool{
				TenantID: of[0], PoolID: of[1], SiteTenantID: "acme", SiteID: "berlin", Agent: "bcd", Attestor: attestor, Erase: "required", CreatedBy: "acme/ops",
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// YardPools are the pools of Yard: tenant and id.
func YardPools() [][2]string {
	return [][2]string{{"acme", "lab"}, {"acme", "other"}, {"globex", "lab"}}
}
