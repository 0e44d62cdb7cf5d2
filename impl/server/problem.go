package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strconv"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// A problemDocument is an RFC 9457 problem.
type problemDocument struct {
	Type      string         `json:"type"`
	Title     string         `json:"title"`
	Status    int            `json:"status"`
	Code      problem.Code   `json:"code"`
	Reason    problem.Reason `json:"reason,omitempty"`
	Detail    string         `json:"detail"`
	RequestID string         `json:"requestId"`
	Errors    []violation    `json:"errors,omitempty"`
}

type violation struct {
	Field   string `json:"field"`
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// refuse writes err as a problem. It is the only place that tells a caller of
// an error, and so the only one that decides how much.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	call := callFrom(r.Context())
	known := fault.From(err)
	if call.code = known.Code; known.Code.Status() >= http.StatusInternalServerError {
		level := slog.LevelError
		if known.Code == problem.Unavailable && errors.Is(r.Context().Err(), context.Canceled) { // the caller hung up
			level = slog.LevelDebug
		}
		s.log.LogAttrs(r.Context(), level, "call failed", slog.String("requestId", call.id), slog.String("method", call.operation), slog.Any("error", err))
	}
	document := problemDocument{
		Type:      "urn:bettercompute:problem:" + string(known.Code),
		Title:     known.Code.Title(),
		Status:    known.Code.Status(),
		Code:      known.Code,
		Reason:    known.Reason,
		Detail:    known.Detail,
		RequestID: call.id,
	}
	for _, v := range known.Violations {
		document.Errors = append(document.Errors, violation{v.Field, string(v.Rule), v.Message})
	}
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	header.Set("Cache-Control", "no-store")
	switch {
	case known.RetryAfter > 0:
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(known.RetryAfter.Seconds()))))
	case known.Code == problem.Unauthenticated:
		header.Set("WWW-Authenticate", `Bearer realm="bettercompute"`)
	case known.Code == problem.MethodNotAllowed:
		header.Set("Allow", call.allow)
	}
	w.WriteHeader(document.Status)
	if err := json.NewEncoder(w).Encode(document); err != nil {
		s.log.LogAttrs(r.Context(), slog.LevelDebug, "the caller is gone", slog.Any("error", err))
	}
}

// refuseBody writes what went wrong before an input was whole: a body that is
// too large, empty or refused by its decoder.
func (s *Server) refuseBody(w http.ResponseWriter, r *http.Request, err error) {
	var tooLarge *http.MaxBytesError
	var violations strictjson.Violations
	switch {
	case errors.As(err, &tooLarge):
		err = tooLargeFault()
	case errors.As(err, &violations):
	case errors.Is(err, io.EOF):
		err = fault.InvalidInput(strictjson.Violation{Rule: strictjson.RuleEmpty, Message: "must be a JSON object"})
	default: // the body broke off; whoever sent it is probably gone
		err = fault.InvalidInput(strictjson.Violation{Rule: strictjson.RuleJSON, Message: "must be a JSON object, and the body broke off"})
	}
	s.refuse(w, r, err)
}

// refuseHeader writes what is wrong with a header that oapi-codegen reads.
func (s *Server) refuseHeader(w http.ResponseWriter, r *http.Request, _ error) {
	s.refuse(w, r, fault.InvalidInput(strictjson.Violation{
		Field: "Last-Event-ID", Rule: strictjson.RuleDuplicate, Message: "must be given once",
	}))
}

func tooLargeFault() error {
	return &fault.Error{Code: problem.PayloadTooLarge, Detail: "the body is larger than " + strconv.Itoa(maxBody>>10) + " KiB"}
}
