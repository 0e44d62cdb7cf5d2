package server

import (
	"context"
	"net/http"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/iam"
	"github.com/bettercompute/bettercompute/impl/nodes"
	"github.com/bettercompute/bettercompute/impl/store"
)

// identify says who calls by the credential that the method takes, and returns
// a context that carries it. A join token and a certificate are looked up anew
// for each call.
func (s *Server) identify(ctx context.Context, r *http.Request, c *call) (context.Context, error) {
	limited, cancel := context.WithTimeout(ctx, s.timeouts.database)
	defer cancel()
	c.authenticated = time.Now()
	switch c.method.Credential {
	case api.CredentialJoinToken:
		arrival, err := s.nodes.Arrive(limited, bearerOf(r), s.limits.address(r))
		if err != nil {
			return ctx, err
		}
		c.principal = "join-token/" + arrival.Token.ID
		return nodes.WithArrival(ctx, arrival), nil
	case api.CredentialNodeCertificate:
		caller, err := s.recognize(limited, r, c)
		if err != nil {
			return ctx, err
		}
		return nodes.WithCaller(ctx, caller), nil
	default:
		principal, err := s.authenticate(limited, r)
		if err != nil {
			return ctx, err
		}
		c.principal = principal.String()
		return iam.WithPrincipal(ctx, principal), nil
	}
}

func (s *Server) authenticate(ctx context.Context, r *http.Request) (iam.Principal, error) {
	header := bearerOf(r)
	if header == "" {
		return iam.Principal{}, fault.Unauthenticated(fault.APIKey)
	}
	return iam.Authenticate(ctx, s.db, header)
}

// bearerOf is the one Authorization header of a request. Of several none is
// taken: what stands before the server may have looked at another one.
func bearerOf(r *http.Request) string {
	if bearers := r.Header.Values("Authorization"); len(bearers) == 1 {
		return bearers[0]
	}
	return ""
}

// recognize reads which node calls. A banned one is recorded as refused.
func (s *Server) recognize(ctx context.Context, r *http.Request, c *call) (store.Caller, error) {
	if r.TLS == nil {
		return store.Caller{}, fault.Unauthenticated(fault.NodeCertificate)
	}
	caller, err := s.nodes.Recognize(ctx, r.TLS.PeerCertificates, c.method.Operation == renewOperation)
	if caller.Node.ID != "" {
		c.principal = "node/" + caller.Node.ID
	}
	if fault.Is(err, problem.PermissionDenied) {
		s.denials.add(store.Denial{
			Principal: c.principal, Action: c.method.ID,
			Resource: iam.Resource{Type: api.ComputePool, Owner: caller.TenantID, ID: caller.PoolID}.String(),
			Reason:   string(problem.ReasonNodeBanned),
		})
	}
	if err == nil {
		if wait := s.limits.takeOfNode(caller.Node.ID); wait > 0 {
			return caller, fault.RateLimited("too many calls of this node", wait)
		}
	}
	return caller, err
}

// renewOperation is the one method that an expired certificate may call (NJ-6).
const renewOperation = "NodesRenew"

// admits refuses joins that come in the clear or too fast, before anything is
// looked up for them (NJ-7).
func (s *Server) admits(r *http.Request, c *call) error {
	if c.method.Credential != api.CredentialJoinToken {
		return nil
	}
	if r.TLS == nil {
		return fault.InvalidState("machines join over TLS only: start the server with --tls auto, or with --tls-cert and --tls-key")
	}
	address := s.limits.address(r)
	if wait := s.limits.take(address); wait > 0 {
		s.refusedJoin(nodes.Refusal{Cause: nodes.CauseTooFast, Address: address})
		return fault.RateLimited("too many joins from this address, or in all", wait)
	}
	return nil
}

// refusedJoin records a join that was refused, with its true cause.
func (s *Server) refusedJoin(refusal nodes.Refusal) {
	denial := store.Denial{
		Principal: "join-token/*", Action: "nodes.join", Resource: string(api.ComputePool) + "/*",
		Reason: refusal.Cause, SourceAddress: refusal.Address,
	}
	if t := refusal.Token; t.ID != "" {
		denial.Principal = "join-token/" + t.ID
		denial.Resource = iam.Resource{Type: api.ComputePool, Owner: t.TenantID, ID: t.PoolID}.String()
		denial.Join = store.RejectedJoin{TokenID: t.ID, TenantID: t.TenantID, PoolID: t.PoolID}
	}
	s.denials.add(denial)
}
