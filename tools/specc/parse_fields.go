package main

import (
	"math"
	"regexp"
	"strings"
)

var nameForm = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)

// inputFields reads an Input table.
func (p *parser) inputFields(rows [][]cell) []*field {
	return p.fields(rows, func(f *field, third, fourth cell) {
		f.required = p.yes(third)
		p.constraints(fourth, f)
	})
}

// outputFields reads an Output, record or event table.
func (p *parser) outputFields(rows [][]cell) []*field {
	return p.fields(rows, func(f *field, third, fourth cell) {
		if f.kind == kindArray && f.element == kindObject {
			p.wrong.add(f.typeAt, "an array of objects stands in inputs only; name a record for it")
		}
		f.once = third.text == "once"
		f.required = !f.once && p.yes(third)
		f.notes = fourth.text
		if first, notes, _ := strings.Cut(fourth.text, ";"); first == "secret" {
			p.mustBe(fourth.part(0, first), f.kind, kindString)
			f.limit.secret, f.notes = true, strings.TrimSpace(notes)
		}
	})
}

// fields reads the rows of a field table: name and type are alike in all of
// them, rest reads the third and fourth cell. A dotted name is a field of the
// object, or of each item of the array of objects, above it.
func (p *parser) fields(rows [][]cell, rest func(f *field, third, fourth cell)) []*field {
	var top []*field
	for _, row := range rows {
		f := &field{path: row[0].code(), at: row[0].at, typeAt: row[1].at}
		parts := strings.Split(f.path, ".")
		f.name = parts[len(parts)-1]
		if !nameForm.MatchString(f.name) {
			p.wrong.add(f.at, "%q is no field name; begin with a lower-case letter and go on with letters and digits", f.name)
		}
		p.fieldType(row[1], f)
		rest(f, row[2], row[3])
		if len(parts) == 1 {
			top = p.addField(top, f)
			continue
		}
		parentPath := strings.Join(parts[:len(parts)-1], ".")
		parent := fieldAt(top, parentPath)
		if parent == nil || !parent.nests() {
			p.wrong.add(f.at, "%s stands inside nothing; put a row for %s with type object, or array of object, above it", f.path, parentPath)
			continue
		}
		f.owner = parent
		parent.fields = p.addField(parent.fields, f)
	}
	return top
}

func (p *parser) addField(list []*field, f *field) []*field {
	for _, other := range list {
		switch {
		case other.name == f.name:
			p.wrong.add(f.at, "the field %s stands in line %d already", f.path, other.at.line)
			return list
		case goName(other.name) == goName(f.name):
			p.wrong.add(f.at, "the fields %s and %s become the same name in Go, TypeScript or Python; rename one", other.path, f.path)
		}
	}
	return append(list, f)
}

// fieldType reads a type cell: string, integer, boolean, time, object,
// "one of a, b", "array of T", or the name of a scalar or record.
func (p *parser) fieldType(c cell, f *field) {
	text := c.code()
	if element, ok := strings.CutPrefix(text, "array of "); ok {
		p.fieldType(c.span().part(len("array of "), element), f)
		if f.kind == kindArray {
			p.wrong.add(c.at, "an array of arrays cannot be written; name a record for it")
		}
		f.element, f.kind = f.kind, kindArray
		return
	}
	f.kind, f.limit.enum = p.plainType(c)
	if f.kind != kindRecord {
		return
	}
	if s, ok := find(p.spec.scalars, func(s *scalar) bool { return s.name == text }); ok {
		f.scalar, f.kind, f.limit = s, s.kind, s.limit
	} else if r, ok := find(p.spec.records, func(r *record) bool { return r.name == text }); ok {
		f.record = r
	} else {
		p.wrong.add(c.at, "unknown type %q; use string, integer, boolean, time, object, one of a, b, array of T, or a name that types.md declares", text)
		f.kind, f.limit.maxChars = kindString, math.MaxInt // so that no more is said about it
	}
}

// plainType reads a type that needs no name; for any other text it returns kindRecord.
func (p *parser) plainType(c cell) (kind, []string) {
	text := c.code()
	if list, ok := strings.CutPrefix(text, "one of "); ok {
		return kindEnum, p.enum(c.span().part(len("one of "), list))
	}
	for _, k := range []kind{kindString, kindInteger, kindBoolean, kindTime, kindObject} {
		if text == k.String() {
			return k, nil
		}
	}
	return kindRecord, nil
}

var enumForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`)

func (p *parser) enum(c cell) []string {
	var values []string
	seen := map[string]bool{}
	for _, part := range splitCell(c, ',') {
		value := part.code()
		switch {
		case !enumForm.MatchString(value):
			p.wrong.add(part.at, "%q is no value of a list; use letters, digits and . _ / -", value)
		case seen[value]:
			p.wrong.add(part.at, "the value %q stands there twice", value)
		}
		seen[value] = true
		values = append(values, value)
	}
	return values
}
