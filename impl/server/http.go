package server

import (
	"context"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/ids"
)

// maxBody is the largest body of a call, in bytes.
const maxBody = 64 << 10

// A call is what is known of a request while it is served.
type call struct {
	id            string // the request id
	operation     string // joinTokens.create; empty for what is no method
	method        *api.Method
	principal     string // who calls: a tenant's identity, a join token or a node
	authenticated time.Time
	code          problem.Code // empty when it was not refused
	allow         string       // for METHOD_NOT_ALLOWED: what would be right
}

type callKey struct{}

// callFrom returns the call that a request is; [Server.ServeHTTP] has put it there.
func callFrom(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

var requestIDForm = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,64}$`)

// ServeHTTP gives every request an id, and writes one log line and one count for it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	c := &call{id: r.Header.Get("X-Request-Id")}
	if !requestIDForm.MatchString(c.id) {
		c.id = ids.New("req", began)
	}
	r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	w.Header().Set("X-Request-Id", c.id)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	out := &statusWriter{ResponseWriter: w}
	defer func() {
		if fatal := recover(); fatal != nil {
			if fatal == http.ErrAbortHandler {
				panic(fatal)
			}
			s.log.LogAttrs(r.Context(), slog.LevelError, "panic", slog.String("requestId", c.id), slog.Any("panic", fatal), slog.String("stack", string(debug.Stack())))
			if out.status == 0 {
				s.refuse(out, r, fmt.Errorf("panic: %v", fatal))
			}
		}
		s.account(r, c, out.status, time.Since(began))
	}()
	s.route(out, r, c)
}

func (s *Server) account(r *http.Request, c *call, status int, took time.Duration) {
	if c.operation == "" && c.code == "" {
		return // health checks and scrapes
	}
	s.metrics.call(c.operation, string(c.code), took)
	s.log.LogAttrs(r.Context(), slog.LevelInfo, "call",
		slog.String("requestId", c.id), slog.String("method", c.operation), slog.String("principal", c.principal),
		slog.Int("status", status), slog.String("code", string(c.code)), slog.Duration("took", took))
}

// route finds what a path is for. Methods are the spec's; the rest is ours. A
// path has one spelling: none of it is percent-encoded.
func (s *Server) route(w http.ResponseWriter, r *http.Request, c *call) {
	path := r.URL.EscapedPath()
	if m, ok := s.byPath[path]; ok {
		c.operation, c.method = m.ID, m
		s.serveMethod(w, r, c)
		return
	}
	plain, ok := s.plain[path]
	switch {
	case !ok:
		s.refuse(w, r, fault.NotFound("path"))
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		s.notAllowed(w, r, c, "GET, HEAD")
	default:
		plain(w, r)
	}
}

func (s *Server) notAllowed(w http.ResponseWriter, r *http.Request, c *call, allow string) {
	c.allow = allow
	s.refuse(w, r, &fault.Error{Code: problem.MethodNotAllowed, Detail: "this path takes " + allow})
}

// serveMethod does what comes before the body: who calls, and whether a body
// of this kind and size is read at all.
func (s *Server) serveMethod(w http.ResponseWriter, r *http.Request, c *call) {
	if r.Method != http.MethodPost {
		s.notAllowed(w, r, c, http.MethodPost)
		return
	}
	if err := s.admits(r, c); err != nil {
		s.refuse(w, r, err)
		return
	}
	ctx, err := s.identify(r.Context(), r, c)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	if !isJSON(r.Header) {
		s.refuse(w, r, &fault.Error{Code: problem.UnsupportedMediaType, Detail: "the body must be JSON: send Content-Type: application/json"})
		return
	}
	if r.ContentLength > maxBody {
		s.refuse(w, r, tooLargeFault())
		return
	}
	r = r.WithContext(ctx)
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	s.methods.ServeHTTP(w, r)
}

// isJSON reports whether the headers announce a plain JSON body in UTF-8.
func isJSON(h http.Header) bool {
	kind, parameters, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || kind != "application/json" || h.Get("Content-Encoding") != "" {
		return false
	}
	charset, given := parameters["charset"]
	return !given || strings.EqualFold(charset, "utf-8")
}

// A statusWriter remembers the status that was written.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements [http.ResponseWriter].
func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets [http.ResponseController] reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// methodsHandler is oapi-codegen's router and strict server, with our pipeline
// between decoding and handling.
func (s *Server) methodsHandler() http.Handler {
	strict := api.NewStrictHandlerWithOptions(s.groups, []api.StrictMiddlewareFunc{s.pipeline}, api.StrictHTTPServerOptions{
		RequestErrorHandlerFunc:  s.refuseBody,
		ResponseErrorHandlerFunc: s.refuse,
	})
	return api.HandlerWithOptions(strict, api.StdHTTPServerOptions{ErrorHandlerFunc: s.refuseHeader})
}
