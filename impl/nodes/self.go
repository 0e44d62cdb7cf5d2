package nodes

import (
	"context"
	"crypto/x509"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/trust"
)

type callerKey struct{}

// WithCaller returns a context that carries the node that calls.
func WithCaller(ctx context.Context, caller store.Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

func callerFrom(ctx context.Context) store.Caller { return ctx.Value(callerKey{}).(store.Caller) }

// Recognize returns the node that presents a certificate over TLS: one of our
// CA, in time, of a node that is there and not banned, read anew for each call
// (NJ-6). For a renewal it may have ended, up to seven days ago.
func (n *Nodes) Recognize(ctx context.Context, presented []*x509.Certificate, renewal bool) (store.Caller, error) {
	now := n.db.Now()
	identity, err := n.verify(ctx, presented, now)
	if err != nil && fault.Is(fault.From(err), problem.Unavailable) { // new issuers could not be looked for
		return store.Caller{}, err
	}
	if err != nil {
		return store.Caller{}, fault.Unauthenticated(fault.NodeCertificate)
	}
	if identity.Expired && (!renewal || now.After(identity.NotAfter.Add(renewableExpired))) {
		return store.Caller{}, fault.Unauthenticated(fault.NodeCertificate)
	}
	caller, err := n.db.Caller(ctx, identity.Serial)
	switch {
	case fault.Is(err, problem.NotFound):
		return store.Caller{}, fault.Unauthenticated(fault.NodeCertificate)
	case err != nil:
		return store.Caller{}, err
	case caller.Node.ID != identity.NodeID || caller.RemovedAt != nil || caller.Certificate.RevokedAt != nil:
		return store.Caller{}, fault.Unauthenticated(fault.NodeCertificate)
	case caller.BannedAt != nil:
		return caller, fault.Refused(problem.ReasonNodeBanned)
	}
	return caller, nil
}

// Confirm notes that the node has stored the certificate that it calls with.
func (n *Nodes) Confirm(ctx context.Context, in *wire.NodesConfirmInput) (*api.NodesConfirmOutput, error) {
	caller := callerFrom(ctx)
	if err := n.db.ConfirmCertificate(ctx, caller.Certificate, in.AgentVersion.Value); err != nil {
		return nil, err
	}
	return &api.NodesConfirmOutput{NodeID: caller.Node.ID, ServerTime: n.db.Now()}, nil
}

// Report notes that the node is alive.
func (n *Nodes) Report(ctx context.Context, in *wire.NodesReportInput) (*api.NodesReportOutput, error) {
	caller := callerFrom(ctx)
	if err := n.db.Seen(ctx, caller.Node.ID, in.AgentVersion.Value); err != nil {
		return nil, err
	}
	out := &api.NodesReportOutput{NodeID: caller.Node.ID, RenewAfter: renewAfter(caller.Certificate), ServerTime: n.db.Now()}
	if trustNow(caller) != wire.Trust(caller.Certificate.Trust) && out.RenewAfter.After(out.ServerTime) {
		out.RenewAfter = out.ServerTime
	}
	return out, nil
}

// trustNow is what the node is trusted with at this moment: it may have fallen
// since its certificate was issued, and never rises (JT-40).
func trustNow(caller store.Caller) wire.Trust {
	return trust.Min(wire.Trust(caller.Node.Trust),
		poolTrust(caller.SiteTenantID, caller.SiteCustom, caller.PlatformOperated, caller.Hosted))
}

// Renew issues the next certificate of the node.
func (n *Nodes) Renew(ctx context.Context, in *wire.NodesRenewInput) (*api.NodesRenewOutput, error) {
	caller := callerFrom(ctx)
	request, err := parseCSR(in.CSR)
	if err != nil {
		return nil, err
	}
	for range looks {
		certificate, err := n.db.Renewal(ctx, caller.Node.ID, request.Fingerprint)
		replayed := err == nil
		switch {
		case fault.Is(err, problem.NotFound):
			lowered := caller.Node
			lowered.Trust = string(trustNow(caller))
			certificate = newCertificate(lowered, request, n.db.Now())
			renewed, err := n.db.RenewCertificate(ctx, caller.Node, caller.Certificate.Serial, certificate)
			if err != nil {
				return nil, err
			}
			if !renewed {
				continue
			}
		case err != nil:
			return nil, err
		case !repeatable(certificate, n.db.Now()):
			return nil, fault.Conflict("this certificate request was used already; make a new one")
		}
		admission, err := n.admit(ctx, caller.Node, certificate, request, replayed)
		if err != nil {
			return nil, err
		}
		if admission != nil {
			return &api.NodesRenewOutput{Admitted: *admission}, nil
		}
	}
	return nil, fault.RateLimited("this certificate is renewed by several calls at once", time.Second)
}

// repeatable reports whether the call that issued a certificate may be repeated.
func repeatable(c store.NodeCertificate, now time.Time) bool {
	return c.ConfirmedAt == nil && c.RevokedAt == nil && now.Before(c.CreatedAt.Add(replayable))
}
