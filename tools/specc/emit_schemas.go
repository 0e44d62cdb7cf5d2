package main

import (
	"fmt"
	"strconv"
)

// schemas writes a named schema for every list, record, input, output and the
// problem; an object inside another has a name of its own, so that generated
// types have one, too.
func (d *documentWriter) schemas() object {
	all := object{}
	add := func(name string, fields []*field, limit limits, prose string, strict bool) {
		d.objectSchemas(&all, name, fields, limit, prose, strict)
	}
	for _, s := range d.scalars {
		if s.kind == kindEnum {
			all = all.with(goName(s.name), d.mine(goName(s.name), object{
				{"type", "string"}, {"enum", s.limit.enum}, {"description", s.notes},
			}))
		}
	}
	for _, r := range d.records {
		add(goName(r.name), r.fields, limits{}, r.prose, false)
	}
	for _, g := range d.groups {
		for _, m := range g.methods {
			name := goName(m.operation())
			add(name+"Input", m.input, limits{}, "The input of "+m.id()+".", true)
			if m.stream == nil {
				add(name+"Output", m.output, limits{}, "The answer of "+m.id()+".", false)
			}
		}
	}
	if d.wirePath == "" {
		all = append(all, d.problemSchemas()...)
	}
	return all
}

// mine makes the server's stubs use a type of the wire package for a schema.
func (d *documentWriter) mine(name string, schema object) object {
	if d.wirePath == "" {
		return schema
	}
	return schema.with("x-go-type", "wire."+name).
		with("x-go-type-import", object{{"path", d.wirePath}, {"name", "wire"}})
}

func (d *documentWriter) objectSchemas(all *object, name string, fields []*field, limit limits, prose string, strict bool) {
	properties, required := object{}, []any{}
	for i, f := range fields {
		if len(f.fields) > 0 {
			d.objectSchemas(all, f.typeName(name), f.fields, f.limit, f.notes, strict)
		}
		schema := d.fieldSchema(name, f)
		properties = properties.with(f.name, d.ordered(schema, i))
		if f.required {
			required = append(required, f.name)
		}
	}
	o := object{{"type", "object"}}
	if prose != "" {
		o = o.with("description", prose)
	}
	o = o.with("properties", properties)
	if len(required) > 0 {
		o = o.with("required", required)
	}
	if limit.atLeastOne {
		o = o.with("minProperties", 1)
	}
	if strict {
		o = d.mine(name, o.with("additionalProperties", false))
	}
	*all = all.with(name, o)
}

// fieldSchema is the schema of one field of the object that is named owner.
func (d *documentWriter) fieldSchema(owner string, f *field) object {
	if f.kind == kindArray {
		item := elementOf(f)
		item.notes = ""
		o := object{{"type", "array"}, {"items", d.fieldSchema(owner, item)}}
		if f.limit.minItems > 0 {
			o = o.with("minItems", f.limit.minItems)
		}
		if f.limit.maxItems > 0 {
			o = o.with("maxItems", f.limit.maxItems)
		}
		return d.described(f, o)
	}
	switch {
	case len(f.fields) > 0:
		return d.described(f, reference(f.typeName(owner)))
	case f.record != nil:
		return d.described(f, reference(goName(f.record.name)))
	case f.kind == kindEnum && f.scalar != nil:
		return d.described(f, reference(goName(f.scalar.name)))
	}
	return d.described(f, d.plainSchema(f))
}

func (d *documentWriter) plainSchema(f *field) object {
	switch f.kind {
	case kindInteger:
		o := object{{"type", "integer"}, {"format", "int64"}}
		if f.limit.hasRange {
			o = o.with("minimum", f.limit.min).with("maximum", f.limit.max)
		}
		return o
	case kindBoolean:
		return object{{"type", "boolean"}}
	case kindTime:
		return object{{"type", "string"}, {"format", "date-time"}}
	case kindEnum:
		return object{{"type", "string"}, {"enum", f.limit.enum}}
	case kindObject:
		o := object{{"type", "object"}, {"additionalProperties", true}}
		if d.forGo {
			o = o.with("x-go-type", "json.RawMessage")
		}
		return o
	}
	o := object{{"type", "string"}}
	if f.limit.pattern != nil {
		least, _ := f.limit.pattern.Lengths()
		o = o.with("minLength", least)
	}
	if f.limit.maxChars > 0 {
		o = o.with("maxLength", f.limit.maxChars)
	}
	if f.limit.pattern != nil {
		o = o.with("pattern", f.limit.pattern.JavaScript())
	}
	if f.limit.secret {
		o = o.with("x-secret", true)
	}
	return o
}

// described adds what stands beside a schema: its notes and its default. In
// 3.0 nothing may stand beside a reference, so that it is wrapped there.
func (d *documentWriter) described(f *field, schema object) object {
	beside := object{}
	if f.notes != "" {
		beside = beside.with("description", f.notes)
	} else if f.scalar != nil && f.kind != kindEnum && f.kind != kindArray && f.scalar.notes != "" {
		beside = beside.with("description", f.scalar.notes)
	}
	if f.limit.hasDefault {
		beside = beside.with("default", defaultValue(f))
	}
	return d.beside(schema, beside)
}

// ordered keeps a property in its place in generated Go.
func (d *documentWriter) ordered(schema object, place int) object {
	if !d.forGo {
		return schema
	}
	return d.beside(schema, object{{"x-order", place + 1}})
}

// beside adds members to a schema.
func (d *documentWriter) beside(schema, members object) object {
	if len(members) > 0 && schema[0].name == "$ref" && d.version < "3.1" {
		schema = object{{"allOf", []any{schema}}}
	}
	return append(schema, members...)
}

func defaultValue(f *field) any {
	switch f.kind {
	case kindInteger:
		n, _ := strconv.ParseInt(f.limit.deflt, 10, 64) // checked by checkDefault
		return n
	case kindBoolean:
		return f.limit.deflt == "true"
	default:
		return f.limit.deflt
	}
}

// problemSchemas are the RFC 9457 problem and its violations.
func (d *documentWriter) problemSchemas() object {
	text := func(description string) object { return object{{"type", "string"}, {"description", description}} }
	var rules []any
	for _, r := range d.rules {
		rules = append(rules, r.name)
	}
	members := object{
		{"type", text("A URI that names the code.")},
		{"title", text("The code in words.")},
		{"status", object{{"type", "integer"}, {"description", "The HTTP status."}}},
		{"code", reference("ErrorCode")},
	}
	if len(d.reasons) > 0 {
		members = members.with("reason", d.reasonSchema())
	}
	members = append(members, object{
		{"detail", text("What went wrong with this call.")},
		{"requestId", text("The id under which the server's log has this call.")},
		{"errors", object{{"type", "array"}, {"items", reference("Violation")}, {"description", "Everything that is wrong with the input."}}},
	}...)
	return object{
		{"Problem", object{
			{"type", "object"},
			{"description", "An RFC 9457 problem: why a call was refused."},
			{"properties", members},
			{"required", []any{"type", "title", "status", "code", "detail", "requestId"}},
		}},
		{"Violation", object{
			{"type", "object"},
			{"description", "One thing that is wrong with the input."},
			{"properties", object{
				{"field", text("The path of the field, such as expect.mac; empty for the body as a whole.")},
				{"rule", object{{"type", "string"}, {"enum", rules}, {"description", "The rule that is broken."}}},
				{"message", text("What is wrong and what would be right; it never repeats the value.")},
			}},
			{"required", []any{"field", "rule", "message"}},
		}},
	}
}

// reasonSchema is the list of reasons with the code that each stands beside.
func (d *documentWriter) reasonSchema() object {
	var names []any
	says := "Why, where the code does not say it."
	for _, r := range d.reasons {
		names = append(names, r.name)
		says += fmt.Sprintf("\n- `%s` (%s): %s", r.name, r.code.text, r.meaning)
	}
	return object{{"type", "string"}, {"enum", names}, {"description", says}}
}
