package main

import "fmt"

// encoders writes how every answer becomes JSON: field by field, without
// reflection, in the order of the tables.
func (e *emitter) encoders() error {
	v := &encoderView{view: e.view()}
	for _, r := range e.spec.records {
		v.object(goName(r.name), r.fields)
	}
	for _, g := range e.spec.groups {
		for _, m := range g.methods {
			if m.stream != nil {
				continue
			}
			name := goName(m.operation())
			v.object(name+"Output", m.output)
			answer := encodedAnswer{Name: name}
			if m.other != nil {
				answer.Status, answer.When = m.other.status, goName(m.other.when)
			}
			v.Answers = append(v.Answers, answer)
		}
	}
	return e.goFile("api/encode.gen.go", "api_encode.tmpl", v)
}

type encoderView struct {
	*view
	Objects []encodedObject
	Answers []encodedAnswer
}

// An encodedAnswer is an operation with one answer, and the status of those
// answers in which an optional field is there.
type encodedAnswer struct {
	Name   string
	Status int // 0: there is no other than 200
	When   string
}

type encodedObject struct {
	Name   string
	Fields []encodedField
}

type encodedField struct {
	Name, Go string
	Optional bool
	Append   string // a statement that appends the value
}

func (v *encoderView) object(name string, fields []*field) {
	o := encodedObject{Name: name}
	for _, f := range fields {
		value := "v." + goName(f.name)
		if !f.required {
			value = "*" + value
		}
		o.Fields = append(o.Fields, encodedField{f.name, goName(f.name), !f.required, appendValue(f, f.kind, value)})
		if f.kind == kindObject && len(f.fields) > 0 {
			v.object(name+goName(f.name), f.fields)
		}
	}
	v.Objects = append(v.Objects, o)
}

// appendValue is the Go that appends a value of a kind to b.
func appendValue(f *field, k kind, value string) string {
	switch k {
	case kindInteger:
		return fmt.Sprintf("b = strconv.AppendInt(b, %s, 10)", value)
	case kindBoolean:
		return fmt.Sprintf("b = strconv.AppendBool(b, %s)", value)
	case kindTime:
		return fmt.Sprintf("b = strictjson.AppendTime(b, %s)", value)
	case kindArray:
		return fmt.Sprintf("b = append(b, '[')\nfor i, item := range %s {\nif i > 0 {\nb = append(b, ',')\n}\n%s\n}\nb = append(b, ']')",
			value, appendValue(f, f.element, "item"))
	case kindRecord:
		return fmt.Sprintf("b = (%s).appendJSON(b)", value)
	case kindObject:
		if len(f.fields) > 0 {
			return fmt.Sprintf("b = (%s).appendJSON(b)", value)
		}
		return fmt.Sprintf("b = strictjson.AppendRaw(b, %s)", value)
	case kindEnum:
		return fmt.Sprintf("b = strictjson.AppendString(b, string(%s))", value)
	default:
		return fmt.Sprintf("b = strictjson.AppendString(b, %s)", value)
	}
}
