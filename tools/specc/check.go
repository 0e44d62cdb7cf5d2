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
}

func (c *checker) isTenant(name string) bool {
	tenant, ok := find(c.scalars, func(s *scalar) bool { return s.name == "TenantId" })
	return ok && refusesText(&tenant.limit, name) == ""
}

func (c *checker) grant(g *grant) {
	for i, scope := range g.scopes {
		if i < len(c.roles) && scope == "pool" && !c.roles[i].pool {
			c.wrong.add(g.at, "the role %s cannot be limited to a pool, so its scope for %s is any or own", c.roles[i].name, g.action)
		}
	}
}

func (c *checker) method(m *method) {
	c.facts(m)
	c.authorization(m)
	c.stream(m)
	c.retry(m)
	for _, e := range m.errors {
		if _, ok := find(c.codes, func(o *code) bool { return o.name == e.name.text }); !ok && len(c.codes) > 0 {
			c.wrong.add(e.name.at, "unknown error code %q; errors.md declares the codes", e.name.text)
		}
	}
	for _, e := range m.events {
		if _, ok := find(c.spec.events, func(o *event) bool { return o.name == e.name.text }); !ok {
			c.wrong.add(e.name.at, "unknown event %q; declare it in a section \"## Events\"", e.name.text)
		}
	}
	c.inputs(m.at, "the input of "+m.id(), m.input)
	c.outputs(m)
	c.example(m, m.request, &field{kind: kindObject, fields: m.input}, true)
	if m.stream == nil {
		c.example(m, m.answer, &field{kind: kindObject, fields: m.output}, false)
	}
}

// facts holds the group's row against the method's bullets.
func (c *checker) facts(m *method) {
	var kinds []string
	for _, t := range m.targets {
		kinds = append(kinds, t.kind)
	}
	authorization := ""
	if len(kinds) > 0 {
		authorization = m.action + " @ " + strings.Join(kinds, " or ")
	}
	for _, pair := range []struct {
		row  cell
		says string
		what string
	}{
		{m.row.kind, m.facts.kind.text, "kind"},
		{m.row.authorization, authorization, "authorization"},
		{m.row.phase, m.facts.phase.text, "phase"},
		{m.row.status, m.facts.status.text, "status"},
	} {
		if pair.says != "" && pair.row.text != pair.says {
			c.wrong.add(pair.row.at, "the row says %s %q and the section says %q; they must agree", pair.what, pair.row.text, pair.says)
		}
	}
}

func (c *checker) authorization(m *method) {
	if m.action == "" {
		return // which is said already
	}
	c.action(m.facts.authorization.at, m.action)
	for _, further := range m.also {
		c.action(further.at, further.action)
		if f := fieldAt(m.input, further.when); f == nil || f.kind != kindBoolean {
			c.wrong.add(further.at, "the further action %s hangs on %q, which is no boolean of the input", further.action, further.when)
		}
	}
	for i, t := range m.targets {
		c.target(t, i == len(m.targets)-1, m.input)
	}
	if tenant := fieldNamed(m.input, "tenantId"); tenant == nil || tenant.kind != kindString || !tenant.required {
		c.wrong.add(m.at, "the method %s needs a required string tenantId", m.name)
	}
}

// target checks that a resource can be told from an input.
func (c *checker) target(t target, last bool, input []*field) {
	id, owner := fieldNamed(input, t.id), fieldNamed(input, t.owner)
	switch {
	case id == nil || id.kind != kindString || id.limit.hasDefault:
		c.wrong.add(t.at, "the resource id {%s} is no string of the input without a default", t.id)
	case owner == nil || owner.kind != kindString || owner.limit.hasDefault:
		c.wrong.add(t.at, "the owner {%s} is no string of the input without a default", t.owner)
	case last != id.required:
		c.wrong.add(t.at, "{%s} must be %s: a method is decided on the first resource whose id is given, and the last is always given", t.id, map[bool]string{true: "required", false: "optional"}[last])
	case !last && !owner.required:
		c.wrong.add(t.at, "{%s} must be required: it owns a resource that need not be given", t.owner)
	}
}

func (c *checker) stream(m *method) {
	if m.stream == nil || m.stream.record == nil {
		return
	}
	after := fieldNamed(m.input, m.stream.after)
	if after == nil || after.kind != kindString || after.required || after.limit.hasDefault || after.limit.pattern == nil {
		c.wrong.add(m.at, "the stream resumes after %q, which is no optional string of the input with a pattern and without a default", m.stream.after)
	}
	for _, name := range []string{"cursor", "type"} {
		if f := fieldNamed(m.stream.record.fields, name); f == nil || !f.required || f.kind != kindString {
			c.wrong.add(m.at, "the record %s of the stream needs a string %s that is always there", m.stream.record.name, name)
		}
	}
}

func (c *checker) action(at position, name string) {
	if _, ok := find(c.grants, func(g *grant) bool { return g.action == name }); !ok && len(c.grants) > 0 {
		c.wrong.add(at, "unknown action %q; roles.md declares the actions", name)
	}
}

func (c *checker) retry(m *method) {
	key := fieldNamed(m.input, "idempotencyKey")
	switch {
	case m.retry == "":
		// which is said already
	case m.retry == "key" && (key == nil || key.kind != kindString || !key.required):
		c.wrong.add(m.at, "the method %s is retried by key and has no required string idempotencyKey", m.name)
	case m.retry != "key" && key != nil:
		c.wrong.add(key.at, "the field idempotencyKey is for methods with Retry: key")
	case m.retry == "key" && m.replay == "":
		c.wrong.add(m.at, "the method %s is retried by key and does not say its Replay: before the decision, or after the decision", m.name)
	case m.retry != "key" && m.replay != "":
		c.wrong.add(m.at, "the method %s has a Replay and is not retried by key", m.name)
	}
}

// inputs checks one object of an input and the objects inside it.
func (c *checker) inputs(at position, what string, fields []*field) {
	const most = 64
	if len(fields) > most {
		c.wrong.add(at, "%s has %d fields, and one object can have %d", what, len(fields), most)
	}
	for _, f := range fields {
		kind := f.kind
		if kind == kindArray {
			kind = f.element
			if kind != kindString && kind != kindInteger && kind != kindEnum {
				c.wrong.add(f.typeAt, "an input cannot have an array of %ss", kind)
				continue
			}
			if f.limit.maxItems == 0 {
				c.wrong.add(f.at, "the array %s has no limit; add \"at most N items\"", f.path)
			}
		}
		switch kind {
		case kindTime, kindRecord:
			c.wrong.add(f.typeAt, "an input cannot have the type %s", kind)
		case kindObject:
			if len(f.fields) == 0 {
				c.wrong.add(f.at, "the object %s has no fields; add rows %s.…", f.path, f.path)
			}
			c.inputs(f.at, "the object "+f.path, f.fields)
		case kindInteger:
			if !f.limit.hasRange {
				c.wrong.add(f.at, "the integer %s has no range; add \"A-B\"", f.path)
			}
		case kindString:
			if f.limit.maxChars == 0 {
				c.wrong.add(f.at, "the string %s has no length limit; add \"at most N characters\"", f.path)
			}
		}
		if f.required && f.limit.hasDefault {
			c.wrong.add(f.at, "the field %s is required, so its default is never used; drop one", f.path)
		}
	}
}

// outputs checks that what is in one answer only can be given up: the record
// beside it says by its id what to revoke.
func (c *checker) outputs(m *method) {
	c.onceOnTop(m.output)
	for _, f := range m.output {
		if !f.once {
			continue
		}
		if _, ok := find(m.group.methods, func(o *method) bool { return o.name == "revoke" }); !ok || m.retry != "key" {
			c.wrong.add(f.at, "%s is in one answer only, so %s must be retried by key and the group must have a method revoke", f.path, m.name)
		}
		if made := m.output[0]; made.kind != kindRecord || !made.required || !hasID(made.record) {
			c.wrong.add(f.at, "%s is in one answer only, so the output must begin with a record that is always there and has a string id", f.path)
		}
	}
}

func hasID(r *record) bool {
	id := fieldNamed(r.fields, "id")
	return id != nil && id.kind == kindString && id.required
}

// onceOnTop refuses "once" inside an object.
func (c *checker) onceOnTop(fields []*field) {
	for _, f := range fields {
		walk(f.fields, func(inner *field) { c.notOnce(inner) })
	}
}

func (c *checker) notOnce(f *field) {
	if f.once {
		c.wrong.add(f.at, "once is for the fields of an output; write yes, or leave the cell empty")
	}
}

// record refuses a record that can never be whole.
func (c *checker) record(r *record) {
	walk(r.fields, c.notOnce)
	if alwaysHolds(r.fields, r, map[*record]bool{}) {
		c.wrong.add(r.at, "the record %s always holds another of its kind; make the field optional, or an array", r.name)
	}
}

// alwaysHolds reports whether one who fills in what is always there meets a record.
func alwaysHolds(fields []*field, r *record, seen map[*record]bool) bool {
	for _, f := range fields {
		if !f.required || f.record != nil && (f.kind != kindRecord || seen[f.record]) {
			continue
		}
		if f.record == r {
			return true
		}
		if f.record != nil {
			seen[f.record] = true
		}
		if alwaysHolds(objectFields(f), r, seen) {
			return true
		}
	}
	return false
}

// event refuses data that must not leave in an event.
func (c *checker) event(e *event) {
	seen := map[*record]bool{}
	var visit func(f *field)
	visit = func(f *field) {
		if f.limit.secret {
			c.wrong.add(f.at, "the event %s would publish the secret %s", e.name, f.path)
		}
		if f.record != nil && !seen[f.record] {
			seen[f.record] = true
			walk(f.record.fields, visit)
		}
	}
	walk(e.fields, visit)
	walk(e.fields, c.notOnce)
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
