package ctl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// A jsonList writes items as they come, in the form that the whole answer would have.
type jsonList struct {
	out    io.Writer
	member string
	next   string // the member that holds the cursor, where it is always there
	begun  bool
	items  int
}

func (l *jsonList) begin() string {
	if l.begun {
		return ""
	}
	l.begun = true
	return fmt.Sprintf("{\n  %q: [", l.member)
}

func (l *jsonList) add(records []*node) error {
	var text bytes.Buffer
	text.WriteString(l.begin())
	for _, record := range records {
		if l.items++; l.items > 1 {
			text.WriteByte(',')
		}
		text.WriteString("\n    ")
		if err := json.Indent(&text, record.bytes(), "    ", "  "); err != nil {
			return err
		}
	}
	return writeAll(l.out, text.Bytes())
}

func (l *jsonList) end(next *node) error {
	text := l.begin()
	if l.items > 0 {
		text += "\n  "
	}
	text += "]"
	if !next.isNull() {
		text += fmt.Sprintf(",\n  %q: %s", l.next, next.text)
	}
	return writeAll(l.out, []byte(text+"\n}\n"))
}

// A yamlList writes items as they come, in the form that the whole answer would have.
type yamlList struct {
	out    io.Writer
	member string
	next   string
	items  int
}

func (l *yamlList) add(records []*node) error {
	if len(records) == 0 {
		return nil
	}
	var text bytes.Buffer
	if err := writeYAML(&text, listOf(l.member, records)); err != nil {
		return err
	}
	page := text.String()
	if l.items > 0 {
		_, page, _ = strings.Cut(page, "\n") // the member's name stands there once
	}
	l.items += len(records)
	return writeAll(l.out, []byte(page))
}

func (l *yamlList) end(next *node) error {
	var text bytes.Buffer
	if l.items == 0 {
		if err := writeYAML(&text, listOf(l.member, nil)); err != nil {
			return err
		}
	}
	if !next.isNull() {
		cursor := newObject()
		cursor.set([]string{l.next}, next)
		if err := writeYAML(&text, cursor); err != nil {
			return err
		}
	}
	return writeAll(l.out, text.Bytes())
}

func listOf(member string, items []*node) *node {
	list := newObject()
	list.set([]string{member}, &node{kind: arrayNode, items: items})
	return list
}

// jsonLines writes each record in a line of its own.
type jsonLines struct{ out io.Writer }

func (l *jsonLines) add(records []*node) error {
	for _, record := range records {
		if err := writeAll(l.out, append(record.bytes(), '\n')); err != nil {
			return err
		}
	}
	return nil
}

func (l *jsonLines) end(*node) error { return nil }

// yamlDocuments writes each record as a document of its own.
type yamlDocuments struct{ out io.Writer }

func (l *yamlDocuments) add(records []*node) error {
	for _, record := range records {
		text := bytes.NewBufferString("---\n")
		if err := writeYAML(text, record); err != nil {
			return err
		}
		if err := writeAll(l.out, text.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

func (l *yamlDocuments) end(*node) error { return nil }
