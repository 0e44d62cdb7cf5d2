package main

import (
	"slices"
	"strings"
)

// eventTypes writes a Go type for the data of every event, and those records
// that they hold.
func (e *emitter) eventTypes() error {
	v := e.view()
	used := map[string]bool{}
	for _, ev := range e.spec.events {
		types := recordViews(goName(ev.name), ev.prose, ev.fields)
		v.Events = append(v.Events, eventView{ev.name, ev.prose, types[0].Fields})
		v.Records = append(v.Records, types[1:]...)
		walk(ev.fields, func(f *field) { markRecords(f, used) })
	}
	for _, r := range e.spec.records {
		if used[r.name] {
			v.Records = append(v.Records, recordViews(goName(r.name), r.prose, r.fields)...)
		}
	}
	return e.goFile("events/events.gen.go", "events.tmpl", eventsView{v, v.needed("json.RawMessage"), v.needed("time.Time")})
}

// An eventsView also says which imports the types of events need.
type eventsView struct {
	*view
	JSON, Time bool
}

// needed reports whether a field of the events or their records has a Go type.
func (v *view) needed(goType string) bool {
	has := func(f fieldView) bool { return strings.HasSuffix(f.Type, goType) }
	return slices.ContainsFunc(v.Events, func(e eventView) bool { return slices.ContainsFunc(e.Fields, has) }) ||
		slices.ContainsFunc(v.Records, func(r recordView) bool { return slices.ContainsFunc(r.Fields, has) })
}

func markRecords(f *field, used map[string]bool) {
	if f.record != nil && !used[f.record.name] {
		used[f.record.name] = true
		walk(f.record.fields, func(inner *field) { markRecords(inner, used) })
	}
}

// recordViews is a record and the objects inside it, which become types of their own.
func recordViews(name, prose string, fields []*field) []recordView {
	list := []recordView{{name, prose, goFields(fields, name)}}
	for _, f := range fields {
		if f.kind == kindObject && len(f.fields) > 0 {
			list = append(list, recordViews(name+goName(f.name), f.notes, f.fields)...)
		}
	}
	return list
}

// goFields are fields as a Go struct that is written as JSON has them.
func goFields(fields []*field, owner string) []fieldView {
	var list []fieldView
	for _, f := range fields {
		view := fieldView{Name: f.name, Path: f.path, Go: goName(f.name), Type: goType(f, f.kind, owner), Notes: f.notes, Optional: !f.required}
		if view.Optional && !strings.HasPrefix(view.Type, "[]") {
			view.Type = "*" + view.Type
		}
		list = append(list, view)
	}
	return list
}

func goType(f *field, k kind, owner string) string {
	switch k {
	case kindInteger:
		return "int64"
	case kindBoolean:
		return "bool"
	case kindTime:
		return "time.Time"
	case kindRecord:
		return goName(f.record.name)
	case kindArray:
		return "[]" + goType(f, f.element, owner)
	case kindObject:
		if len(f.fields) > 0 {
			return owner + goName(f.name)
		}
		return "json.RawMessage"
	default:
		return "string"
	}
}
