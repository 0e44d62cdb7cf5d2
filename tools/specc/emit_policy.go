package main

import (
	"fmt"
	"strings"
)

// policy writes the roles as Cedar policies, the schema they are held against,
// and the roles as Go.
func (e *emitter) policy() error {
	e.files["policy/roles.cedar"] = []byte(e.spec.rolesCedar())
	e.files["policy/schema.cedarschema"] = []byte(e.spec.cedarSchema())
	return e.goFile("policy/policy.gen.go", "policy.tmpl", e.view())
}

// cedarConditions say in Cedar on whose things a scope reaches. They stand
// positively: a condition that cannot be evaluated never permits.
var cedarConditions = map[string][]struct{ name, resource, condition string }{
	"any":  {{"any", "resource", ""}},
	"own":  {{"own", "resource", "resource.owner == principal.tenant"}},
	"site": {{"own-sites", "resource is ComputePool", "resource.siteOwner == principal.tenant"}},
	"pool": {
		{"own-pools", "resource", "principal.everyPool && resource.owner == principal.tenant"},
		{"one-pool", "resource is ComputePool", "principal has pool && principal.pool == resource && resource.owner == principal.tenant"},
	},
}

// rolesCedar writes one policy for each role and scope.
func (s *spec) rolesCedar() string {
	var out strings.Builder
	out.WriteString(marker + " from spec/roles.md. DO NOT EDIT.\n")
	for i, r := range s.roles {
		for _, scope := range []string{"any", "own", "site", "pool"} {
			var actions []string
			for _, g := range s.grants {
				if g.scopes[i] == scope {
					actions = append(actions, fmt.Sprintf("    Action::%q", g.action))
				}
			}
			if len(actions) == 0 {
				continue
			}
			for _, c := range cedarConditions[scope] {
				fmt.Fprintf(&out, "\n@id(\"%s/%s\")\npermit (\n  principal in Role::%q,\n  action in [\n%s\n  ],\n  %s\n)",
					r.name, c.name, r.name, strings.Join(s.applicable(actions, c.resource), ",\n"), c.resource)
				if c.condition != "" {
					fmt.Fprintf(&out, "\nwhen { %s }", c.condition)
				}
				out.WriteString(";\n")
			}
		}
	}
	return out.String()
}

// applicable leaves out the actions that are never decided on the kind of
// resource that a policy is limited to; the validator would refuse them.
func (s *spec) applicable(actions []string, resource string) []string {
	kind, limited := strings.CutPrefix(resource, "resource is ")
	if !limited {
		return actions
	}
	var list []string
	for _, action := range actions {
		name := strings.Trim(strings.TrimPrefix(strings.TrimSpace(action), "Action::"), `"`)
		for _, k := range s.resourceKinds(name) {
			if goName(k) == kind {
				list = append(list, action)
			}
		}
	}
	return list
}

// resourceKinds lists what an action is decided on, in the order of the pages.
func (s *spec) resourceKinds(action string) (kinds []string) {
	for _, g := range s.groups {
		for _, m := range g.methods {
			uses := m.action == action
			for _, a := range m.also {
				uses = uses || a.action == action
			}
			for _, t := range m.targets {
				if _, known := find(kinds, func(k string) bool { return k == t.kind }); uses && !known {
					kinds = append(kinds, t.kind)
				}
			}
		}
	}
	return kinds
}

func (s *spec) cedarSchema() string {
	var out strings.Builder
	out.WriteString(marker + ` from spec/*.md. DO NOT EDIT.

entity Role;

// Who acts: "tenant/name". A key limited to one pool has it as pool, any other everyPool.
entity Identity in [Role] {
  tenant: String,
  everyPool: Bool,
  pool?: ComputePool,
};

entity Tenant {
  owner: String,
};

// A site: "tenant/site".
entity ComputeSite {
  owner: String,
  custom: Bool,
};

// A pool: "tenant/pool".
entity ComputePool {
  owner: String,
  siteOwner: String,
  agent: String,
};
`)
	for _, g := range s.grants {
		var kinds []string
		for _, k := range s.resourceKinds(g.action) {
			kinds = append(kinds, goName(k))
		}
		fmt.Fprintf(&out, "\naction %q appliesTo {\n  principal: [Identity],\n  resource: [%s],\n};\n", g.action, strings.Join(kinds, ", "))
	}
	return out.String()
}
