package store

import (
	"context"
	"time"

	"github.com/bettercompute/bettercompute/gen/events"
)

// Site is a row of sites; see Site in spec/types.md.
type Site struct {
	TenantID  string `bun:",pk"`
	SiteID    string `bun:",pk"`
	Custom    bool
	CreatedAt time.Time
	CreatedBy string
}

func (s *Site) times() []*time.Time { return []*time.Time{&s.CreatedAt} }

// Site returns one site.
func (r Reader) Site(ctx context.Context, tenantID, siteID string) (Site, error) {
	return one[Site](ctx, r, "site", r.sql.NewSelect().Where("tenant_id = ? AND site_id = ?", tenantID, siteID))
}

// SiteQuery selects a page of a tenant's sites.
type SiteQuery struct {
	TenantID string
	After    string // the last id of the page before
	Limit    int
}

// Sites returns up to Limit sites in the order of their ids, and whether there are more.
func (r Reader) Sites(ctx context.Context, q SiteQuery) ([]Site, bool, error) {
	return page[Site](ctx, r, "sites", q.Limit, r.sql.NewSelect().
		Where("tenant_id = ? AND site_id > ?", q.TenantID, q.After).Order("site_id"))
}

// CreateSite writes a site as created now and publishes compute.site.created.
// Where the tenant has a site of this id, that one is returned, whatever it
// holds, and created is false.
func (tx *Tx) CreateSite(ctx context.Context, site Site) (stored Site, created bool, err error) {
	site.CreatedAt = tx.Now()
	created, err = tx.insert(ctx, "site", &site)
	if err != nil {
		return Site{}, false, err
	}
	if !created {
		stored, err = tx.Site(ctx, site.TenantID, site.SiteID)
		return stored, false, err
	}
	return site, true, tx.publish(ctx, subject{
		source:   "/compute-site/" + site.TenantID + "/" + site.SiteID,
		id:       site.SiteID,
		tenantID: site.TenantID,
	}, events.ComputeSiteCreated{SiteID: site.SiteID, Custom: site.Custom, CreatedBy: site.CreatedBy})
}
