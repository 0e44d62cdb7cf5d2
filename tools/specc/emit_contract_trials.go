package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A trial is a value for a field, as JSON, and the rule that refuses it.
type trial struct {
	what, raw string
	rule      string // "" for a value that is right
	at        string // of the violation, behind the path of the field: [0]
}

// trialsOf are values that a field must take or refuse.
func trialsOf(f *field) []trial {
	switch f.kind {
	case kindInteger:
		return append(wrongTypes(f.kind), integerTrials(&f.limit)...)
	case kindBoolean:
		return append(wrongTypes(f.kind), booleanTrials()...)
	case kindEnum:
		return append(wrongTypes(f.kind), enumTrials(f.limit.enum)...)
	case kindObject:
		return append(wrongTypes(f.kind), objectTrials(f)...)
	case kindArray:
		return append(wrongTypes(f.kind), arrayTrials(f)...)
	default:
		return append(wrongTypes(f.kind), textTrials(&f.limit)...)
	}
}

// validOf is a value, as JSON, that a field takes.
func validOf(f *field) string {
	switch f.kind {
	case kindInteger:
		return strconv.FormatInt(f.limit.min, 10)
	case kindBoolean:
		return "true"
	case kindEnum:
		return quoted(f.limit.enum[0])
	case kindObject:
		return validObject(f).String()
	case kindArray:
		return arrayOf(f, max(f.limit.minItems, 1))
	default:
		return quoted(validText(&f.limit))
	}
}

// validObject is an object, or an item of an array of objects, that a field takes.
func validObject(f *field) *draft {
	d := needsOf(f)
	if len(d.members) == 0 && f.limit.atLeastOne {
		d.set(validMember(f.fields[0]))
	}
	return d
}

// needsOf is an object with those of its fields that must be given.
func needsOf(f *field) *draft {
	d := &draft{}
	for _, child := range f.fields {
		if child.required {
			d.set(validMember(child))
		}
	}
	return d
}

func validMember(f *field) draftMember {
	m := draftMember{field: f, name: quoted(f.name)}
	switch {
	case f.kind == kindObject:
		m.inside = validObject(f)
	case f.nests():
		m.items = validItems(f, max(f.limit.minItems, 1))
	default:
		m.raw = validOf(f)
	}
	return m
}

func validItems(f *field, count int) (items []*draft) {
	for range count {
		items = append(items, validObject(f))
	}
	return items
}

// wrongTypes are values of every JSON type but one.
func wrongTypes(right kind) []trial {
	list := []trial{{what: "null", raw: "null", rule: "null"}}
	for _, t := range []struct {
		kind      kind
		what, raw string
	}{
		{kindString, "a string", `"x"`},
		{kindString, "an empty string", `""`},
		{kindInteger, "a number", "1"},
		{kindBoolean, "true", "true"},
		{kindObject, "an object", "{}"},
		{kindObject, "an object with members", `{"a":{"b":[null]}}`},
		{kindArray, "an array", "[]"},
		{kindArray, "an array with items", `[1,"a",{"b":null}]`},
	} {
		if t.kind != right && !(t.kind == kindString && right == kindEnum) {
			list = append(list, trial{what: t.what, raw: t.raw, rule: "type"})
		}
	}
	for _, raw := range []string{"nul", "Null", "undefined", "'x'", "{]"} {
		list = append(list, trial{what: "no JSON: " + raw, raw: raw, rule: "json"})
	}
	if right != kindArray { // whose items are nested too deep, and not it
		list = append(list, trial{what: "nested too deep", raw: nested(2 * maxDepth), rule: "depth"})
	}
	return list
}

func booleanTrials() []trial {
	list := []trial{{what: "false", raw: "false"}, {what: "true", raw: "true"}}
	for _, raw := range []string{"0", `"true"`, `"false"`} {
		list = append(list, trial{what: raw, raw: raw, rule: "type"})
	}
	for _, raw := range []string{"True", "truex", "yes", "tru"} {
		list = append(list, trial{what: raw, raw: raw, rule: "json"})
	}
	return list
}

func enumTrials(values []string) (list []trial) {
	judge := func(what, text, raw string) {
		t := trial{what: what + " of " + text, raw: raw}
		if !slices.Contains(values, text) {
			t.rule = "enum"
		}
		list = append(list, t)
	}
	for _, value := range values {
		judge("the value", value, quoted(value))
		judge("the escapes", value, `"`+escapes(value)+`"`)
		for _, other := range []string{strings.ToUpper(value), capitalize(value), value + " ", value + "\n", value + "\u00e9", value[1:]} {
			judge("another spelling", other, quoted(other))
		}
	}
	judge("nothing instead", "", `""`)
	judge("another value", "no such value", `"no such value"`)
	return append(list, dirtyTexts(values[0])...)
}

func objectTrials(f *field) []trial {
	d := validObject(f)
	inside := strings.TrimSuffix(d.String(), "}")
	if len(d.members) > 0 {
		inside += ","
	}
	list := []trial{
		{what: "what it needs", raw: d.String()},
		{what: "unknown member", raw: inside + `"zzz":1}`, rule: "unknown", at: ".zzz"},
		{what: "comma at the end", raw: inside + ",}", rule: "json"},
	}
	needs := slices.DeleteFunc(slices.Clone(f.fields), func(child *field) bool { return !child.required })
	switch {
	case len(needs) == 1:
		list = append(list, trial{what: "empty", raw: "{}", rule: "required", at: "." + needs[0].name})
	case len(needs) == 0 && f.limit.atLeastOne:
		list = append(list, trial{what: "empty", raw: "{}", rule: "at-least-one"})
	case len(needs) == 0:
		list = append(list, trial{what: "empty", raw: "{}"})
	}
	return list
}

// arrayOf is an array of so many items that are right.
func arrayOf(f *field, items int) string {
	item := validOf(elementOf(f))
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", items), ",") + "]"
}

func arrayTrials(f *field) []trial {
	limit, valid := &f.limit, validOf(elementOf(f))
	judge := func(what string, items int) trial {
		t := trial{what: what, raw: arrayOf(f, items)}
		if items < limit.minItems || items > limit.maxItems {
			t.rule = "items"
		}
		return t
	}
	list := []trial{
		judge("empty", 0),
		judge("one item", 1),
		judge("the fewest items", limit.minItems),
		judge("too few items", max(limit.minItems-1, 0)),
		{what: "comma at the end", raw: "[" + valid + ",]", rule: "json"},
	}
	if limit.maxItems < maxBody {
		list = append(list, judge("the most items", limit.maxItems), judge("too many items", limit.maxItems+1))
	}
	least := max(limit.minItems, 1)
	for _, t := range trialsOf(elementOf(f)) {
		items := strings.Repeat(","+valid, least-1)
		list = append(list, trial{what: "item: " + t.what, raw: "[" + t.raw + items + "]", rule: t.rule, at: "[0]" + t.at})
		if limit.maxItems > least && t.what == "null" {
			last := fmt.Sprintf("[%d]", least)
			list = append(list, trial{what: "last item: " + t.what, raw: "[" + valid + items + "," + t.raw + "]", rule: t.rule, at: last})
		}
	}
	return list
}
