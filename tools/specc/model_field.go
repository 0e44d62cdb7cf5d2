package main

import (
	"strings"

	"github.com/bettercompute/bettercompute/tools/specc/regex"
)

type kind int

const (
	kindString kind = iota
	kindInteger
	kindBoolean
	kindTime
	kindEnum
	kindObject
	kindArray
	kindRecord
)

func (k kind) String() string {
	return [...]string{"string", "integer", "boolean", "time", "one of", "object", "array", "record"}[k]
}

// A field is a row of an input, output, record or event table. An object's
// fields, or those of each item of an array of objects, are the rows below it
// with its name and a dot in front.
type field struct {
	name     string // the last part of the path
	path     string // expect.mac
	at       position
	typeAt   position
	kind     kind
	scalar   *scalar // where the type is a named scalar (of the element, for an array)
	record   *record // where the type is a record (of the element, for an array)
	element  kind    // of an array
	required bool    // input: must be given; output: always there
	once     bool    // output: only in the answer of the call that made the record
	limit    limits
	notes    string
	owner    *field // the object that it stands in
	fields   []*field
}

// limits are what the constraint column says.
type limits struct {
	maxChars   int // 0: no limit
	pattern    *regex.Pattern
	patternAt  position
	hasRange   bool
	min, max   int64
	hasDefault bool
	deflt      string // as written
	defaultAt  position
	enum       []string
	minItems   int
	maxItems   int // 0: no limit
	atLeastOne bool
	secret     bool
}

// defaulted says that an object of an input is never absent: all its fields have defaults.
func (f *field) defaulted() bool {
	if f.kind != kindObject || f.required || f.limit.atLeastOne || len(f.fields) == 0 {
		return false
	}
	for _, child := range f.fields {
		if !child.limit.hasDefault && !child.defaulted() {
			return false
		}
	}
	return true
}

// nests says that a field has rows of its own below it.
func (f *field) nests() bool {
	return f.kind == kindObject || f.kind == kindArray && f.element == kindObject
}

// inItems says that a field stands in the items of an array.
func (f *field) inItems() bool {
	return f.owner != nil && (f.owner.kind == kindArray || f.owner.inItems())
}

// typeName is the Go name of the type of an object, or of an item of an array of
// objects, that stands in the type named owner.
func (f *field) typeName(owner string) string {
	if f.element == kindObject {
		return owner + goName(f.name) + "Item"
	}
	return owner + goName(f.name)
}

// elementOf is an item of an array as a field.
func elementOf(f *field) *field {
	element := *f
	element.kind = f.element
	return &element
}

func fieldNamed(fields []*field, name string) *field {
	f, _ := find(fields, func(f *field) bool { return f.name == name })
	return f
}

// fieldAt returns the field with a dotted path, or nil.
func fieldAt(fields []*field, path string) *field {
	for _, f := range fields {
		if f.path == path {
			return f
		}
		if found := fieldAt(f.fields, path); found != nil {
			return found
		}
	}
	return nil
}

// walk visits fields and the fields inside them, in the order of the table.
func walk(fields []*field, visit func(*field)) {
	for _, f := range fields {
		visit(f)
		walk(f.fields, visit)
	}
}

// fieldBelow returns the field with a dotted path, through objects and records, or nil.
func fieldBelow(fields []*field, path string) *field {
	name, rest, deeper := strings.Cut(path, ".")
	f := fieldNamed(fields, name)
	if f == nil || !deeper {
		return f
	}
	if f.kind == kindRecord && f.record != nil {
		return fieldBelow(f.record.fields, rest)
	}
	return fieldBelow(f.fields, rest)
}
