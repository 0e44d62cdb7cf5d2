package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
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

func validObject(f *field) *draft {
	d := &draft{}
	for _, child := range f.fields {
		if child.required {
			d.set(draftMember{field: child, name: quoted(child.name), raw: validOf(child)})
		}
	}
	if first := f.fields[0]; len(d.members) == 0 && f.limit.atLeastOne {
		d.set(draftMember{field: first, name: quoted(first.name), raw: validOf(first)})
	}
	return d
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

func elementOf(f *field) *field {
	element := *f
	element.kind = f.element
	return &element
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

// quoted is a text as a JSON string.
func quoted(text string) string {
	raw, _ := plainJSON(text) // a string is always encoded
	return string(raw)
}

// escapes is a text with every character as an escape.
func escapes(text string) string {
	var out strings.Builder
	for _, r := range text {
		if r > 0xffff {
			r -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
			continue
		}
		fmt.Fprintf(&out, `\u%04x`, r)
	}
	return out.String()
}

// dirtyTexts are strings that are no proper text, whatever a field allows.
func dirtyTexts(valid string) []trial {
	inside := quoted(valid)
	inside = inside[1 : len(inside)-1]
	var list []trial
	for _, t := range []struct{ what, text, rule string }{
		{"high surrogate alone", inside + `\ud800`, "encoding"},
		{"low surrogate alone", `\udc00` + inside, "encoding"},
		{"surrogates in reverse", `\udc00\ud800`, "encoding"},
		{"high surrogate before a letter", `\ud800a`, "encoding"},
		{"escaped NUL", inside + `\u0000`, "encoding"},
		{"raw NUL", inside + "\x00", "encoding"},
		{"raw control character", inside + "\x01", "encoding"},
		{"raw newline", inside + "\n", "encoding"},
		{"raw tab", "\t" + inside, "encoding"},
		{"a byte that is not UTF-8", inside + "\xff", "encoding"},
		{"overlong UTF-8", inside + "\xc0\xaf", "encoding"},
		{"a surrogate in UTF-8", "\xed\xa0\x80" + inside, "encoding"},
		{"UTF-8 that is cut", inside + "\xe2\x82", "encoding"},
		{"UTF-8 beyond U+10FFFF", "\xf4\x90\x80\x80", "encoding"},
		{"unknown escape", inside + `\x41`, "json"},
		{"escape that is cut", inside + `\u00`, "json"},
		{"escape that is not hexadecimal", inside + `\u00g1`, "json"},
	} {
		list = append(list, trial{what: t.what, raw: `"` + t.text + `"`, rule: t.rule})
	}
	return list
}

// textTrials are strings at every edge of a pattern and a length.
func textTrials(limit *limits) (list []trial) {
	judge := func(what, text, raw string) {
		t := trial{what: what, raw: raw}
		switch {
		case limit.maxChars > 0 && utf8.RuneCountInString(text) > limit.maxChars:
			t.rule = "length"
		case limit.pattern != nil && !limit.pattern.DFA().Match(text):
			t.rule = "pattern"
		}
		list = append(list, t)
	}
	text := func(what, text string) { judge(what, text, quoted(text)) }
	if limit.pattern != nil {
		for i, s := range limit.pattern.DFA().Accepts() {
			text(fmt.Sprintf("matches %d", i+1), s)
		}
		for i, s := range limit.pattern.DFA().Rejects() {
			text(fmt.Sprintf("does not match %d", i+1), s)
		}
		for _, length := range []int{limit.maxChars, limit.maxChars + 1} {
			if s, ok := matchOfLength(limit.pattern.DFA(), length); ok {
				text(fmt.Sprintf("matches with %d characters", length), s)
			}
		}
	}
	valid := validText(limit)
	text("empty", "")
	text("valid", valid)
	text("trailing newline", valid+"\n")
	text("trailing carriage return", valid+"\r\n")
	text("leading blank", " "+valid)
	text("trailing blank", valid+" ")
	text("beyond ASCII", valid+"\u00e9")
	text("look-alike", "\u0430"+valid)
	text("full-width digit", valid+"\uff11")
	text("delete", valid+"\x7f")
	text("byte order mark", "\ufeff"+valid)
	judge("escapes", valid, `"`+escapes(valid)+`"`)
	judge("escapes in capitals", valid, `"`+strings.ReplaceAll(strings.ToUpper(escapes(valid)), `\U`, `\u`)+`"`)
	judge("escaped slash", valid+"/", strings.ReplaceAll(quoted(valid+"/"), "/", `\/`))
	judge("pair of surrogates", "\U0001f600", `"\ud83d\ude00"`)
	if limit.maxChars > 0 && limit.maxChars < maxBody/2 {
		text("as many characters as can be", strings.Repeat("a", limit.maxChars))
		text("too many characters", strings.Repeat("a", limit.maxChars+1))
		text("as many characters as can be, beyond ASCII", strings.Repeat("\u00e9", limit.maxChars))
		text("too many characters, beyond ASCII", strings.Repeat("\u00e9", limit.maxChars+1))
	}
	return append(list, dirtyTexts(valid)...)
}
