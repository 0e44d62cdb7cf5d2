package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bettercompute/bettercompute/impl/ca"
)

// A maker makes what the listener shows next, in place of what it shows now.
type maker func(context.Context) (*shown, error)

// shown is what the listener shows, and how long nothing newer is looked for.
type shown struct {
	pair  *tls.Certificate
	until time.Time
	by    *ca.Authority // that signed it; nil: it is of files
}

// retryPause is how long a listener goes on with what it has where nothing
// newer could be made.
const retryPause = time.Minute

// A listenerCertificate is renewed by the handshakes that use it, so that
// nothing has to be stopped, or to go on beside them.
type listenerCertificate struct {
	make    maker
	current func() *ca.Authority
	now     func() time.Time
	log     *slog.Logger
	shown   atomic.Pointer[shown]
	mu      sync.Mutex // of whoever makes the next one
}

// newListenerCertificate makes the first one. It is nil without TLS.
func newListenerCertificate(ctx context.Context, config *Config, current func() *ca.Authority) (*listenerCertificate, error) {
	l := &listenerCertificate{current: current, now: config.now, log: config.Log}
	switch config.tlsMode() {
	case TLSFiles:
		l.make = config.fromFiles()
	case TLSAuto:
		l.make = config.fromAuthority(current)
	default:
		return nil, nil
	}
	first, err := l.make(ctx)
	if err != nil {
		return nil, err
	}
	l.shown.Store(first)
	return l, nil
}

// get is for [tls.Config.GetCertificate].
func (l *listenerCertificate) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if l.due(l.shown.Load()) && l.mu.TryLock() { // the others go on with what there is
		defer l.mu.Unlock()
		if l.due(l.shown.Load()) {
			l.renew(hello.Context())
		}
	}
	return l.shown.Load().pair, nil
}

func (l *listenerCertificate) due(s *shown) bool {
	return !l.now().Before(s.until) || s.by != nil && s.by != l.current()
}

// reload looks now whether files have changed.
func (l *listenerCertificate) reload(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.shown.Load(); s.by == nil || l.due(s) {
		l.renew(ctx)
	}
}

func (l *listenerCertificate) renew(ctx context.Context) {
	before := l.shown.Load()
	next, err := l.make(ctx)
	if err != nil {
		l.log.WarnContext(ctx, "the listener keeps its certificate, as there is no newer one that works", "error", err)
		next = &shown{pair: before.pair, by: before.by}
		if before.by != nil {
			next.by = l.current()
		}
	} else if !slices.EqualFunc(next.pair.Certificate, before.pair.Certificate, bytes.Equal) {
		l.log.InfoContext(ctx, "the listener has another certificate", "notAfter", next.pair.Leaf.NotAfter)
	}
	// No handshake may find it due at once.
	if soonest := l.now().Add(retryPause); next.until.Before(soonest) {
		next.until = soonest
	}
	l.shown.Store(next)
}
