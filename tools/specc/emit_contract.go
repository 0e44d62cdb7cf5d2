package main

import (
	"bytes"
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// maxBody is the largest body that a server reads, in bytes.
const maxBody = 64 << 10

// contract writes the corpus: for every method, bodies that every server and
// every SDK must accept or refuse, and why, made from the tables alone.
func (e *emitter) contract() error {
	w := &contractWriter{spec: e.spec}
	for _, g := range e.spec.groups {
		for _, m := range g.methods {
			w.operation(m)
		}
	}
	var out bytes.Buffer
	out.WriteString("[")
	for i, c := range w.cases {
		if i > 0 {
			out.WriteString(",")
		}
		line, err := plainJSON(c)
		if err != nil {
			return err
		}
		out.WriteString("\n")
		out.Write(line)
	}
	out.WriteString("\n]\n")
	e.files["contract/corpus.json"] = out.Bytes()
	return e.goFile("contract/contract.gen.go", "contract.tmpl", e.view())
}

// A contractCase is one body and what becomes of it.
type contractCase struct {
	Name       string `json:"name"` // operation/field/what
	Operation  string `json:"operation"`
	Path       string `json:"path"`
	Body       string `json:"body,omitempty"`
	BodyBase64 string `json:"bodyBase64,omitempty"` // instead of body, where that is not UTF-8
	Pad        int    `json:"pad,omitempty"`        // blanks that follow the body
	Accept     bool   `json:"accept"`
	Status     int    `json:"status,omitempty"`
	Code       string `json:"code,omitempty"`
	Field      string `json:"field,omitempty"`
	Rule       string `json:"rule,omitempty"`
}

// A contractWriter collects the cases of all methods.
type contractWriter struct {
	spec   *spec
	cases  []contractCase
	method *method
	base   *draft             // the body that each case changes in one place
	bodies map[[2]string]bool // field and body, so that none stands there twice
}

// operation writes the cases of one method: those of the body as a whole, then
// those of each field in the order of the table.
func (w *contractWriter) operation(m *method) {
	w.method, w.base, w.bodies = m, draftOf(m), map[[2]string]bool{}
	w.wholeBodies()
	walk(m.input, func(f *field) {
		w.presence(f)
		for _, t := range trialsOf(f) {
			w.trial(f, t)
		}
	})
}

func (w *contractWriter) accept(field, what, body string) {
	w.add(contractCase{Accept: true}, field, what, body)
}

// refuse adds a body that has one violation and no other.
func (w *contractWriter) refuse(field, what, body, at, rule string) {
	c := contractCase{Field: at, Rule: rule}
	c.Status, c.Code = w.code("INVALID_INPUT")
	w.add(c, field, what, body)
}

func (w *contractWriter) code(name string) (int, string) {
	c, _ := find(w.spec.codes, func(c *code) bool { return c.name == name }) // held by checker.answers
	return c.status, c.name
}

func (w *contractWriter) add(c contractCase, field, what, body string) {
	key := [2]string{field, body}
	if w.bodies[key] && c.Pad == 0 || len(body) > maxBody {
		return
	}
	w.bodies[key] = true
	c.Name = w.method.id() + "/" + field + "/" + what
	c.Operation, c.Path = w.method.id(), w.method.path
	if utf8.ValidString(body) {
		c.Body = body
	} else {
		c.BodyBase64 = base64.StdEncoding.EncodeToString([]byte(body))
	}
	w.cases = append(w.cases, c)
}

// trial adds the body in which a field has a certain value.
func (w *contractWriter) trial(f *field, t trial) {
	body := w.base.with(f, t.raw)
	switch {
	case t.rule == "":
		w.accept(f.path, t.what, body.String())
	case t.rule == "json":
		w.refuse(f.path, t.what, body.String(), "", t.rule)
	default:
		w.refuse(f.path, t.what, body.String(), body.place(f)+t.at, t.rule)
	}
}

// presence adds the bodies in which a field is missing, or there twice, or under
// another name.
func (w *contractWriter) presence(f *field) {
	valid := w.base.with(f, validOf(f))
	place := valid.place(f)
	if without, ok := valid.without(f); ok && f.required {
		w.refuse(f.path, "missing", without.String(), place, "required")
	} else if ok {
		w.accept(f.path, "absent", without.String())
	}
	name, value := quoted(f.name), validOf(f)
	escaped := `"` + escapes(f.name[:1]) + f.name[1:] + `"`
	w.refuse(f.path, "twice", valid.also(f, name, value).String(), place, "duplicate")
	w.refuse(f.path, "twice, once with an escaped name", valid.also(f, escaped, value).String(), place, "duplicate")
	w.accept(f.path, "escaped name", valid.renamed(f, escaped).String())
	loud := strings.ToUpper(f.name)
	at := strings.TrimSuffix(place, f.name) + loud
	w.refuse(f.path, "name in capitals", valid.also(f, quoted(loud), value).String(), at, "unknown")
}

// wholeBodies adds what is decided before any field is.
func (w *contractWriter) wholeBodies() {
	base := w.base.String()
	inside, comma := strings.TrimSuffix(base, "}"), ""
	if len(w.base.members) > 0 {
		comma = ","
	}
	also := func(member string) string { return inside + comma + member + "}" }
	w.accept("", "example", base)
	w.accept("", "white space around it", "\r\n\t "+base+" \t\r\n")
	w.accept("", "white space inside it", w.base.spaced())
	w.accept("", "members in reverse order", w.base.reversed().String())
	for _, c := range []struct{ what, body, at, rule string }{
		{"nothing", "", "", "empty"},
		{"white space only", " \t\r\n", "", "empty"},
		{"null", "null", "", "null"},
		{"an array", "[]", "", "type"},
		{"an array around it", "[" + base + "]", "", "type"},
		{"a number", "1", "", "type"},
		{"a string", `"x"`, "", "type"},
		{"true", "true", "", "type"},
		{"no JSON", "tenantId=acme", "", "json"},
		{"cut behind the bracket", "{", "", "json"},
		{"cut inside a name", `{"te`, "", "json"},
		{"cut at the end", inside, "", "json"},
		{"comma at the end", inside + ",}", "", "json"},
		{"comma at the start", "{," + base[1:], "", "json"},
		{"comment", inside + "/**/}", "", "json"},
		{"name without quotes", also("zzz:1"), "", "json"},
		{"name in single quotes", also("'zzz':1"), "", "json"},
		{"no colon", also(`"zzz" 1`), "", "json"},
		{"no-break space", "{\u00a0" + base[1:], "", "json"},
		{"trailing text", base + "x", "", "trailing"},
		{"trailing comma", base + ",", "", "trailing"},
		{"trailing bracket", base + "}", "", "trailing"},
		{"trailing NUL", base + "\x00", "", "trailing"},
		{"a second value", base + "\n" + base, "", "trailing"},
		{"byte order mark", "\ufeff" + base, "", "encoding"},
		{"UTF-16", "\xff\xfe{\x00}\x00", "", "json"},
		{"unknown member", also(`"zzz":1`), "zzz", "unknown"},
		{"unknown member that is null", also(`"zzz":null`), "zzz", "unknown"},
		{"unknown member first", `{"zzz":{"a":[1,"b"]}` + comma + base[1:], "zzz", "unknown"},
		{"member without a name", also(`"":1`), `""`, "unknown"},
		{"__proto__", also(`"__proto__":{}`), "__proto__", "unknown"},
		{"name with a lone surrogate", also(`"\ud800":1`), "\ufffd", "encoding"},
		{"name that is not UTF-8", also("\"\xff\":1"), "\ufffd", "encoding"},
		{"nested as deep as can be", also(`"zzz":` + nested(maxDepth-1)), "zzz", "unknown"},
		{"nested too deep", also(`"zzz":` + nested(maxDepth)), "zzz", "depth"},
		{"nested far too deep", also(`"zzz":` + nested(20*maxDepth)), "zzz", "depth"},
		{"arrays nested too deep", nested(maxDepth + 1), "", "depth"},
	} {
		w.refuse("", c.what, c.body, c.at, c.rule)
	}
	pad := maxBody - len(base)
	w.add(contractCase{Accept: true, Pad: pad}, "", "as large as can be", base)
	status, code := w.code("PAYLOAD_TOO_LARGE")
	w.add(contractCase{Pad: pad + 1, Status: status, Code: code}, "", "too large by one", base)
	w.add(contractCase{Pad: 16 * maxBody, Status: status, Code: code}, "", "far too large", base)
	w.add(contractCase{Pad: maxBody, Status: status, Code: code}, "", "too large and malformed", "{")
}

// maxDepth is the deepest nesting of objects and arrays; the body itself is the first level.
const maxDepth = 16

// nested is arrays inside one another.
func nested(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
