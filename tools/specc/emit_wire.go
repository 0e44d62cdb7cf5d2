package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/bettercompute/bettercompute/tools/specc/regex"
)

// wire writes the strict decoders of all inputs.
func (e *emitter) wire() error {
	w := &wireWriter{Runtime: runtimePath, classes: map[string]string{}, texts: map[string]bool{}}
	for _, s := range e.spec.scalars {
		if s.kind == kindEnum {
			w.Enums = append(w.Enums, wireEnum{goName(s.name), s.notes, s.limit.enum})
		}
	}
	for _, g := range e.spec.groups {
		for _, m := range g.methods {
			name := goName(m.operation()) + "Input"
			w.Inputs = append(w.Inputs, wireInput{name, m.id()})
			w.object(name, "is the input of "+m.id()+".", m.input, limits{})
			if m.stream != nil {
				after := fieldNamed(m.input, m.stream.after)
				w.Resumes = append(w.Resumes, wireResume{name, goName(after.name), w.text(name, after), noMatch(after)})
			}
		}
	}
	if err := e.goFile("wire/inputs.gen.go", "wire_inputs.tmpl", w); err != nil {
		return err
	}
	return e.goFile("wire/texts.gen.go", "wire_texts.tmpl", w)
}

// A wireWriter collects what the templates of the wire package need.
type wireWriter struct {
	Runtime string
	Enums   []wireEnum
	Inputs  []wireInput
	Objects []wireObject
	Resumes []wireResume
	Texts   []wireText
	Classes []wireClass
	Tables  bool // some pattern needs the table automaton
	classes map[string]string
	texts   map[string]bool
}

type wireEnum struct {
	Name, Notes string
	Values      []string
}

type wireInput struct{ Name, Method string }

type wireResume struct{ Input, Field, Text, NoMatch string }

type wireObject struct {
	Name, Doc  string
	Fields     []wireField
	Required   string // a bit set, 0 when nothing is required
	AtLeastOne bool
	Defaults   []wireDefault
}

type wireField struct {
	Name, Go, Type, Doc, Decode string
	Bit                         int
	Object                      bool // decoded by a method of its own
	Optional                    bool
	Array                       *wireArray
}

type wireArray struct{ Item, Min, Max string }

type wireDefault struct{ Go, Value string }

type wireText struct {
	Name, Doc           string
	Max                 int
	Implied             bool   // what matches is never longer than Max
	TooLong, NoMatch    string // messages; NoMatch is empty when there is no pattern
	Match               string // an expression over s
	States              *regex.DFA
	Class, Next, Accept string // of the table automaton
	Start, ClassCount   int
}

type wireClass struct{ Name, Ranges string }

func (w *wireWriter) object(name, doc string, fields []*field, limit limits) {
	o := wireObject{Name: name, Doc: doc, AtLeastOne: limit.atLeastOne}
	at := len(w.Objects)
	w.Objects = append(w.Objects, o)
	required := uint64(0)
	for bit, f := range fields {
		if f.required {
			required |= 1 << bit
		}
		o.Fields = append(o.Fields, w.field(name, f, bit))
		if f.limit.hasDefault {
			o.Defaults = append(o.Defaults, wireDefault{goName(f.name), goDefault(f)})
		} else if f.defaulted() {
			o.Defaults = append(o.Defaults, wireDefault{goName(f.name), "default" + name + goName(f.name) + "()"})
		}
	}
	if required != 0 {
		o.Required = fmt.Sprintf("0b%b", required)
	}
	w.Objects[at] = o
}

func goDefault(f *field) string {
	switch {
	case f.kind == kindEnum && f.scalar != nil:
		return goName(f.scalar.name) + goName(f.limit.deflt)
	case f.kind == kindString, f.kind == kindEnum:
		return strconv.Quote(f.limit.deflt)
	default:
		return f.limit.deflt
	}
}

func (w *wireWriter) field(owner string, f *field, bit int) wireField {
	out := wireField{Name: f.name, Go: goName(f.name), Bit: bit, Doc: limitText(f)}
	out.Optional = !f.required && !f.limit.hasDefault && !f.defaulted() && f.kind != kindArray
	if f.kind == kindArray {
		out.Type, out.Decode = w.value(owner, elementOf(f))
		if out.Object = f.nests(); out.Object {
			w.object(out.Type, "is an item of the field "+f.path+".", f.fields, f.limit)
		}
		out.Array = &wireArray{out.Type, strconv.Itoa(f.limit.minItems), strconv.Itoa(f.limit.maxItems)}
		out.Type = "[]" + out.Type
		return out
	}
	out.Type, out.Decode = w.value(owner, f)
	if out.Object = f.nests(); out.Object {
		w.object(out.Type, "is the field "+f.path+".", f.fields, f.limit)
	}
	if out.Optional {
		out.Type = "strictjson.Optional[" + out.Type + "]"
	}
	return out
}

// value returns the Go type of a field and the expression that decodes it.
func (w *wireWriter) value(owner string, f *field) (goType, decode string) {
	switch f.kind {
	case kindInteger:
		return "int64", fmt.Sprintf("d.Integer(%d, %d)", f.limit.min, f.limit.max)
	case kindBoolean:
		return "bool", "d.Boolean()"
	case kindEnum:
		if f.scalar != nil {
			name := goName(f.scalar.name)
			return name, name + "(d.OneOf(all" + name + "))"
		}
		return "string", fmt.Sprintf("d.OneOf([]string{%s})", quotedList(f.limit.enum))
	case kindObject:
		return f.typeName(owner), ""
	default:
		return "string", "decode" + w.text(owner, f) + "(d)"
	}
}

// text returns the name under which a string with its limits is decoded and matched.
func (w *wireWriter) text(owner string, f *field) string {
	name := owner + goName(f.name)
	if f.scalar != nil {
		name = goName(f.scalar.name)
	}
	if w.texts[name] {
		return name
	}
	w.texts[name] = true
	element := *f
	element.limit.minItems, element.limit.maxItems = 0, 0
	t := wireText{Name: name, Doc: limitText(&element), Max: f.limit.maxChars, TooLong: fmt.Sprintf("must be at most %d characters", f.limit.maxChars)}
	if p := f.limit.pattern; p != nil {
		t.NoMatch = noMatch(f)
		_, longest := p.Lengths()
		t.Implied = longest >= 0 && longest <= t.Max
		w.matcher(&t, p)
	}
	w.Texts = append(w.Texts, t)
	return name
}

// limitText says in words what a field allows.
func limitText(f *field) string {
	var says []string
	if len(f.limit.enum) > 0 {
		says = append(says, "one of "+strings.Join(f.limit.enum, ", "))
	}
	if f.limit.maxChars > 0 {
		says = append(says, fmt.Sprintf("at most %d characters", f.limit.maxChars))
	}
	if f.limit.pattern != nil {
		says = append(says, "matches "+f.limit.pattern.String())
	}
	if f.limit.hasRange {
		says = append(says, rangeText(&f.limit))
	}
	if f.limit.maxItems > 0 {
		says = append(says, fmt.Sprintf("%d-%d items", f.limit.minItems, f.limit.maxItems))
	}
	switch {
	case f.limit.atLeastOne && f.kind == kindArray:
		says = append(says, "at least one of the fields of each")
	case f.limit.atLeastOne:
		says = append(says, "at least one of its fields")
	}
	if f.limit.hasDefault {
		says = append(says, "default "+f.limit.deflt)
	}
	return strings.Join(says, "; ")
}
