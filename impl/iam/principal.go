// Package iam says who calls and what they may do: API keys, and Cedar decisions.
package iam

import (
	"context"
	"strings"

	"github.com/bettercompute/bettercompute/impl/bearer"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"

	"github.com/bettercompute/bettercompute/gen/problem"
)

// A Principal is the identity that a call is made under. What it creates is
// known by Tenant and Name alone, so that it may change its key.
type Principal struct {
	Tenant string
	Name   string
	Role   string
	PoolID string // the only pool that the key reaches; empty: every pool
	KeyID  string
}

// String returns the principal as tenant/name; a tenant has no slash, so no two are alike.
func (p Principal) String() string { return p.Tenant + "/" + p.Name }

type principalKey struct{}

// WithPrincipal returns a context that carries who calls.
func WithPrincipal(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// PrincipalFrom returns who calls. It panics in a context that the pipeline
// did not make: a handler is never called without a principal.
func PrincipalFrom(ctx context.Context) Principal {
	return ctx.Value(principalKey{}).(Principal)
}

// A KeyReader finds API keys by their ids.
type KeyReader interface {
	APIKey(ctx context.Context, id string) (store.APIKey, error)
}

// Authenticate returns the principal of an Authorization header. Whatever is
// wrong with it, the answer is the same UNAUTHENTICATED; an id that is unknown
// takes the same comparison as one that is known.
func Authenticate(ctx context.Context, keys KeyReader, authorization string) (Principal, error) {
	scheme, text, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return Principal{}, fault.Unauthenticated(fault.APIKey)
	}
	id, hash, ok := bearer.Parse(bearer.APIKey, strings.TrimLeft(text, " "))
	if !ok {
		return Principal{}, fault.Unauthenticated(fault.APIKey)
	}
	key, err := keys.APIKey(ctx, id)
	if fault.Is(err, problem.NotFound) {
		key.SecretSHA256 = make([]byte, len(hash))
	} else if err != nil {
		return Principal{}, err
	}
	if !hash.Equal(key.SecretSHA256) || key.RevokedAt != nil {
		return Principal{}, fault.Unauthenticated(fault.APIKey)
	}
	return Principal{Tenant: key.TenantID, Name: key.Identity, Role: key.Role, PoolID: key.PoolID, KeyID: key.ID}, nil
}
