// Package keyring keeps the keys of a server: those that seal the secrets of its database, and its CA.
//
// The operator's seal key opens the database's data keys, and these open the
// keys of the CA. Both can be rotated while servers run: each of them looks for
// changes with Refresh.
package keyring

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/seal"
	"github.com/bettercompute/bettercompute/impl/store"
)

// Config says where the keys come from.
type Config struct {
	// SealKeys reads the operator's keys. It is asked again when the data keys
	// have changed, so that a new seal key needs no restart.
	SealKeys func() (seal.Keys, error)
	CADir    string           // of an operator's own CA; empty: the database keeps one
	Now      func() time.Time // nil: time.Now
}

func (c *Config) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}

// ErrSealKey says that the operator's keys are not those of the database.
var ErrSealKey = errors.New("keyring: the seal key is not the one that the secrets of this database were sealed with")

// askPause is how often a foreign certificate may make the keyring look for new
// issuers: whoever shows one costs the database no more.
const askPause = time.Second

// A Keyring has the CA as it is at the moment. It is safe for concurrent use.
type Keyring struct {
	config  Config
	db      *store.DB
	current atomic.Pointer[ca.Authority]

	mu     sync.Mutex // of whoever reads anew
	made   stored     // what current was made of, in the database
	files  []string   // or the ids of the materials, in files
	asked  time.Time  // when a foreign certificate last made it look
	answer error      // and what came of it
}

// Open reads the keys of a database on which Make has run.
func Open(ctx context.Context, db *store.DB, config Config) (*Keyring, error) {
	k := &Keyring{config: config, db: db}
	if err := k.Refresh(ctx); err != nil {
		return nil, err
	}
	return k, nil
}

// Authority returns the CA. It is never nil; ask again for each use, since
// another one takes its place when issuers change.
func (k *Keyring) Authority() *ca.Authority { return k.current.Load() }

// Refresh takes what has changed: other issuers, other data keys, other files.
// Where that fails, everything stays as it was.
func (k *Keyring) Refresh(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.refresh(ctx)
}

func (k *Keyring) refresh(ctx context.Context) error {
	if k.config.CADir != "" {
		return k.refreshFiles()
	}
	for again := true; ; again = false {
		now, err := read(ctx, k.db.Reader)
		if err != nil || now.equal(k.made) {
			return err
		}
		o, err := now.open(k.config.SealKeys)
		if again && errors.Is(err, seal.ErrUnknownKey) {
			continue // rotated twice between the two reads
		}
		if err != nil {
			return err
		}
		authority, err := ca.New(o.materials)
		if err != nil {
			return err
		}
		k.made = now
		k.current.Store(authority)
		return nil
	}
}

func (k *Keyring) refreshFiles() error {
	materials, err := ca.FromFiles(k.config.CADir, k.config.now())
	if err != nil {
		return err
	}
	var ids []string
	for _, m := range materials {
		ids = append(ids, m.ID)
	}
	if slices.Equal(ids, k.files) {
		return nil
	}
	authority, err := ca.New(materials)
	if err != nil {
		return err
	}
	k.files = ids
	k.current.Store(authority)
	return nil
}

// VerifyNode is that of the Authority, but for a certificate of an issuer that
// is not known: another replica may have heard of new issuers earlier. So it
// looks for them, at most once a second in all, before it says so.
func (k *Keyring) VerifyNode(ctx context.Context, certs []*x509.Certificate, now time.Time) (ca.Identity, error) {
	identity, err := k.Authority().VerifyNode(certs, now)
	if !errors.Is(err, ca.ErrUnknownIssuer) {
		return identity, err
	}
	if err := k.ask(ctx); err != nil {
		return ca.Identity{}, fmt.Errorf("keyring: look for new issuers: %w", err)
	}
	return k.Authority().VerifyNode(certs, now)
}

func (k *Keyring) ask(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.config.now()
	if since := now.Sub(k.asked); since < 0 || since >= askPause {
		k.answer, k.asked = k.refresh(ctx), now
	}
	return k.answer
}
