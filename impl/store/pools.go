package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/bettercompute/bettercompute/gen/events"
)

// Pool is a row of pools; see Pool in spec/types.md.
type Pool struct {
	TenantID             string `bun:",pk"`
	PoolID               string `bun:",pk"`
	SiteTenantID         string
	SiteID               string
	Agent                string
	Attestor             string
	PlatformOperated     bool
	AllowVirtualMachines bool
	Erase                string
	CreatedAt            time.Time
	CreatedBy            string
	UpdatedAt            time.Time
	SiteCustom           bool `bun:",scanonly"` // as the site's row has it
}

func (p *Pool) times() []*time.Time { return []*time.Time{&p.CreatedAt, &p.UpdatedAt} }

func (p *Pool) policy() (policy events.PoolPolicy) {
	policy.Attestor = p.Attestor
	policy.Kubernetes.PlatformOperated = p.PlatformOperated
	policy.AllowVirtualMachines = p.AllowVirtualMachines
	policy.Erase = p.Erase
	return policy
}

func (p *Pool) subject() subject { return poolSubject(p.TenantID, p.PoolID, p.PoolID) }

// selectPools selects pools, with what their sites say of them.
func (r Reader) selectPools() *bun.SelectQuery {
	return r.sql.NewSelect().ColumnExpr("pool.*").ColumnExpr(`(SELECT site.custom FROM sites AS site
		WHERE site.tenant_id = pool.site_tenant_id AND site.site_id = pool.site_id) AS site_custom`)
}

// Pool returns one pool.
func (r Reader) Pool(ctx context.Context, tenantID, poolID string) (Pool, error) {
	return one[Pool](ctx, r, "pool", r.selectPools().Where("tenant_id = ? AND pool_id = ?", tenantID, poolID))
}

// PoolForUpdate returns one pool and keeps others from changing it until the
// transaction ends. They may still read it and mint tokens for it.
func (tx *Tx) PoolForUpdate(ctx context.Context, tenantID, poolID string) (Pool, error) {
	query := tx.selectPools().Where("tenant_id = ? AND pool_id = ?", tenantID, poolID)
	return one[Pool](ctx, tx.Reader, "pool", tx.locking(query))
}

// PoolQuery selects a page of a tenant's pools.
type PoolQuery struct {
	TenantID string
	After    string // the last id of the page before
	Limit    int
}

// Pools returns up to Limit pools in the order of their ids, and whether there are more.
func (r Reader) Pools(ctx context.Context, q PoolQuery) ([]Pool, bool, error) {
	return page[Pool](ctx, r, "pools", q.Limit, r.selectPools().
		Where("tenant_id = ? AND pool_id > ?", q.TenantID, q.After).Order("pool_id"))
}

// CreatePool writes a pool as created now and publishes compute.pool.created.
// Where the tenant has a pool of this id, that one is returned, whatever it
// holds, and created is false. A site that does not exist is NOT_FOUND.
func (tx *Tx) CreatePool(ctx context.Context, pool Pool) (stored Pool, created bool, err error) {
	pool.CreatedAt, pool.UpdatedAt = tx.Now(), tx.Now()
	created, err = tx.insertFor(ctx, "pool", "site", &pool)
	if err != nil {
		return Pool{}, false, err
	}
	stored, err = tx.Pool(ctx, pool.TenantID, pool.PoolID)
	if err != nil || !created {
		return stored, false, err
	}
	return stored, true, tx.publish(ctx, pool.subject(), events.ComputePoolCreated{
		PoolID:       pool.PoolID,
		SiteID:       pool.SiteID,
		SiteTenantID: pool.SiteTenantID,
		Agent:        pool.Agent,
		Policy:       pool.policy(),
		CreatedBy:    pool.CreatedBy,
	})
}

// UpdatePool gives a pool the policy of pool and publishes compute.pool.updated.
// Where it has that policy already, it stays as it is and nothing is published.
func (tx *Tx) UpdatePool(ctx context.Context, pool Pool, by string) (stored Pool, changed bool, err error) {
	n, err := tx.exec(ctx, "update pool", `UPDATE pools
		SET attestor = ?2, platform_operated = ?3, allow_virtual_machines = ?4, erase = ?5, updated_at = ?6
		WHERE tenant_id = ?0 AND pool_id = ?1
		AND NOT (attestor = ?2 AND platform_operated = ?3 AND allow_virtual_machines = ?4 AND erase = ?5)`,
		pool.TenantID, pool.PoolID, pool.Attestor, pool.PlatformOperated, pool.AllowVirtualMachines, pool.Erase, tx.Now())
	if err != nil {
		return Pool{}, false, err
	}
	stored, err = tx.Pool(ctx, pool.TenantID, pool.PoolID)
	if err != nil || n == 0 {
		return stored, false, err
	}
	return stored, true, tx.publish(ctx, stored.subject(), events.ComputePoolUpdated{
		PoolID: stored.PoolID, Policy: stored.policy(), UpdatedBy: by,
	})
}
