package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A draft is an object of a body whose names and values are JSON as it is
// written, which need not be valid. Its members keep their order.
type draft struct{ members []draftMember }

type draftMember struct {
	field  *field // nil for one that is not in the table
	name   string // with its quotes
	raw    string
	inside *draft   // instead of raw, for an object
	items  []*draft // instead of raw, for an array of objects
}

// draftOf is the example of a method. What its example keeps sealed gets a value.
func draftOf(m *method) *draft {
	decoder := json.NewDecoder(strings.NewReader(m.request.text))
	decoder.UseNumber()
	return readDraft(decoder, m.input)
}

// readDraft reads an object of an example; checker.example has seen that it is right.
func readDraft(decoder *json.Decoder, fields []*field) *draft {
	d := &draft{}
	decoder.Token()
	for decoder.More() {
		name, _ := decoder.Token()
		f := fieldNamed(fields, name.(string))
		member := draftMember{field: f, name: quoted(f.name)}
		switch {
		case f.kind == kindObject:
			member.inside = readDraft(decoder, f.fields)
		case f.nests():
			decoder.Token()
			for decoder.More() {
				member.items = append(member.items, readDraft(decoder, f.fields))
			}
			decoder.Token()
		default:
			var raw json.RawMessage
			decoder.Decode(&raw)
			var short bytes.Buffer
			json.Compact(&short, raw)
			if member.raw = short.String(); f.limit.secret {
				member.raw = validOf(f)
			}
		}
		d.members = append(d.members, member)
	}
	decoder.Token()
	return d
}

// String is the object as JSON without white space.
func (d *draft) String() string { return d.join("{", ":", ",", "}") }

// spaced is the object with white space wherever it may stand.
func (d *draft) spaced() string { return d.join("{\n\t", " :\r\n", "\t,\n", " }") }

func (d *draft) join(open, colon, comma, shut string) string {
	var out strings.Builder
	out.WriteString(open)
	for i, m := range d.members {
		if i > 0 {
			out.WriteString(comma)
		}
		out.WriteString(m.name + colon)
		switch {
		case m.inside != nil:
			out.WriteString(m.inside.join(open, colon, comma, shut))
		case m.raw == "":
			var items []string
			for _, item := range m.items {
				items = append(items, item.join(open, colon, comma, shut))
			}
			out.WriteString("[" + strings.Join(items, comma) + "]")
		default:
			out.WriteString(m.raw)
		}
	}
	return out.String() + shut
}

func (d *draft) clone() *draft { return d.each((*draft).clone) }

// each is the object with another in the place of each one inside it.
func (d *draft) each(other func(*draft) *draft) *draft {
	out := &draft{slices.Clone(d.members)}
	for i, m := range out.members {
		if m.inside != nil {
			out.members[i].inside = other(m.inside)
		}
		out.members[i].items = nil
		for _, item := range m.items {
			out.members[i].items = append(out.members[i].items, other(item))
		}
	}
	return out
}

func (d *draft) index(f *field) int {
	return slices.IndexFunc(d.members, func(m draftMember) bool { return m.field == f })
}

// reversed is the object with its members and theirs from the last to the first.
func (d *draft) reversed() *draft {
	out := d.each((*draft).reversed)
	slices.Reverse(out.members)
	return out
}

// with is the body with another value for a field. Objects that it stands in are made.
func (d *draft) with(f *field, raw string) *draft {
	out := d.clone()
	owner := out.owner(f)
	owner.set(draftMember{field: f, name: quoted(f.name), raw: raw})
	return out
}

// set puts a member in its place: there or before the first that the table has behind it.
func (d *draft) set(m draftMember) {
	at := d.index(m.field)
	if at >= 0 {
		d.members[at] = m
		return
	}
	at = slices.IndexFunc(d.members, func(o draftMember) bool { return o.field != nil && o.field.at.line > m.field.at.line })
	if at < 0 {
		at = len(d.members)
	}
	d.members = slices.Insert(d.members, at, m)
}

// owner is the object of the body that a field stands in, which of several items
// is the last. It is made where there is none.
func (d *draft) owner(f *field) *draft {
	if f.owner == nil {
		return d
	}
	above := d.owner(f.owner)
	at := above.index(f.owner)
	if at < 0 {
		above.set(draftMember{field: f.owner, name: quoted(f.owner.name)})
		at = above.index(f.owner)
	}
	m := &above.members[at]
	switch {
	case f.owner.kind == kindObject && m.inside == nil:
		m.inside = needsOf(f.owner)
	case f.owner.kind == kindArray && len(m.items) == 0:
		m.items = append(validItems(f.owner, f.owner.limit.minItems-1), needsOf(f.owner))
	}
	if f.owner.kind == kindArray {
		return m.items[len(m.items)-1]
	}
	return m.inside
}

// place is the path of a field in the body.
func (d *draft) place(f *field) string {
	if f.owner == nil {
		return f.name
	}
	at := d.place(f.owner)
	if f.owner.kind == kindArray {
		items := d.owner(f.owner).members[d.owner(f.owner).index(f.owner)].items
		at += fmt.Sprintf("[%d]", len(items)-1)
	}
	return at + "." + f.name
}

// without is the body without a field. It reports false where the object that it
// stands in can have no other.
func (d *draft) without(f *field) (*draft, bool) {
	out := d.clone()
	owner := out.owner(f)
	owner.members = slices.Delete(owner.members, owner.index(f), owner.index(f)+1)
	if f.owner == nil || !f.owner.limit.atLeastOne || len(owner.members) > 0 {
		return out, true
	}
	for _, sibling := range f.owner.fields {
		if sibling != f {
			owner.set(validMember(sibling))
			return out, true
		}
	}
	return nil, false
}

// also is the body with a further member at the end of the object that a field stands in.
func (d *draft) also(f *field, name, raw string) *draft {
	out := d.clone()
	owner := out.owner(f)
	owner.members = append(owner.members, draftMember{name: name, raw: raw})
	return out
}

// renamed is the body with the name of a field written in another way.
func (d *draft) renamed(f *field, name string) *draft {
	out := d.clone()
	owner := out.owner(f)
	owner.members[owner.index(f)].name = name
	return out
}
