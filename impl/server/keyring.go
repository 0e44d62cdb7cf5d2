package server

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/bettercompute/bettercompute/impl/keyring"
	"github.com/bettercompute/bettercompute/impl/store"
)

// openKeyring opens the keys of a database that OpenMigrated has opened.
func openKeyring(ctx context.Context, config *Config, db *store.DB) (*keyring.Keyring, error) {
	keys, err := keyring.Open(ctx, db, config.keyring())
	if err != nil {
		return nil, config.keyringError(err)
	}
	return keys, nil
}

// showKeys makes what callers see of the keys: the certificate of the listener,
// <data>/ca.pem, and a line of the log to pin the CA by.
func (s *Server) showKeys(ctx context.Context) (err error) {
	if s.certificate, err = newListenerCertificate(ctx, &s.config, s.keys.Authority); err != nil {
		return err
	}
	s.bundle.name = filepath.Join(s.config.Data, bundleFileName)
	authority := s.keys.Authority()
	s.log.InfoContext(ctx, "machines trust this CA", "rootSHA256", strings.Join(authority.RootSHA256(), ","), "file", s.bundle.name)
	return s.bundle.write(authority.Bundle())
}

// freshenPause is how long changes by other replicas, or of files, may stay unseen.
const freshenPause = 30 * time.Second

// freshen keeps keys, certificates and <data>/ca.pem as new as what they are of.
func (s *Server) freshen(ctx context.Context) {
	s.every(ctx, "look for new keys", freshenPause, s.refreshKeys)
	s.background.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.config.Reload: // never, where it is nil
			}
			s.reload(ctx)
		}
	})
}

// reload takes new keys first: the listener's certificate may be of new issuers then.
func (s *Server) reload(ctx context.Context) {
	turn, cancel := context.WithTimeout(ctx, s.timeouts.database)
	defer cancel()
	if err := s.refreshKeys(turn); err != nil {
		s.log.WarnContext(ctx, "the keys stay as they are", "error", err)
	}
	if s.certificate != nil {
		s.certificate.reload(ctx)
	}
}

func (s *Server) refreshKeys(ctx context.Context) error {
	if err := s.keys.Refresh(ctx); err != nil {
		return s.config.keyringError(err)
	}
	return s.bundle.write(s.keys.Authority().Bundle())
}

// caBundle answers with what a machine trusts, to anybody.
func (s *Server) caBundle(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/x-pem-file")
	fmt.Fprint(w, s.keys.Authority().Bundle())
}
