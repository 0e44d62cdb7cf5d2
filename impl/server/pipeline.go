package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/iam"
	"github.com/bettercompute/bettercompute/impl/store"
)

// pipeline is the path of every call once its input is decoded: replay,
// resource, decision, handler. Nothing else in the program decides.
func (s *Server) pipeline(handle api.StrictHandlerFunc, operation string) api.StrictHandlerFunc {
	m, ok := s.byOperation[operation]
	if !ok {
		panic("server: the method table has no row for " + operation)
	}
	return func(ctx context.Context, w http.ResponseWriter, r *http.Request, request any) (any, error) {
		if !m.Stream {
			limited, cancel := context.WithTimeout(ctx, s.timeouts.database)
			defer cancel()
			ctx = limited
		}
		if err := m.Resume(request); err != nil {
			return nil, err
		}
		ctx, err := s.stillAuthenticated(ctx, r)
		if err != nil {
			return nil, err
		}
		if m.Credential != api.CredentialAPIKey { // what it has shown decides, and the handler knows it
			return handle(ctx, w, r, request)
		}
		if m.Replay == api.ReplayBeforeDecision {
			if answer, err := s.groups.Replay(ctx, m, request); answer != nil || err != nil {
				return answer, err
			}
		}
		if ctx, err = s.decide(ctx, m, request); err != nil {
			return nil, err
		}
		if m.Replay == api.ReplayAfterDecision {
			if answer, err := s.groups.Replay(ctx, m, request); answer != nil || err != nil {
				return answer, err
			}
		}
		if m.Stream {
			ctx = s.whileAllowed(ctx, r, m, request)
		}
		return handle(ctx, w, r, request)
	}
}

// stillAuthenticated looks at the credential once more where reading the body
// took long: a request that was begun and left half sent must not outlive its key.
func (s *Server) stillAuthenticated(ctx context.Context, r *http.Request) (context.Context, error) {
	c := callFrom(ctx)
	if time.Since(c.authenticated) < s.timeouts.body {
		return ctx, nil
	}
	return s.identify(ctx, r, c)
}

// decide loads the one resource of a call and asks whether the caller may do
// what it wants there. The context that it returns carries the decision to the
// transaction of a mutation, which records it.
func (s *Server) decide(ctx context.Context, m *api.Method, request any) (context.Context, error) {
	asked := m.Resource(request)
	principal := iam.PrincipalFrom(ctx)
	stranger := m.Hidden && principal.Tenant != asked.TenantID
	resource, err := s.resource(ctx, asked)
	if err != nil {
		if stranger && fault.Is(err, problem.NotFound) {
			// The same work and the same count as for a thing that is there: neither tells.
			s.ask(ctx, principal, m, m.Action, resource)
		}
		return ctx, err
	}
	ctx, err = s.ask(ctx, principal, m, m.Action, resource)
	if err != nil {
		// Whoever is not of the tenant learns nothing, not even that it exists (JT-20).
		if stranger {
			return ctx, fault.NotFound(noun(asked.Type))
		}
		return ctx, err
	}
	for _, action := range m.Also(request) {
		if ctx, err = s.ask(ctx, principal, m, action, resource); err != nil {
			return ctx, err
		}
	}
	return ctx, nil
}

func (s *Server) ask(ctx context.Context, principal iam.Principal, m *api.Method, action string, resource iam.Resource) (context.Context, error) {
	decision, err := s.authority.Decide(principal, action, resource)
	if err != nil {
		s.log.ErrorContext(ctx, "a policy denies because it failed", "error", err, "action", action)
	}
	s.metrics.decision(action, decision.Allowed)
	if !decision.Allowed {
		s.denials.add(store.Denial{Principal: principal.String(), Action: action, Resource: denied(principal, resource), Reason: principal.Role})
		return ctx, fault.PermissionDenied(action)
	}
	if !m.Mutation {
		return ctx, nil
	}
	return store.WithDecision(ctx, store.Decision{
		RequestID: callFrom(ctx).id,
		Principal: principal.String(),
		Action:    action,
		Resource:  resource.String(),
		Policies:  decision.Policies,
	}), nil
}

// denied names what was refused. Of another tenant's things only the kind is
// kept: a caller can name as many as it likes, and would wash out every other refusal.
func denied(principal iam.Principal, resource iam.Resource) string {
	if principal.Tenant != resource.Owner {
		return string(resource.Type) + "/*"
	}
	return resource.String()
}

// resource reads what a call is decided on, once. One that is not the asked
// tenant's is NOT_FOUND here, before any decision.
func (s *Server) resource(ctx context.Context, asked api.Resource) (iam.Resource, error) {
	found := iam.Resource{Type: asked.Type, Owner: asked.TenantID, ID: asked.ID}
	switch asked.Type {
	case api.ComputePool:
		pool, err := s.db.Pool(ctx, asked.TenantID, asked.ID)
		found.SiteOwner, found.Agent = pool.SiteTenantID, pool.Agent
		return found, err
	case api.ComputeSite:
		site, err := s.db.Site(ctx, asked.TenantID, asked.ID)
		found.Custom = site.Custom
		return found, err
	case api.Tenant:
		return found, nil
	default:
		return found, fmt.Errorf("server: no resource of type %s", asked.Type)
	}
}

func noun(t api.ResourceType) string {
	switch t {
	case api.ComputePool:
		return "pool"
	case api.ComputeSite:
		return "site"
	default:
		return string(t)
	}
}

// recheck is how often a stream asks again whether its caller may have it.
const recheck = 15 * time.Second

// whileAllowed returns a context that ends when the server stops, or when the
// caller's key is revoked or loses the right.
func (s *Server) whileAllowed(ctx context.Context, r *http.Request, m *api.Method, request any) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	again := *callFrom(ctx) // the call itself is accounted for when it ends
	s.background.Go(func() {
		defer cancel()
		tick := time.NewTicker(s.recheck)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.streams.Done():
				return
			case <-tick.C:
			}
			turn, done := context.WithTimeout(ctx, s.timeouts.database)
			turn, err := s.identify(turn, r, &again)
			if err == nil {
				_, err = s.decide(turn, m, request)
			}
			done()
			if err != nil && !unavailable(err) {
				return
			}
		}
	})
	return ctx
}
