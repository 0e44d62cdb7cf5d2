package ctl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/bettercompute/bettercompute/gen/cli"
	"go.yaml.in/yaml/v3"
)

// The forms of an answer.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

var formats = []string{formatTable, formatJSON, formatYAML}

func isFormat(name string) bool { return slices.Contains(formats, name) }

// show writes one answer.
func (c *call) show(answer []byte) error {
	switch c.format {
	case formatJSON:
		return writeAll(c.stdout, pretty(answer))
	case formatYAML:
		root, err := parseJSON(answer)
		if err != nil {
			return err
		}
		return writeYAML(c.stdout, root)
	}
	root, err := parseJSON(answer)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	c.table(&out, root)
	return writeAll(c.stdout, out.Bytes())
}

// table shows the record or the records of an answer, what stands beside them,
// and a secret in a line of its own.
func (c *call) table(out *bytes.Buffer, root *node) {
	shape := c.method.Output
	if shape.List {
		newTable(shape.Columns).add(out, root.at(shape.Member).children())
	} else {
		writeRecord(out, shape.Columns, root.at(shape.Member))
	}
	for _, column := range shape.Rest {
		fmt.Fprintf(out, "%s: %s\n", column.Path, cell(root.at(column.Path)))
	}
	if page := c.method.Page; page != nil {
		if next := root.at(page.Next); !next.isNull() {
			fmt.Fprintf(out, "next: --%s %s\n", flagFor(c.method, page.Ask), cell(next))
		}
	}
	if once := c.method.Once; once != nil {
		if secret := root.at(once.Member); !secret.isNull() {
			fmt.Fprintf(out, "%s: %s   (shown once)\n", once.Member, cell(secret))
		}
	}
}

func flagFor(m cli.Method, path string) string {
	for _, f := range m.Fields {
		if f.Path == path {
			return f.Flag
		}
	}
	return path
}

// pretty indents JSON and leaves everything else as the server sent it.
func pretty(answer []byte) []byte {
	var out bytes.Buffer
	if json.Indent(&out, bytes.TrimSpace(answer), "", "  ") != nil {
		return answer // the SDK has seen that it is JSON
	}
	out.WriteByte('\n')
	return out.Bytes()
}

func writeAll(w io.Writer, text []byte) error {
	_, err := w.Write(text)
	return err
}

func writeYAML(w io.Writer, n *node) error {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(yamlOf(n)); err != nil {
		return err
	}
	return writeAll(w, out.Bytes())
}

// yamlOf keeps the order of members, and the type of every value.
func yamlOf(n *node) *yaml.Node {
	switch {
	case n.kind == objectNode:
		y := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, m := range n.members {
			y.Content = append(y.Content, yamlString(m.name), yamlOf(m.value))
		}
		return y
	case n.kind == arrayNode:
		y := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range n.items {
			y.Content = append(y.Content, yamlOf(item))
		}
		return y
	case n.isString():
		return yamlString(n.plain())
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: n.text} // a number, true, false or null: alike in YAML
}

func yamlString(s string) *yaml.Node {
	y := &yaml.Node{}
	y.SetString(s)
	return y
}

// A sink shows records that come in parts.
type sink interface {
	add(records []*node) error
	// end closes the list; next is the cursor behind it, if the answer has one there.
	end(next *node) error
}

// newList shows the pages of a list as one answer.
func (c *call) newList() sink {
	shape := c.method.Output
	switch c.format {
	case formatJSON:
		return &jsonList{out: c.stdout, member: shape.Member, next: c.method.Page.Next}
	case formatYAML:
		return &yamlList{out: c.stdout, member: shape.Member, next: c.method.Page.Next}
	}
	return &tableList{out: c.stdout, table: newTable(shape.Columns), ask: flagFor(c.method, c.method.Page.Ask)}
}

// newLines shows records one by one.
func (c *call) newLines() sink {
	switch c.format {
	case formatJSON:
		return &jsonLines{c.stdout}
	case formatYAML:
		return &yamlDocuments{c.stdout}
	}
	return &tableList{out: c.stdout, table: newTable(c.method.Output.Columns)}
}
