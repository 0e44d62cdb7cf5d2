// Package sites serves the group sites (spec/sites.md).
package sites

import (
	"context"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/iam"
	"github.com/bettercompute/bettercompute/impl/store"
)

// Sites implements [api.Sites].
type Sites struct{ db *store.DB }

// New returns the group.
func New(db *store.DB) *Sites { return &Sites{db} }

// Create makes a site, or returns the one that is there and is the same.
func (s *Sites) Create(ctx context.Context, in *wire.SitesCreateInput) (*api.SitesCreateOutput, error) {
	var site store.Site
	err := s.db.Write(ctx, func(tx *store.Tx) error {
		stored, created, err := tx.CreateSite(ctx, store.Site{
			TenantID:  in.TenantID,
			SiteID:    in.SiteID,
			Custom:    in.Custom,
			CreatedBy: iam.PrincipalFrom(ctx).String(),
		})
		if err == nil && !created && stored.Custom != in.Custom {
			return fault.Conflict("the tenant has a site of this id with another custom")
		}
		site = stored
		return err
	})
	if err != nil {
		return nil, err
	}
	return &api.SitesCreateOutput{Site: view(site)}, nil
}

// Get returns one site.
func (s *Sites) Get(ctx context.Context, in *wire.SitesGetInput) (*api.SitesGetOutput, error) {
	site, err := s.db.Site(ctx, in.TenantID, in.SiteID)
	if err != nil {
		return nil, err
	}
	return &api.SitesGetOutput{Site: view(site)}, nil
}

// List returns a page of a tenant's sites.
func (s *Sites) List(ctx context.Context, in *wire.SitesListInput) (*api.SitesListOutput, error) {
	sites, more, err := s.db.Sites(ctx, store.SiteQuery{TenantID: in.TenantID, After: in.Cursor.Value, Limit: int(in.Limit)})
	if err != nil {
		return nil, err
	}
	out := &api.SitesListOutput{Sites: make([]api.Site, len(sites))}
	for i, site := range sites {
		out.Sites[i] = view(site)
	}
	if more {
		out.Cursor = &sites[len(sites)-1].SiteID
	}
	return out, nil
}

// view is a site as callers see it.
func view(s store.Site) api.Site {
	return api.Site{SiteID: s.SiteID, TenantID: s.TenantID, Custom: s.Custom, CreatedAt: s.CreatedAt, CreatedBy: s.CreatedBy}
}
