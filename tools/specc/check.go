package main

import (
	"slices"
	"strings"
)

// check holds the pages against each other.
func check(s *spec, wrong *mistakes) {
	c := &checker{s, wrong}
	c.names()
	c.answers()
	for _, r := range s.records {
		c.record(r)
	}
	for _, e := range s.events {
		c.event(e)
	}
	for _, r := range s.roles {
		if r.tenant != "any" && !c.isTenant(r.tenant) {
			wrong.add(r.at, "the tenant of role %s is \"any\" or a tenant's id, not %q", r.name, r.tenant)
		}
	}
	for _, g := range s.grants {
		c.grant(g)
	}
	for _, g := range s.groups {
		for _, m := range g.methods {
			if m.described {
				c.method(m)
			}
		}
	}
	if s.machine != nil {
		c.provision(s.machine)
	}
	c.unused()
	if len(s.groups) == 0 {
		wrong.add(position{"types.md", 1, 1}, "no page declares methods; add one beside this page")
	}
}

type checker struct {
	*spec
	wrong *mistakes
}

// Every decoder refuses with these, so that errors.md must declare them.
var (
	decoderCodes = []string{"INVALID_INPUT", "PAYLOAD_TOO_LARGE"}
	decoderRules = []string{
		"json", "empty", "encoding", "trailing", "depth", "type", "null", "unknown", "duplicate", "required",
		"length", "pattern", "range", "integer", "enum", "items", "at-least-one",
	}
)

func (c *checker) answers() {
	at := position{"errors.md", 1, 1}
	for _, name := range decoderCodes {
		if _, ok := find(c.codes, func(o *code) bool { return o.name == name }); !ok && len(c.codes) > 0 {
			c.wrong.add(at, "the code %s is missing; decoders refuse with it", name)
		}
	}
	for _, name := range decoderRules {
		if _, ok := find(c.rules, func(o *rule) bool { return o.name == name }); !ok && len(c.rules) > 0 {
			c.wrong.add(at, "the rule %s is missing; decoders refuse with it", name)
		}
	}
	for _, r := range c.reasons {
		c.code(r.code)
	}
}

// code refuses a code that errors.md does not declare.
func (c *checker) code(name cell) {
	if _, ok := find(c.codes, func(o *code) bool { return o.name == name.text }); !ok && len(c.codes) > 0 {
		c.wrong.add(name.at, "unknown error code %q; errors.md declares the codes", name.text)
	}
}

func (c *checker) isTenant(name string) bool {
	tenant, ok := find(c.scalars, func(s *scalar) bool { return s.name == "TenantId" })
	return ok && refusesText(&tenant.limit, name) == ""
}

func (c *checker) grant(g *grant) {
	for i, scope := range g.scopes {
		if i < len(c.roles) && scope == "pool" && !c.roles[i].pool {
			c.wrong.add(g.at, "the role %s cannot be limited to a pool, so its scope for %s is any, own or site", c.roles[i].name, g.action)
		}
		if kinds := c.resourceKinds(g.action); scope == "site" && len(kinds) > 0 && !slices.Contains(kinds, "compute-pool") {
			c.wrong.add(g.at, "the scope site is for what is decided on a pool, and %s is decided on %s", g.action, strings.Join(kinds, ", "))
		}
	}
}

func (c *checker) unused() {
	var actions, events []string
	for _, g := range c.groups {
		for _, m := range g.methods {
			actions = append(actions, m.action)
			for _, further := range m.also {
				actions = append(actions, further.action)
			}
			for _, e := range m.events {
				events = append(events, e.name.text)
			}
		}
	}
	for _, g := range c.grants {
		if !slices.Contains(actions, g.action) {
			c.wrong.add(g.at, "no method has the action %s", g.action)
		}
	}
	for _, e := range c.spec.events {
		if !slices.Contains(events, e.name) {
			c.wrong.add(e.at, "no method publishes the event %s", e.name)
		}
	}
}
