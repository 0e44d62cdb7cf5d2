package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sealed stands in an example where a secret would be.
const sealed = "[sealed]"

// example holds the JSON of an example against the table that it is for.
func (c *checker) example(m *method, e example, shape *field, request bool) {
	if e.text == "" {
		return
	}
	r := &exampleReader{decoder: json.NewDecoder(strings.NewReader(e.text)), example: e, wrong: c.wrong, request: request}
	r.decoder.UseNumber()
	if err := r.value(shape, ""); err != nil {
		c.wrong.add(r.here(), "the example cannot be read: %v", err)
		return
	}
	if _, err := r.decoder.Token(); !errors.Is(err, io.EOF) {
		c.wrong.add(r.here(), "the example goes on after its value")
	}
}

// member is a member of the example as it is written, or nil.
func (e example) member(name string) json.RawMessage {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(e.text), &members); err != nil {
		return nil // checker.example has said why
	}
	return members[name]
}

type exampleReader struct {
	decoder *json.Decoder
	example example
	wrong   *mistakes
	depth   int  // of the objects and arrays that are open
	request bool // a request is strict; an answer may leave out nothing that is always there
}

// here is the position behind the last token.
func (r *exampleReader) here() position {
	at := r.example.at
	read := r.example.text[:min(int(r.decoder.InputOffset()), len(r.example.text))]
	at.line += strings.Count(read, "\n")
	at.col = len([]rune(read)) - len([]rune(read[:strings.LastIndex(read, "\n")+1])) + 1
	return at
}

func (r *exampleReader) bad(path, format string, args ...any) {
	if path == "" {
		path = "the body"
	}
	r.wrong.add(r.here(), "the example breaks the table: %s %s", path, fmt.Sprintf(format, args...))
}

func (r *exampleReader) value(f *field, path string) error {
	token, err := r.decoder.Token()
	if err != nil {
		return err
	}
	if _, nests := token.(json.Delim); nests {
		if r.depth++; r.depth > maxDepth {
			return fmt.Errorf("it nests deeper than %d levels", maxDepth)
		}
		defer func() { r.depth-- }()
	}
	switch {
	case token == json.Delim('{'):
		return r.object(f, path)
	case token == json.Delim('['):
		return r.array(f, path)
	case f != nil:
		r.scalar(f, path, token)
	default:
		if n, ok := token.(json.Number); ok {
			if _, err := n.Float64(); err != nil {
				r.bad(path, "is a number that not every tool can read")
			}
		}
	}
	return nil
}

func (r *exampleReader) object(f *field, path string) error {
	fields := objectFields(f)
	if f != nil && f.kind != kindObject && f.kind != kindRecord {
		r.bad(path, "is an object and must be %s", f.kind)
	}
	freeForm := f == nil || f.kind == kindObject && len(f.fields) == 0 && path != ""
	seen := map[string]bool{}
	for r.decoder.More() {
		token, err := r.decoder.Token()
		if err != nil {
			return err
		}
		name := token.(string)
		at := strings.TrimPrefix(path+"."+name, ".")
		child := fieldNamed(fields, name)
		if child == nil && !freeForm {
			r.bad(at, "is no field of it")
		}
		if seen[name] {
			r.bad(at, "stands there twice")
		}
		seen[name] = true
		if err := r.value(child, at); err != nil {
			return err
		}
	}
	for _, child := range fields {
		if child.required && !seen[child.name] {
			r.bad(strings.TrimPrefix(path+"."+child.name, "."), "is missing")
		}
	}
	if r.request && f != nil && f.limit.atLeastOne && len(seen) == 0 {
		r.bad(path, "needs at least one of its fields")
	}
	_, err := r.decoder.Token()
	return err
}

func (r *exampleReader) array(f *field, path string) error {
	var element *field
	if f != nil {
		if f.kind != kindArray {
			r.bad(path, "is an array and must be %s", f.kind)
		} else {
			element = elementOf(f)
		}
	}
	count := 0
	for ; r.decoder.More(); count++ {
		if err := r.value(element, path+"["+strconv.Itoa(count)+"]"); err != nil {
			return err
		}
	}
	if f != nil && (count < f.limit.minItems || f.limit.maxItems > 0 && count > f.limit.maxItems) {
		r.bad(path, "has %d items and may have %d-%d", count, f.limit.minItems, f.limit.maxItems)
	}
	_, err := r.decoder.Token()
	return err
}

func (r *exampleReader) scalar(f *field, path string, token json.Token) {
	switch value := token.(type) {
	case bool:
		if f.kind != kindBoolean {
			r.bad(path, "is a boolean and must be %s", f.kind)
		}
	case json.Number:
		n, err := strconv.ParseInt(value.String(), 10, 64)
		switch {
		case f.kind != kindInteger || err != nil:
			r.bad(path, "is a number and must be %s", f.kind)
		case f.limit.hasRange && (n < f.limit.min || n > f.limit.max):
			r.bad(path, "is outside the range %s", rangeText(&f.limit))
		}
	case string:
		r.text(f, path, value)
	default:
		r.bad(path, "is null; leave it out instead")
	}
}

func (r *exampleReader) text(f *field, path, value string) {
	if strings.ContainsAny(value, "\x00\ufffd") {
		r.bad(path, "holds a NUL or half of a surrogate pair")
	}
	if f.limit.secret {
		if value != sealed {
			r.bad(path, "is a secret and must stand as %q", sealed)
		}
		return
	}
	switch f.kind {
	case kindString:
		if why := refusesText(&f.limit, value); why != "" {
			r.bad(path, "%s", why)
		}
	case kindEnum:
		if !slices.Contains(f.limit.enum, value) {
			r.bad(path, "is none of %s", strings.Join(f.limit.enum, ", "))
		}
	case kindTime:
		if _, err := time.Parse(time.RFC3339, value); err != nil {
			r.bad(path, "is no RFC 3339 time")
		}
	default:
		r.bad(path, "is a string and must be %s", f.kind)
	}
}

// objectFields are the fields of an object or of a record.
func objectFields(f *field) []*field {
	switch {
	case f == nil:
		return nil
	case f.record != nil:
		return f.record.fields
	default:
		return f.fields
	}
}
