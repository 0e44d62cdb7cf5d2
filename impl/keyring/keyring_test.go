package keyring_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/keyring"
	"github.com/bettercompute/bettercompute/impl/seal"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// TestMake_Once holds that the first start makes the keys and later ones keep them.
func TestMake_Once(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bench) {
		keyset, rows := b.stored(t)
		if len(rows) != 4 {
			t.Errorf("the CA has %d keys", len(rows))
		}
		if err := b.make(t, b.config); err != nil {
			t.Fatal(err)
		}
		again, after := b.stored(t)
		if !bytes.Equal(again, keyset) || len(after) != 4 || !bytes.Equal(after[0].SealedKey, rows[0].SealedKey) {
			t.Error("the second start made other keys")
		}
		one, other := b.open(t).Authority(), b.open(t).Authority()
		if one.Bundle() != other.Bundle() || len(one.RootSHA256()) != 1 {
			t.Error("two servers trust different roots")
		}
	})
}

// TestMake_WrongSealKey holds that with another key nothing is made and nothing is opened.
func TestMake_WrongSealKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bench) {
		keyset, rows := b.stored(t)
		right := b.file.text
		for what, text := range map[string]string{"another key": seal.NewKeyText(), "two others": seal.NewKeyText() + seal.NewKeyText()} {
			b.file.write(text)
			_, opened := keyring.Open(t.Context(), b.db, b.config)
			_, rotated := keyring.RotateCA(t.Context(), b.db, b.config)
			for _, err := range []error{b.make(t, b.config), opened, rotated, keyring.RotateSeal(t.Context(), b.db, b.config)} {
				if !errors.Is(err, keyring.ErrSealKey) {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
		b.file.write("")
		if err := b.make(t, b.config); err == nil || errors.Is(err, keyring.ErrSealKey) {
			t.Errorf("without a key: %v", err)
		}
		again, after := b.stored(t)
		if !bytes.Equal(again, keyset) || len(after) != len(rows) {
			t.Error("something changed")
		}
		b.file.write(seal.NewKeyText() + right)
		b.open(t)
	})
}

// TestFiles holds that an operator's own CA is all that is used, and that it may change.
func TestFiles(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := newBench(db)
		b.config.CADir = t.TempDir()
		writeCA(t, b.config.CADir)
		if err := b.make(t, b.config); err != nil {
			t.Fatal(err)
		}
		if _, rows := b.stored(t); len(rows) != 0 {
			t.Errorf("the database has %d keys", len(rows))
		}
		k := b.open(t)
		before := k.Authority()
		if bundle, err := os.ReadFile(filepath.Join(b.config.CADir, "ca.pem")); err != nil || before.Bundle() != string(bundle) {
			t.Errorf("the bundle is another one (error: %v)", err)
		}
		refresh(t, k)
		if k.Authority() != before {
			t.Error("it changed without a change")
		}
		key := filepath.Join(b.config.CADir, "node-tenant.key")
		text, err := os.ReadFile(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(key); err != nil {
			t.Fatal(err)
		}
		if err := k.Refresh(t.Context()); err == nil || k.Authority() != before {
			t.Errorf("a broken folder: %v", err)
		}
		if err := os.WriteFile(key, text, 0o600); err != nil {
			t.Fatal(err)
		}
		writeCA(t, b.config.CADir)
		refresh(t, k)
		if k.Authority().Bundle() == before.Bundle() {
			t.Error("it did not take the new files")
		}
	})
}

// writeCA writes a new CA in the form of an operator's files.
func writeCA(t testing.TB, dir string) {
	t.Helper()
	materials, err := ca.Generate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range materials {
		name := m.Name
		if name == ca.Root {
			name = "ca"
		} else {
			writePEM(t, filepath.Join(dir, name+".key"), "PRIVATE KEY", m.Key.Reveal())
		}
		writePEM(t, filepath.Join(dir, name+".pem"), "CERTIFICATE", m.Certificate)
	}
}

// TestRefresh_TakesNewIssuers holds that after a rotation a running server
// verifies with old and new issuers and signs with the new.
func TestRefresh_TakesNewIssuers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bench) {
		now := storetest.ClockOf(b.db).Now()
		k := b.open(t)
		before := k.Authority()
		old := node(t, before, now)
		refresh(t, k)
		if k.Authority() != before {
			t.Error("it changed without a change")
		}
		rotated := b.rotateCA(t)
		young := node(t, rotated, now)
		if _, err := k.Authority().VerifyNode(young, now); !errors.Is(err, ca.ErrUnknownIssuer) {
			t.Errorf("before it looks: %v", err)
		}
		refresh(t, k)
		after := k.Authority()
		for _, name := range []string{ca.NodePlatform, ca.NodeTenant, ca.Server} {
			if id := issuing(t, after, name); id != issuing(t, rotated, name) || id == issuing(t, before, name) {
				t.Errorf("%s is issued by %s", name, id)
			}
		}
		for _, certs := range [][]*x509.Certificate{old, young, node(t, after, now)} {
			if _, err := after.VerifyNode(certs, now); err != nil {
				t.Error(err)
			}
		}
		if after.Bundle() != before.Bundle() {
			t.Error("the root changed")
		}
	})
}

// TestVerifyNode_LooksForNewIssuers holds that a certificate which another
// replica has just signed with a new issuer is known at once, and that foreign
// ones cost the database one look a second.
func TestVerifyNode_LooksForNewIssuers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bench) {
		clock := storetest.ClockOf(b.db)
		clock.Set(time.Now())
		statements := &counter{}
		seen := b
		seen.db = storetest.Open(t, store.Config{URL: storetest.URLOf(b.db), Log: slog.New(statements), Now: clock.Now})
		k := seen.open(t)
		certs := node(t, b.rotateCA(t), clock.Now())
		if identity, err := k.VerifyNode(t.Context(), certs, clock.Now()); err != nil || identity.NodeID != "node_1" {
			t.Errorf("%+v, %v", identity, err)
		}
		foreign := node(t, foreignCA(t), clock.Now())
		before := statements.count()
		for range 3 {
			clock.Advance(time.Second)
			for range 50 {
				if _, err := k.VerifyNode(t.Context(), foreign, clock.Now()); !errors.Is(err, ca.ErrUnknownIssuer) {
					t.Fatal(err)
				}
			}
		}
		if n := statements.count() - before; n != 3*2 {
			t.Errorf("150 foreign certificates in 3 seconds made %d statements", n)
		}
	})
}

// TestVerifyNode_SaysThatItCouldNotLook holds that a node is not refused where
// only the database is away.
func TestVerifyNode_SaysThatItCouldNotLook(t *testing.T) {
	t.Parallel()
	b := newBench(storetest.Open(t, store.Config{URL: storetest.URL(t, storetest.SQLite)}))
	if err := b.make(t, b.config); err != nil {
		t.Fatal(err)
	}
	mine := b
	var err error
	if mine.db, err = store.Open(t.Context(), store.Config{URL: storetest.URLOf(b.db)}); err != nil {
		t.Fatal(err)
	}
	k, now := mine.open(t), time.Now()
	old, young := node(t, k.Authority(), now), node(t, b.rotateCA(t), now)
	if err := mine.db.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := k.VerifyNode(t.Context(), young, now); !fault.Is(err, problem.Unavailable) {
			t.Error(err)
		}
	}
	if _, err := k.VerifyNode(t.Context(), old, now); err != nil {
		t.Error(err)
	}
}

func foreignCA(t testing.TB) *ca.Authority {
	t.Helper()
	materials, err := ca.Generate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	a, err := ca.New(materials)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestOpen_MovedKey holds that a sealed key opens in its own row alone.
func TestOpen_MovedKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bench) {
		_, rows := b.stored(t)
		rows[1].SealedKey, rows[2].SealedKey = rows[2].SealedKey, rows[1].SealedKey
		err := b.db.Write(t.Context(), func(tx *store.Tx) error {
			return errors.Join(tx.PutCAKey(t.Context(), rows[1]), tx.PutCAKey(t.Context(), rows[2]))
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := keyring.Open(t.Context(), b.db, b.config); err == nil {
			t.Error("it opened")
		}
	})
}

// TestTogether lets rotations, starts and running servers go on at once.
func TestTogether(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, b bench) {
		other := b
		other.db = storetest.Replica(t, b.db)
		k := other.open(t)
		root := k.Authority().Bundle()
		const turns = 4
		var all sync.WaitGroup
		for _, fn := range []func(context.Context) error{
			func(ctx context.Context) error { return keyring.RotateSeal(ctx, b.db, b.config) },
			func(ctx context.Context) error { return keyring.RotateSeal(ctx, other.db, b.config) },
			func(ctx context.Context) error { _, err := keyring.RotateCA(ctx, b.db, b.config); return err },
			func(ctx context.Context) error { _, err := keyring.RotateCA(ctx, other.db, b.config); return err },
			func(ctx context.Context) error { _, err := keyring.Open(ctx, other.db, b.config); return err },
			k.Refresh,
			k.Refresh,
		} {
			all.Go(func() {
				for range turns {
					if err := fn(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		refresh(t, k)
		if list := k.Authority().Describe(); len(list) != 1+3+2*turns*3 || k.Authority().Bundle() != root {
			t.Errorf("there are %d materials", len(list))
		}
	})
}
