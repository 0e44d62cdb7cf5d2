// Package pools serves the group pools (spec/pools.md).
package pools

import (
	"context"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/policy"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/iam"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/strictjson"
	"github.com/bettercompute/bettercompute/impl/trust"
)

// Pools implements [api.Pools].
type Pools struct{ db *store.DB }

// New returns the group.
func New(db *store.DB) *Pools { return &Pools{db} }

// Create makes a pool, or returns the one that is there and is the same.
func (p *Pools) Create(ctx context.Context, in *wire.PoolsCreateInput) (*api.PoolsCreateOutput, error) {
	siteOwner := in.TenantID
	if in.SiteTenantID.Set {
		siteOwner = in.SiteTenantID.Value
	}
	if err := refuse(attestorServed(in.Policy.Attestor), ownerAllowed(in.TenantID, siteOwner)); err != nil {
		return nil, err
	}
	asked := store.Pool{
		TenantID:             in.TenantID,
		PoolID:               in.PoolID,
		SiteTenantID:         siteOwner,
		SiteID:               in.SiteID,
		Agent:                string(in.Agent),
		Attestor:             string(in.Policy.Attestor),
		PlatformOperated:     in.Policy.Kubernetes.PlatformOperated,
		AllowVirtualMachines: in.Policy.AllowVirtualMachines,
		Erase:                string(in.Policy.Erase),
		CreatedBy:            iam.PrincipalFrom(ctx).String(),
	}
	var pool store.Pool
	err := p.db.Write(ctx, func(tx *store.Tx) error {
		stored, created, err := tx.CreatePool(ctx, asked)
		if err == nil && !created && !same(stored, asked) {
			return fault.Conflict("the tenant has a pool of this id with other content")
		}
		pool = stored
		return err
	})
	if err != nil {
		return nil, err
	}
	return &api.PoolsCreateOutput{Pool: view(pool)}, nil
}

// Get returns one pool.
func (p *Pools) Get(ctx context.Context, in *wire.PoolsGetInput) (*api.PoolsGetOutput, error) {
	pool, err := p.db.Pool(ctx, in.TenantID, in.PoolID)
	if err != nil {
		return nil, err
	}
	return &api.PoolsGetOutput{Pool: view(pool)}, nil
}

// List returns a page of a tenant's pools.
func (p *Pools) List(ctx context.Context, in *wire.PoolsListInput) (*api.PoolsListOutput, error) {
	pools, more, err := p.db.Pools(ctx, store.PoolQuery{TenantID: in.TenantID, After: in.Cursor.Value, Limit: int(in.Limit)})
	if err != nil {
		return nil, err
	}
	out := &api.PoolsListOutput{Pools: make([]api.Pool, len(pools))}
	for i, pool := range pools {
		out.Pools[i] = view(pool)
	}
	if more {
		out.Cursor = &pools[len(pools)-1].PoolID
	}
	return out, nil
}

// Update changes those fields of a pool's policy that are given.
func (p *Pools) Update(ctx context.Context, in *wire.PoolsUpdateInput) (*api.PoolsUpdateOutput, error) {
	if err := refuse(attestorServed(in.Policy.Attestor.Value)); err != nil {
		return nil, err
	}
	var pool store.Pool
	err := p.db.Write(ctx, func(tx *store.Tx) error {
		changed, err := tx.PoolForUpdate(ctx, in.TenantID, in.PoolID)
		if err != nil {
			return err
		}
		apply(&changed, in.Policy)
		pool, _, err = tx.UpdatePool(ctx, changed, iam.PrincipalFrom(ctx).String())
		return err
	})
	if err != nil {
		return nil, err
	}
	return &api.PoolsUpdateOutput{Pool: view(pool)}, nil
}

func apply(pool *store.Pool, change wire.PoolsUpdateInputPolicy) {
	if change.Attestor.Set {
		pool.Attestor = string(change.Attestor.Value)
	}
	if operated := change.Kubernetes.Value.PlatformOperated; operated.Set {
		pool.PlatformOperated = operated.Value
	}
	if change.AllowVirtualMachines.Set {
		pool.AllowVirtualMachines = change.AllowVirtualMachines.Value
	}
	if change.Erase.Set {
		pool.Erase = string(change.Erase.Value)
	}
}

// same reports whether two pools have the same content, whoever made them and when.
func same(a, b store.Pool) bool {
	a.SiteCustom, a.CreatedAt, a.CreatedBy, a.UpdatedAt = b.SiteCustom, b.CreatedAt, b.CreatedBy, b.UpdatedAt
	return a == b
}

// refuse returns INVALID_INPUT with the violations that are there, or nil.
func refuse(checks ...*strictjson.Violation) error {
	var violations []strictjson.Violation
	for _, v := range checks {
		if v != nil {
			violations = append(violations, *v)
		}
	}
	if len(violations) == 0 {
		return nil
	}
	return fault.InvalidInput(violations...)
}

// attestorServed refuses an attestor that is part of the contract and not of this release.
func attestorServed(a wire.Attestor) *strictjson.Violation {
	if a != wire.AttestorTpm {
		return nil
	}
	return &strictjson.Violation{
		Field: "policy.attestor", Rule: problem.RuleUnsupported,
		Message: "tpm is not served by this release; use token or discovery",
	}
}

// ownerAllowed refuses a pool for a tenant on the site of another one; only the
// platform hands its machines to others.
func ownerAllowed(owner, siteOwner string) *strictjson.Violation {
	if siteOwner == owner || siteOwner == policy.PlatformTenant {
		return nil
	}
	return &strictjson.Violation{
		Field: "siteTenantId", Rule: problem.RuleOwner,
		Message: "must be the pool's own tenant or the platform",
	}
}

// view is a pool as callers see it.
func view(p store.Pool) api.Pool {
	return api.Pool{
		PoolID:       p.PoolID,
		TenantID:     p.TenantID,
		SiteID:       p.SiteID,
		SiteTenantID: p.SiteTenantID,
		Agent:        wire.Agent(p.Agent),
		Policy: api.PoolPolicy{
			Attestor:             wire.Attestor(p.Attestor),
			Kubernetes:           api.PoolPolicyKubernetes{PlatformOperated: p.PlatformOperated},
			AllowVirtualMachines: p.AllowVirtualMachines,
			Erase:                wire.Erase(p.Erase),
		},
		Trust:     trust.OfPool(p.SiteTenantID, p.SiteCustom),
		CreatedAt: p.CreatedAt,
		CreatedBy: p.CreatedBy,
		UpdatedAt: p.UpdatedAt,
	}
}
