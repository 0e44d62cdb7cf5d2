package nodes_test

import (
	"context"
	"testing"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/iam"
	"github.com/bettercompute/bettercompute/impl/nodes"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// join calls as the pipeline does: the token first, then the body.
func (p *process) join(ctx context.Context, bearer string, m machine) (*api.NodesJoinOutput, error) {
	arrival, err := p.Arrive(ctx, bearer, address)
	if err != nil {
		return nil, err
	}
	return p.Join(nodes.WithArrival(ctx, arrival), &wire.NodesJoinInput{CSR: m.csr, Claims: m.claims})
}

func (p *process) refused(t testing.TB, tok token, m machine) error {
	t.Helper()
	out, err := p.join(t.Context(), tok.bearer, m)
	if err == nil {
		t.Errorf("the join is not refused: %+v", out)
	}
	return err
}

func (p *process) admit(t testing.TB, tok token, m machine) *api.Admission {
	t.Helper()
	out, err := p.join(t.Context(), tok.bearer, m)
	if err != nil || out.Admitted == nil || out.Pending != nil {
		t.Fatalf("the join is not admitted: %+v, %v", out, err)
	}
	return out.Admitted
}

func (p *process) defers(t testing.TB, tok token, m machine, reason wire.DeferralReason) *api.Deferral {
	t.Helper()
	out, err := p.join(t.Context(), tok.bearer, m)
	if err != nil || out.Pending == nil || out.Admitted != nil {
		t.Fatalf("the join is not deferred: %+v, %v", out, err)
	}
	if out.Pending.Reason != reason {
		t.Fatalf("the join is deferred for %s, want %s", out.Pending.Reason, reason)
	}
	return out.Pending
}

func ops(ctx context.Context) context.Context {
	return iam.WithPrincipal(ctx, iam.Principal{Tenant: "acme", Name: "ops"})
}

func (p *process) approve(t testing.TB, tok token, d *api.Deferral) api.JoinRequest {
	t.Helper()
	out, err := p.requests.Approve(ops(t.Context()), &wire.JoinRequestsApproveInput{
		TenantID: tok.TenantID, PoolID: tok.PoolID, RequestID: d.RequestID, CSRSha256: d.CSRSha256,
	})
	must(t, err)
	return out.JoinRequest
}

func (p *process) deny(t testing.TB, tok token, d *api.Deferral) {
	t.Helper()
	_, err := p.requests.Deny(ops(t.Context()), &wire.JoinRequestsDenyInput{TenantID: tok.TenantID, PoolID: tok.PoolID, RequestID: d.RequestID})
	must(t, err)
}

func (p *process) request(t testing.TB, tok token, id string) api.JoinRequest {
	t.Helper()
	out, err := p.requests.Get(t.Context(), &wire.JoinRequestsGetInput{TenantID: tok.TenantID, PoolID: tok.PoolID, RequestID: id})
	must(t, err)
	return out.JoinRequest
}

func (p *process) revoke(t testing.TB, tok token) {
	t.Helper()
	must(t, p.db.Write(t.Context(), func(tx *store.Tx) error {
		_, _, err := tx.RevokeToken(t.Context(), tok.TenantID, tok.PoolID, tok.ID, "acme/ops")
		return err
	}))
}

func (p *process) node(t testing.TB, a *api.Admission) api.Node {
	t.Helper()
	out, err := p.Get(t.Context(), &wire.NodesGetInput{TenantID: a.TenantID, PoolID: a.PoolID, NodeID: a.NodeID})
	must(t, err)
	return out.Node
}

func (p *process) ban(t testing.TB, a *api.Admission) {
	t.Helper()
	_, err := p.Ban(ops(t.Context()), &wire.NodesBanInput{TenantID: a.TenantID, PoolID: a.PoolID, NodeID: a.NodeID})
	must(t, err)
}

func (p *process) remove(t testing.TB, a *api.Admission) {
	t.Helper()
	_, err := p.Remove(ops(t.Context()), &wire.NodesRemoveInput{TenantID: a.TenantID, PoolID: a.PoolID, NodeID: a.NodeID})
	must(t, err)
}

// nodesOf lists all live nodes of a pool.
func (p *process) nodesOf(t testing.TB, pool store.Pool) (all []api.Node) {
	t.Helper()
	in := &wire.NodesListInput{TenantID: pool.TenantID, PoolID: pool.PoolID, Limit: 200}
	for {
		out, err := p.List(t.Context(), in)
		must(t, err)
		all = append(all, out.Nodes...)
		if out.Cursor == nil {
			return all
		}
		in.Cursor = strictjson.Some(*out.Cursor)
	}
}

func (p *process) count(t testing.TB, pool store.Pool) int {
	t.Helper()
	return len(p.nodesOf(t, pool))
}
