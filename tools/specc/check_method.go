package main

import "strings"

func (c *checker) method(m *method) {
	c.facts(m)
	c.authorization(m)
	c.stream(m)
	c.otherStatus(m)
	c.columns(m)
	c.retry(m)
	for _, e := range m.errors {
		c.code(e.name)
	}
	for _, e := range m.events {
		if _, ok := find(c.spec.events, func(o *event) bool { return o.name == e.name.text }); !ok {
			c.wrong.add(e.name.at, "unknown event %q; declare it in a section \"## Events\"", e.name.text)
		}
	}
	c.inputs(m.at, "the input of "+m.id(), m.input, 1)
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
	authorization := string(m.decides)
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
		return // there is none, or it is said already
	}
	c.action(m.facts.authorization.at, m.action)
	for _, further := range m.also {
		c.action(further.at, further.action)
		if f := fieldAt(m.input, further.when); f == nil || f.kind != kindBoolean || f.inItems() {
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

// otherStatus checks that an answer says by itself which status it has.
func (c *checker) otherStatus(m *method) {
	if m.other == nil {
		return
	}
	if f := fieldNamed(m.output, m.other.when); f == nil || f.required || f.once {
		c.wrong.add(m.other.at, "the status %d hangs on %q, which is no optional field of the output", m.other.status, m.other.when)
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
	case m.retry == "key" && m.decides != byAction:
		c.wrong.add(m.at, "the method %s has the authorization %s, so that nobody is there whose key it could be; its Retry is natural or none", m.name, m.decides)
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

// columns checks that what the rows of a list are to show is there, and is one value.
func (c *checker) columns(m *method) {
	if len(m.columns) == 0 {
		return
	}
	records, _ := find(m.output, func(f *field) bool { return f.kind == kindArray && f.record != nil && f.required })
	if records == nil {
		c.wrong.add(m.columns[0].at, "the method %s returns no list of records that could have columns", m.name)
		return
	}
	for _, column := range m.columns {
		if f := fieldBelow(records.record.fields, column.text); f == nil || f.kind == kindArray || f.kind == kindObject || f.kind == kindRecord {
			c.wrong.add(column.at, "%q is no single value of %s", column.text, records.record.name)
		}
	}
}
