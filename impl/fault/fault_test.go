package fault_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// TestFrom_WhatACallerLearns holds which code an error becomes, and that the
// detail of anything unexpected says nothing of it.
func TestFrom_WhatACallerLearns(t *testing.T) {
	t.Parallel()
	secret := errors.New("password of db01 is hunter2")
	violations := strictjson.Violations{{Field: "maxUses", Rule: "range", Message: "must be 1-10000"}}
	for _, c := range []struct {
		err  error
		code problem.Code
	}{
		{fault.NotFound("pool"), problem.NotFound},
		{fmt.Errorf("while reading: %w", fault.Conflict("taken")), problem.Conflict},
		{errors.Join(secret, fault.InvalidState("no daemon")), problem.InvalidState},
		{violations, problem.InvalidInput},
		{fmt.Errorf("can't decode JSON body: %w", violations), problem.InvalidInput},
		{context.Canceled, problem.Unavailable},
		{fmt.Errorf("%w: %w", context.DeadlineExceeded, secret), problem.Unavailable},
		{fault.Unavailable(secret), problem.Unavailable},
		{secret, problem.Internal},
		{fmt.Errorf("store: %w", secret), problem.Internal},
	} {
		known := fault.From(c.err)
		if known.Code != c.code || known.Detail == "" {
			t.Errorf("%v became %s: %q", c.err, known.Code, known.Detail)
		}
		if strings.Contains(known.Detail, "hunter2") {
			t.Errorf("a caller is told %q", known.Detail)
		}
		if c.code == problem.InvalidInput && len(known.Violations) != 1 {
			t.Errorf("violations are lost: %+v", known)
		}
		if (c.code == problem.Internal) && (!errors.Is(known, secret) || !strings.Contains(known.Error(), "hunter2")) {
			t.Errorf("the log is told only %q", known)
		}
	}
}

// TestErrors_SayEnoughForTheLog holds that a log line has code, detail, violations and cause.
func TestErrors_SayEnoughForTheLog(t *testing.T) {
	t.Parallel()
	for err, want := range map[*fault.Error][]string{
		fault.Unavailable(errors.New("no route")):                                            {"UNAVAILABLE", "no route"},
		fault.InvalidInput(strictjson.Violation{Field: "a", Rule: "null", Message: "must…"}): {"INVALID_INPUT", "a: must… (null)"},
		fault.PermissionDenied("compute:pools:vouch"):                                        {"PERMISSION_DENIED", "compute:pools:vouch"},
		fault.RateLimited("too many", time.Second):                                           {"RATE_LIMITED", "too many"},
	} {
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
	}
	if after := fault.RateLimited("x", 3*time.Second).RetryAfter; after != 3*time.Second {
		t.Errorf("retry after %v", after)
	}
	if a, b := fault.Unauthenticated(fault.APIKey).Error(), fault.Unauthenticated(fault.APIKey).Error(); a != b {
		t.Errorf("two texts for one answer: %q and %q", a, b)
	}
}

// TestIs holds that a code is found through wrapping, and nothing else is.
func TestIs(t *testing.T) {
	t.Parallel()
	wrapped := fmt.Errorf("a: %w", fault.NotFound("pool"))
	if !fault.Is(wrapped, problem.NotFound) || fault.Is(wrapped, problem.Conflict) || fault.Is(errors.New("x"), problem.NotFound) || fault.Is(nil, problem.NotFound) {
		t.Error("Is is wrong")
	}
}
