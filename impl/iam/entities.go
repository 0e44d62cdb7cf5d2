package iam

import (
	"github.com/cedar-policy/cedar-go"

	"github.com/bettercompute/bettercompute/gen/api"
)

// The entity types of the schema (gen/policy/schema.cedarschema).
const (
	typeIdentity = cedar.EntityType("Identity")
	typeRole     = cedar.EntityType("Role")
	typeAction   = cedar.EntityType("Action")
	typePool     = cedar.EntityType("ComputePool")
	typeSite     = cedar.EntityType("ComputeSite")
	typeTenant   = cedar.EntityType("Tenant")
)

// question builds the request and the two entities that it is about. Ids go in
// as values, so that no name can change the meaning of a policy.
func question(p Principal, action string, r Resource) (cedar.Request, cedar.EntityMap) {
	who := cedar.NewEntityUID(typeIdentity, cedar.String(p.String()))
	attributes := cedar.RecordMap{
		"tenant":    cedar.String(p.Tenant),
		"everyPool": cedar.Boolean(p.PoolID == ""),
	}
	if p.PoolID != "" {
		attributes["pool"] = scoped(typePool, p.Tenant, p.PoolID)
	}
	what, about := resourceEntity(r)
	return cedar.Request{
			Principal: who,
			Action:    cedar.NewEntityUID(typeAction, cedar.String(action)),
			Resource:  what,
		}, cedar.EntityMap{
			who: {
				UID:        who,
				Parents:    cedar.NewEntityUIDSet(cedar.NewEntityUID(typeRole, cedar.String(p.Role))),
				Attributes: cedar.NewRecord(attributes),
			},
			what: {UID: what, Attributes: cedar.NewRecord(about)},
		}
}

func resourceEntity(r Resource) (cedar.EntityUID, cedar.RecordMap) {
	about := cedar.RecordMap{"owner": cedar.String(r.Owner)}
	switch r.Type {
	case api.ComputePool:
		about["siteOwner"] = cedar.String(r.SiteOwner)
		about["agent"] = cedar.String(r.Agent)
		return scoped(typePool, r.Owner, r.ID), about
	case api.ComputeSite:
		about["custom"] = cedar.Boolean(r.Custom)
		return scoped(typeSite, r.Owner, r.ID), about
	default:
		return cedar.NewEntityUID(typeTenant, cedar.String(r.ID)), about
	}
}

// scoped names a thing of a tenant; a tenant has no slash, so no two names meet.
func scoped(kind cedar.EntityType, tenant, id string) cedar.EntityUID {
	return cedar.NewEntityUID(kind, cedar.String(tenant+"/"+id))
}
