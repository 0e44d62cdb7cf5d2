package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/bettercompute/bettercompute/tools/specc/regex"
)

const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
)

// openAPI writes the published 3.1 document and the 3.0 one for tools that need it.
func (e *emitter) openAPI() error {
	for _, d := range []struct{ file, version string }{
		{"openapi.json", "3.1.0"},
		{"openapi-3.0.json", "3.0.3"},
	} {
		text, err := indented((&documentWriter{spec: e.spec, version: d.version}).document())
		if err != nil {
			return err
		}
		if err := validateDocument(text); err != nil {
			return fmt.Errorf("%s: %w", d.file, err)
		}
		e.files[d.file] = text
	}
	return e.goFile("documents.gen.go", "documents.tmpl", e.view())
}

func validateDocument(text []byte) error {
	document, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return err
	}
	return document.Validate(context.Background(), openapi3.SetRegexCompiler(compilePattern))
}

// compilePattern makes kin-openapi match by our automata: package regexp refuses
// to repeat more than a thousand times.
func compilePattern(text string) (openapi3.RegexMatcher, error) {
	pattern, err := regex.Parse(text)
	if err != nil {
		return nil, err
	}
	return patternMatcher{pattern.DFA()}, nil
}

type patternMatcher struct{ *regex.DFA }

// MatchString implements [openapi3.RegexMatcher].
func (m patternMatcher) MatchString(s string) bool { return m.Match(s) }

// A documentWriter writes one OpenAPI document in the order of the pages.
type documentWriter struct {
	*spec
	version string
	// forGo is the document as Go code is generated from it: fields keep their
	// order, and errors are left out, since one place handles them all.
	forGo bool
	// wirePath, if any, is the package whose types stand for inputs and lists.
	wirePath string
}

func (d *documentWriter) document() object {
	paths := object{}
	for _, g := range d.groups {
		for _, m := range g.methods {
			paths = paths.with(m.path, object{{"post", d.operation(m)}})
		}
	}
	tags := []any{}
	for _, g := range d.groups {
		tags = append(tags, object{{"name", g.name}, {"description", g.prose}})
	}
	components := object{{"schemas", d.schemas()}}
	if !d.forGo {
		components = components.with("responses", d.responses()).with("headers", answerHeaders())
	}
	components = components.with("securitySchemes", d.securitySchemes())
	return object{
		{"openapi", d.version},
		{"info", object{
			{"title", "Better Compute"},
			{"version", "0.1.0"},
			{"description", "The control plane for bare-metal and GPU machines. Every method is one POST with a JSON body."},
			{"license", object{{"name", "Apache 2.0"}, {"url", "https://www.apache.org/licenses/LICENSE-2.0"}}},
			{"contact", object{{"name", "Better Compute"}, {"url", "https://github.com/bettercompute/bettercompute"}}},
		}},
		{"servers", []any{object{{"url", "/"}}}},
		{"security", []any{object{{"apiKey", []any{}}}}},
		{"tags", tags},
		{"paths", paths},
		{"components", components},
	}
}

func (d *documentWriter) operation(m *method) object {
	o := object{
		{"operationId", m.operation()},
		{"tags", []any{m.group.name}},
		{"summary", m.summary},
		{"description", d.description(m)},
	}
	if m.stream != nil {
		o = o.with("parameters", []any{d.resumeHeader(m)})
	}
	o = o.with("requestBody", object{
		{"required", true},
		{"content", object{{jsonType, object{
			{"schema", reference(goName(m.operation()) + "Input")},
			{"example", json.RawMessage(m.request.text)},
		}}}},
	}).with("responses", d.operationResponses(m))
	if m.decides != byAction {
		o = o.with("security", d.security(m.decides))
	}
	o = o.with("x-kind", m.kind)
	if m.decides == byAction {
		o = o.with("x-action", m.action)
	}
	return o.with("x-retry", m.retry)
}

// resumeHeader is the header with which a client goes on with a stream; its
// example is that of the field that it wins over.
func (d *documentWriter) resumeHeader(m *method) object {
	o := object{
		{"name", "Last-Event-ID"}, {"in", "header"}, {"required", false},
		{"description", "The id of the last message received; it wins over `" + m.stream.after + "`."},
		{"schema", d.fieldSchema("", fieldNamed(m.input, m.stream.after))},
	}
	if example := m.request.member(m.stream.after); example != nil {
		o = o.with("example", example)
	}
	return o
}

func (d *documentWriter) operationResponses(m *method) object {
	answers := object{}
	if m.stream != nil {
		answers = answers.with("200", d.success(
			"A stream of server-sent events; the schema is that of one of them.", "text/event-stream", object{{"schema", d.messageSchema(m)}}))
	} else {
		answers = d.successes(m)
	}
	if d.forGo {
		return answers
	}
	for _, status := range d.statuses() {
		if slices.ContainsFunc(d.codes, func(c *code) bool { return c.status == status && d.mayAnswer(m, c) }) {
			answers = answers.with(strconv.Itoa(status), object{{"$ref", "#/components/responses/" + responseName(status)}})
		}
	}
	return answers
}

// successes are the statuses of an answer that is no stream, all of one schema;
// the example stands where it belongs. Generated Go knows of one: our encoder
// writes the other status.
func (d *documentWriter) successes(m *method) object {
	schema := object{{"schema", reference(goName(m.operation()) + "Output")}}
	shown := schema.with("example", json.RawMessage(m.answer.text))
	if m.other == nil || d.forGo {
		return object{{"200", d.success(m.summary, jsonType, shown)}}
	}
	usual, other := shown, schema
	if m.answer.member(m.other.when) != nil {
		usual, other = schema, shown
	}
	return object{
		{"200", d.success(m.summary, jsonType, usual)},
		{strconv.Itoa(m.other.status), d.success("The answer holds `"+m.other.when+"`.", jsonType, other)},
	}
}

func (d *documentWriter) success(description, media string, content object) object {
	o := object{{"description", description}}
	if !d.forGo {
		o = o.with("headers", d.headersOf(http.StatusOK))
	}
	return o.with("content", object{{media, content}})
}

// mayAnswer reports whether a method can be refused with a code: where it
// lists the code itself, and where no method does, so that it is every
// method's. Decoders refuse for all methods, and a credential is asked for by all.
func (s *spec) mayAnswer(m *method, c *code) bool {
	lists := func(m *method) bool {
		return slices.ContainsFunc(m.errors, func(e caseOf) bool { return e.name.text == c.name })
	}
	return slices.Contains(decoderCodes, c.name) || c.status == http.StatusUnauthorized || lists(m) || !slices.ContainsFunc(s.groups, func(g *group) bool {
		return slices.ContainsFunc(g.methods, lists)
	})
}

// messageSchema is one server-sent event of a stream. Before 3.2 OpenAPI has no
// word for a sequence, and tools take the schema for that of its items; before
// 3.1 it has none for JSON inside a string.
func (d *documentWriter) messageSchema(m *method) object {
	data := object{{"type", "string"}, {"description", "A JSON object of type " + m.stream.record.name + "."}}
	switch {
	case d.forGo:
		return object{{"type", "string"}}
	case d.version >= "3.1":
		data = data.with("contentMediaType", "application/json").with("contentSchema", reference(goName(m.stream.record.name)))
	}
	return object{
		{"type", "object"},
		{"properties", object{
			{"id", d.fieldSchema("", fieldNamed(m.stream.record.fields, "cursor"))},
			{"event", d.fieldSchema("", fieldNamed(m.stream.record.fields, "type"))},
			{"data", data},
		}},
		{"required", []any{"id", "event", "data"}},
	}
}

// statuses lists the statuses of all codes in the order of errors.md, each once.
func (s *spec) statuses() (list []int) {
	seen := map[int]bool{}
	for _, c := range s.codes {
		if !seen[c.status] {
			seen[c.status] = true
			list = append(list, c.status)
		}
	}
	return list
}

func responseName(status int) string { return "Problem" + strconv.Itoa(status) }

func (d *documentWriter) responses() object {
	all := object{}
	for _, status := range d.statuses() {
		var says []string
		for _, c := range d.codes {
			if c.status == status {
				says = append(says, c.name+": "+c.when)
			}
		}
		all = all.with(responseName(status), object{
			{"description", strings.Join(says, " ")},
			{"headers", d.headersOf(status)},
			{"content", object{{problemType, object{{"schema", reference("Problem")}}}}},
		})
	}
	return all
}

// headersOf refers to the headers that an answer with this status always has.
func (s *spec) headersOf(status int) object {
	names := []string{"X-Request-Id"}
	switch status {
	case http.StatusUnauthorized:
		names = append(names, "WWW-Authenticate")
	case http.StatusMethodNotAllowed:
		names = append(names, "Allow")
	}
	// Nobody knows when a fault of ours will have passed.
	if status != http.StatusInternalServerError && slices.ContainsFunc(s.codes, func(c *code) bool { return c.status == status && c.retry }) {
		names = append(names, "Retry-After")
	}
	headers := object{}
	for _, name := range names {
		headers = headers.with(name, object{{"$ref", "#/components/headers/" + name}})
	}
	return headers
}

func answerHeaders() object {
	header := func(description string, schema object) object {
		return object{{"description", description}, {"required", true}, {"schema", schema}}
	}
	text := object{{"type", "string"}}
	return object{
		{"X-Request-Id", header("The id under which the server's log has this call: the caller's own `X-Request-Id`, where it sent one of a useful form.", text)},
		{"WWW-Authenticate", header("How to authenticate: with a bearer.", text)},
		{"Allow", header("The HTTP methods that the path takes.", text)},
		{"Retry-After", header("Seconds until it is worth coming back.", object{{"type", "integer"}, {"minimum", 1}})},
	}
}

func reference(name string) object { return object{{"$ref", "#/components/schemas/" + name}} }
