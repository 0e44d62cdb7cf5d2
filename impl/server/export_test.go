package server

import (
	"context"
	"net/http"
	"time"

	"github.com/bettercompute/bettercompute/impl/store"
)

// Set these before Run.

// SetRecheck makes streams ask more often whether their caller may have them.
func (s *Server) SetRecheck(pause time.Duration) { s.recheck = pause }

// SetTimeouts replaces how long a connection may take to be read and to be written.
func (s *Server) SetTimeouts(read, write time.Duration) {
	s.timeouts.read, s.timeouts.write = read, write
}

// FlushDenials writes the refusals that were counted.
func (s *Server) FlushDenials(ctx context.Context) error { return s.denials.flush(ctx) }

// MaxBody is maxBody.
const MaxBody = maxBody

// Serve adds a path that is no method.
func (s *Server) Serve(path string, handler http.HandlerFunc) { s.plain[path] = handler }

// Sweep marks the join tokens that have ended.
func (s *Server) Sweep(ctx context.Context) error { return s.tokens.Sweep(ctx) }

// Refused counts a refusal.
func (s *Server) Refused(denial store.Denial) { s.denials.add(denial) }

// MaxDenials is maxDenials.
const MaxDenials = maxDenials

// SetBodyTimeout sets how long a body may take before its sender is asked for again.
func (s *Server) SetBodyTimeout(limit time.Duration) { s.timeouts.body = limit }

// AddressOf is where a call comes from, for joins under these limits.
func AddressOf(limits JoinLimits, r *http.Request) string {
	return newJoinLimits(limits, time.Now).address(r)
}
