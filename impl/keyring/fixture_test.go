package keyring_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/keyring"
	"github.com/bettercompute/bettercompute/impl/seal"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// A file is the operator's, which may change while servers run.
type file struct {
	mu   sync.Mutex
	text string
}

func (f *file) write(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text = text
}

func (f *file) keys() (seal.Keys, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return seal.ParseKeys(f.text)
}

// A bench is a database on which Make has run, with its configuration.
type bench struct {
	db     *store.DB
	file   *file
	config keyring.Config
}

func each(t *testing.T, fn func(t *testing.T, b bench)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(db)
		if err := b.make(t, b.config); err != nil {
			t.Fatal(err)
		}
		fn(t, b)
	})
}

func newBench(db *store.DB) bench {
	f := &file{text: seal.NewKeyText()}
	return bench{db, f, keyring.Config{SealKeys: f.keys, Now: storetest.ClockOf(db).Now}}
}

func (b bench) make(t testing.TB, config keyring.Config) error {
	return b.db.Migrate(t.Context(), func(ctx context.Context, tx *store.Tx) error { return keyring.Make(ctx, tx, config) })
}

// open is another server.
func (b bench) open(t testing.TB) *keyring.Keyring {
	t.Helper()
	k, err := keyring.Open(t.Context(), b.db, b.config)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (b bench) rotateCA(t testing.TB) *ca.Authority {
	t.Helper()
	a, err := keyring.RotateCA(t.Context(), b.db, b.config)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (b bench) rotateSeal(t testing.TB) {
	t.Helper()
	if err := keyring.RotateSeal(t.Context(), b.db, b.config); err != nil {
		t.Fatal(err)
	}
}

func refresh(t testing.TB, k *keyring.Keyring) {
	t.Helper()
	if err := k.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (b bench) stored(t testing.TB) (keyset []byte, rows []store.CAKey) {
	t.Helper()
	k, err := b.db.SealKeyset(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if rows, err = b.db.CAKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	return k.Wrapped, rows
}

// node certifies a node.
func node(t testing.TB, a *ca.Authority, now time.Time) []*x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := ca.ParseSerial(ca.NewSerial())
	if err != nil {
		t.Fatal(err)
	}
	chain, err := a.SignNode(t.Context(), ca.Order{
		NodeID: "node_1", Public: key.Public(), Serial: serial, NotBefore: now.Add(-time.Minute), NotAfter: now.Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(chain))
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return []*x509.Certificate{cert}
}

// issuing is the id of the issuer of a name.
func issuing(t testing.TB, a *ca.Authority, name string) string {
	t.Helper()
	for _, d := range a.Describe() {
		if d.Name == name && d.Issues {
			return d.ID
		}
	}
	t.Fatalf("no %s issues", name)
	return ""
}

func writePEM(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A counter counts statements.
type counter struct {
	slog.Handler
	mu sync.Mutex
	n  int
}

func (c *counter) Enabled(context.Context, slog.Level) bool { return true }

func (c *counter) Handle(context.Context, slog.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return nil
}

func (c *counter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}
