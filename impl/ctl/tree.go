package ctl

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// A node is a JSON value that keeps the order of its members, their
// duplicates, and the spelling of strings and numbers, so that what is passed
// on is what was written.
type node struct {
	kind    nodeKind
	text    string // of a scalar, as written
	members []member
	items   []*node
}

type member struct {
	name  string
	text  string // the name as written
	value *node
}

type nodeKind int

const (
	scalarNode nodeKind = iota
	objectNode
	arrayNode
)

func newObject() *node { return &node{kind: objectNode} }

func stringNode(s string) *node {
	text, _ := json.Marshal(s) // a string can always be written
	return &node{text: string(text)}
}

// parseJSON reads one JSON value.
func parseJSON(data []byte) (*node, error) {
	var whole json.RawMessage // refuses what is broken, nested too deeply, or followed by more
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, err
	}
	d := &treeDecoder{json.NewDecoder(bytes.NewReader(data)), data}
	d.UseNumber() // a number of any size is passed on
	return d.value()
}

type treeDecoder struct {
	*json.Decoder
	data []byte
}

// next returns the next token and how it is written.
func (d *treeDecoder) next() (json.Token, string, error) {
	start := d.InputOffset()
	token, err := d.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, "", err
	}
	return token, strings.TrimLeft(string(d.data[start:d.InputOffset()]), " \t\r\n,:"), nil
}

func (d *treeDecoder) value() (*node, error) {
	token, text, err := d.next()
	if err != nil {
		return nil, err
	}
	n := &node{text: text}
	switch token {
	case json.Delim('{'):
		n = newObject()
	case json.Delim('['):
		n = &node{kind: arrayNode}
	default:
		return n, nil
	}
	for d.More() {
		m := member{}
		if n.kind == objectNode {
			name, text, err := d.next()
			if err != nil {
				return nil, err
			}
			m.name, m.text = name.(string), text // only a string can stand there
		}
		if m.value, err = d.value(); err != nil {
			return nil, err
		}
		if n.kind == objectNode {
			n.members = append(n.members, m)
		} else {
			n.items = append(n.items, m.value)
		}
	}
	_, _, err = d.next() // the closing bracket
	return n, err
}

// at returns the value at a dotted path, or nil; the path "" is the node itself.
func (n *node) at(path string) *node {
	if path == "" || n == nil {
		return n
	}
	name, rest, _ := strings.Cut(path, ".")
	for _, m := range n.members {
		if m.name == name {
			return m.value.at(rest)
		}
	}
	return nil
}

// set puts a value at a path; objects on the way are made, and whatever else
// stands in their place is replaced.
func (n *node) set(path []string, value *node) {
	if len(path) > 1 {
		inner := n.at(path[0])
		if inner == nil || inner.kind != objectNode {
			inner = newObject()
		}
		inner.set(path[1:], value)
		value = inner
	}
	kept, done := n.members[:0], false
	for _, m := range n.members {
		if m.name != path[0] {
			kept = append(kept, m)
		} else if !done {
			m.value, done = value, true
			kept = append(kept, m)
		}
	}
	if n.members = kept; !done {
		n.members = append(n.members, member{path[0], stringNode(path[0]).text, value})
	}
}

// children are the items of an array; of anything else there are none.
func (n *node) children() []*node {
	if n == nil {
		return nil
	}
	return n.items
}

// isNull also holds for what is not there.
func (n *node) isNull() bool { return n == nil || n.kind == scalarNode && n.text == "null" }

// plain is a string without its quotes, and anything else as it is written.
func (n *node) plain() string {
	if n == nil {
		return ""
	}
	var s string
	if n.isString() && json.Unmarshal([]byte(n.text), &s) == nil {
		return s
	}
	return string(n.bytes())
}

func (n *node) isString() bool { return n.kind == scalarNode && strings.HasPrefix(n.text, `"`) }

// bytes writes the node in one line.
func (n *node) bytes() []byte {
	var out bytes.Buffer
	n.write(&out)
	return out.Bytes()
}

func (n *node) write(out *bytes.Buffer) {
	switch n.kind {
	case objectNode:
		out.WriteByte('{')
		for i, m := range n.members {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteString(m.text)
			out.WriteByte(':')
			m.value.write(out)
		}
		out.WriteByte('}')
	case arrayNode:
		out.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				out.WriteByte(',')
			}
			item.write(out)
		}
		out.WriteByte(']')
	default:
		out.WriteString(n.text)
	}
}
