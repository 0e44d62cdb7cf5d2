package ctl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/bettercompute/bettercompute/gen/cli"
)

// maxInput bounds what is read from a file or standard input; the server takes less.
const maxInput = 1 << 20

// A value is the flag of one field. It refuses what has another type; whatever
// else may be wrong with it is the server's to say. It implements pflag.Value.
type value struct {
	field cli.Field
	stdin io.Reader
	given *node
}

// Type names the type in the help.
func (v *value) Type() string {
	switch {
	case v.field.Secret:
		return "@file"
	case v.field.Type == cli.Array && v.field.Element == cli.Object:
		return string(cli.JSON)
	case v.field.Type == cli.Array:
		return string(v.field.Element)
	}
	return string(v.field.Type)
}

// String returns what was given; a secret is never shown.
func (v *value) String() string {
	if v.given == nil || v.field.Secret {
		return ""
	}
	return v.given.plain()
}

// Set takes a value from the command line; the flag of an array adds an item.
func (v *value) Set(text string) error {
	kind := v.field.Type
	if kind == cli.Array {
		kind = v.field.Element
	}
	if v.field.Secret {
		var err error
		if text, err = v.secret(text); err != nil {
			return err
		}
	}
	item, err := nodeOf(kind, text)
	if err != nil {
		return v.withLimits(err)
	}
	if v.field.Type == cli.Array {
		if v.given == nil {
			v.given = &node{kind: arrayNode}
		}
		v.given.items = append(v.given.items, item)
		return nil
	}
	v.given = item
	return nil
}

func (v *value) withLimits(err error) error {
	if v.field.Limits == "" {
		return err
	}
	return fmt.Errorf("%w; it takes: %s", err, v.field.Limits)
}

// nodeOf is a text from the command line as JSON.
func nodeOf(kind cli.Type, text string) (*node, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("the value is not valid UTF-8")
	}
	switch kind {
	case cli.Integer:
		n, ok := new(big.Int).SetString(text, 10)
		if !ok {
			return nil, fmt.Errorf("%q is no integer", text)
		}
		return &node{text: n.String()}, nil
	case cli.Boolean:
		if text != "true" && text != "false" {
			return nil, fmt.Errorf("%q is neither true nor false", text)
		}
		return &node{text: text}, nil
	case cli.JSON:
		n, err := parseJSON([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("%q is no JSON: %w", text, err)
		}
		return n, nil
	case cli.Object: // of which some part may be secret, so that the text is not repeated
		n, err := parseJSON([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("this is no JSON object: %w", err)
		}
		if n.kind != objectNode {
			return nil, errors.New("this is JSON and no object: {…}")
		}
		return n, nil
	}
	return stringNode(text), nil
}

// secret reads a value that has no place among the arguments of a process.
func (v *value) secret(text string) (string, error) {
	name, ok := strings.CutPrefix(text, "@")
	if !ok {
		return "", errors.New("others can read the arguments of a process; put the value into a file and give @file, or @- for standard input")
	}
	data, err := readAll(name, v.stdin)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// readJSON reads what --json says: @file, @- or - for standard input, or the JSON itself.
func (p *program) readJSON(text string) (*node, error) {
	data := []byte(text)
	if name, ok := strings.CutPrefix(text, "@"); ok || text == "-" {
		if !ok {
			name = "-"
		}
		var err error
		if data, err = readAll(name, p.stdin); err != nil {
			return nil, err
		}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("there is nothing; give @file, - for standard input, or a JSON object")
	}
	n, err := parseJSON(data)
	if err != nil {
		return nil, fmt.Errorf("this is no JSON: %w; give @file, - for standard input, or a JSON object", err)
	}
	if n.kind != objectNode {
		return nil, errors.New("the input of a method is an object: {…}")
	}
	return n, nil
}

// readAll reads a file, or standard input for the name -.
func readAll(name string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	} else {
		name = "standard input"
	}
	data, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxInput {
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxInput)
	}
	return data, nil
}
