package store_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, db *store.DB, fn func(tx *store.Tx) error) {
	t.Helper()
	must(t, db.Write(t.Context(), fn))
}

func wantCode(t testing.TB, err error, code problem.Code) {
	t.Helper()
	if !fault.Is(err, code) {
		t.Errorf("error is %v, want %s", err, code)
	}
}

// count returns what SELECT count(*) FROM rest says.
func count(t testing.TB, db *store.DB, rest string) (n int) {
	t.Helper()
	must(t, db.Query(t.Context(), "SELECT count(*) FROM "+rest).Scan(&n))
	return n
}

func hash(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

func lab() store.Pool {
	return store.Pool{
		TenantID: "acme", PoolID: "lab", SiteTenantID: "acme", SiteID: "berlin",
		Agent: "bcd", Attestor: "token", Erase: "required", CreatedBy: "acme/ops",
	}
}

// withLab creates the site acme/berlin and the pool acme/lab.
func withLab(t testing.TB, db *store.DB) {
	t.Helper()
	write(t, db, func(tx *store.Tx) error {
		if _, _, err := tx.CreateSite(t.Context(), store.Site{TenantID: "acme", SiteID: "berlin", CreatedBy: "acme/ops"}); err != nil {
			return err
		}
		_, _, err := tx.CreatePool(t.Context(), lab())
		return err
	})
}

func tokenID(n int) string { return fmt.Sprintf("jt_%052d", n) }

// token is one that MintToken takes as it is.
func token(tx *store.Tx, id string) store.JoinToken {
	return store.JoinToken{
		ID: id, TenantID: "acme", PoolID: "lab", SecretSHA256: hash(id), MaxUses: 1,
		CreatedAt: tx.Now(), CreatedBy: "acme/ops", ExpiresAt: tx.Now().Add(time.Hour),
	}
}

// mint mints a token in a transaction of its own, after change has had it.
func mint(t testing.TB, db *store.DB, id string, change func(*store.JoinToken)) {
	t.Helper()
	write(t, db, func(tx *store.Tx) error {
		token := token(tx, id)
		if change != nil {
			change(&token)
		}
		_, err := tx.MintToken(t.Context(), token)
		return err
	})
}

// together runs fn n times at once and returns when all have ended.
func together(n int, fn func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	wg.Wait()
}

// positioned gives every committed event its position.
func positioned(t testing.TB, db *store.DB) {
	t.Helper()
	for {
		n, err := db.PositionEvents(t.Context(), 1000)
		must(t, err)
		if n == 0 {
			return
		}
	}
}

// eventsOf returns all positioned events of a tenant.
func eventsOf(t testing.TB, db *store.DB, tenantID string) []store.Event {
	t.Helper()
	page, err := db.Events(t.Context(), store.EventQuery{TenantID: tenantID, Limit: 10_000})
	must(t, err)
	if page.More {
		t.Fatal("more events than a test should make")
	}
	return page.Events
}

// onlyPostgres skips the rest of a test on SQLite.
func onlyPostgres(t testing.TB, db *store.DB) {
	t.Helper()
	if !isPostgres(db) {
		t.Skip("Postgres only")
	}
}

func isPostgres(db *store.DB) bool { return strings.HasPrefix(storetest.URLOf(db), "postgres") }

// open is storetest.Open with nothing but a URL.
func open(t testing.TB, url string) *store.DB {
	t.Helper()
	return storetest.Open(t, store.Config{URL: url})
}

var background = context.Background()
