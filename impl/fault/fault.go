// Package fault is the one error that reaches a caller.
package fault

import (
	"context"
	"errors"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// Error is a refusal with one of the codes of spec/errors.md. Its detail and
// violations are told to the caller; its cause is for the log alone.
type Error struct {
	Code       problem.Code
	Reason     problem.Reason // why a machine is refused; empty for anybody else
	Detail     string
	Violations strictjson.Violations
	RetryAfter time.Duration // zero: the caller is told nothing about when
	cause      error
}

// Error implements error. It is for logs; the caller gets Code, Detail and Violations.
func (e *Error) Error() string {
	text := string(e.Code) + ": " + e.Detail
	if len(e.Violations) > 0 {
		text += ": " + e.Violations.Error()
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

// InvalidInput refuses a body; every violation is told.
func InvalidInput(violations ...strictjson.Violation) *Error {
	return &Error{Code: problem.InvalidInput, Detail: "the input breaks the rules of this method", Violations: violations}
}

// What a caller shows in place of which UNAUTHENTICATED is answered.
const (
	APIKey          = "a valid API key is needed as bearer"
	JoinToken       = "a valid join token is needed as bearer"
	NodeCertificate = "a valid client certificate of a node is needed"
)

// Unauthenticated refuses a credential. It has one text for each kind of them,
// whatever was wrong.
func Unauthenticated(needed string) *Error {
	return &Error{Code: problem.Unauthenticated, Detail: needed}
}

// Refused refuses a machine, which is told why.
func Refused(reason problem.Reason) *Error {
	return &Error{Code: reason.Code(), Reason: reason, Detail: "the machine is refused: " + string(reason)}
}

// PermissionDenied refuses an action to a caller who may know of the resource.
func PermissionDenied(action string) *Error {
	return &Error{Code: problem.PermissionDenied, Detail: "the caller may not " + action}
}

// NotFound says that there is no such thing: "pool", "join token".
func NotFound(what string) *Error {
	return &Error{Code: problem.NotFound, Detail: "there is no such " + what}
}

// Conflict says that an id or key stands for something else already.
func Conflict(detail string) *Error {
	return &Error{Code: problem.Conflict, Detail: detail}
}

// InvalidState says that the thing is not in a state that allows this.
func InvalidState(detail string) *Error {
	return &Error{Code: problem.InvalidState, Detail: detail}
}

// RateLimited says that the caller is over a limit, and when to come back.
func RateLimited(detail string, after time.Duration) *Error {
	return &Error{Code: problem.RateLimited, Detail: detail, RetryAfter: after}
}

// Unavailable says that the database cannot be reached; cause is logged.
func Unavailable(cause error) *Error {
	return &Error{Code: problem.Unavailable, Detail: "the service is not available at the moment", RetryAfter: time.Second, cause: cause}
}

// From returns err as the error for the caller: itself where it is one, the
// violations of a decoder as INVALID_INPUT, a cancelled or overdue call as
// UNAVAILABLE, and anything else as INTERNAL, of which nothing is told.
func From(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	var violations strictjson.Violations
	if errors.As(err, &violations) {
		return InvalidInput(violations...)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Unavailable(err)
	}
	return &Error{Code: problem.Internal, Detail: "an internal error; the log has it under the request id", cause: err}
}

// Is reports whether err is a refusal with this code.
func Is(err error, code problem.Code) bool {
	var known *Error
	return errors.As(err, &known) && known.Code == code
}
