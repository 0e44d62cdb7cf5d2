package placeholder

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// read returns the rules of one file. It walks the nodes itself, because a decoder can neither name the rule that an
// unknown key stands in nor tell the text "null" from nothing.
func read(file io.Reader) ([]rule, error) {
	decoder := yaml.NewDecoder(file)
	var doc, second yaml.Node
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil // nothing but comments
	} else if err != nil {
		return nil, fmt.Errorf("placeholder rules: %w", err)
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("placeholder rules: the file holds more than one document")
	}

	top, err := fields(doc.Content[0], "rules")
	if err != nil {
		return nil, fmt.Errorf("placeholder rules: %w", err)
	}
	list := top["rules"]
	switch {
	case list == nil:
		return nil, errors.New("placeholder rules: the key \"rules\" is missing")
	case list.ShortTag() == "!!null":
		return nil, nil
	case list.Kind != yaml.SequenceNode:
		return nil, errors.New("placeholder rules: \"rules\" is not a list")
	}
	rules := make([]rule, 0, len(list.Content))
	for i, node := range list.Content {
		r, err := parse(node)
		if err != nil {
			name := fmt.Sprintf("%q", r.id)
			if r.id == "" {
				name = fmt.Sprintf("number %d", i+1)
			}
			return nil, fmt.Errorf("placeholder rule %s (line %d): %w", name, node.Line, err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// parse returns the rule of one node; beside an error it holds the id as far as that was legible.
func parse(node *yaml.Node) (r rule, err error) {
	r.id = glimpse(node)
	f, err := fields(node, "id", "kind", "exact", "pattern", "why", "unless")
	if err != nil {
		return r, err
	}
	var id, kind, unless string
	for _, want := range []struct {
		key  string
		into *string
	}{{"id", &id}, {"kind", &kind}, {"why", &r.why}} {
		if *want.into, err = scalar(f[want.key], want.key); err != nil {
			return r, err
		}
		if strings.TrimSpace(*want.into) == "" {
			return r, fmt.Errorf("%q is empty", want.key)
		}
	}
	if strings.Trim(r.id, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return r, errors.New("an id has only lower-case letters, digits and hyphens")
	}
	r.kind = Kind(kind)
	if !slices.Contains([]Kind{Serial, ProductUUID, MAC, GPUUUID}, r.kind) {
		return r, fmt.Errorf("unknown kind %q", kind)
	}
	if f["unless"] != nil {
		if unless, err = scalar(f["unless"], "unless"); err != nil {
			return r, err
		}
		if r.unless = Option(unless); r.unless != VirtualMachines {
			return r, fmt.Errorf("unknown option %q in \"unless\"", unless)
		}
	}
	switch {
	case (f["exact"] == nil) == (f["pattern"] == nil):
		return r, errors.New("a rule has either \"exact\" or \"pattern\"")
	case f["exact"] != nil:
		r.exact, err = values(f["exact"], r.kind)
	default:
		r.pattern, err = pattern(f["pattern"])
	}
	return r, err
}

// glimpse reads the id of a rule before anything about it is known to be right, so that every refusal can name it.
func glimpse(node *yaml.Node) string {
	if node.Kind != yaml.MappingNode {
		return ""
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == "id" {
			return node.Content[i+1].Value
		}
	}
	return ""
}

// fields returns the values of a mapping by key and refuses keys beyond those allowed, and keys given twice.
func fields(node *yaml.Node, allowed ...string) (map[string]*yaml.Node, error) {
	if node.Kind != yaml.MappingNode {
		return nil, errors.New("not a mapping of keys to values")
	}
	f := make(map[string]*yaml.Node)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i].Value
		if !slices.Contains(allowed, key) {
			return nil, fmt.Errorf("unknown key %q", key)
		}
		if f[key] != nil {
			return nil, fmt.Errorf("key %q given twice", key)
		}
		f[key] = node.Content[i+1]
	}
	return f, nil
}

// scalar returns the text of a node. What YAML takes for a number, a date, a bool or null must be quoted: a serial of
// 0123 is not 83, and one of null is not nothing.
func scalar(node *yaml.Node, key string) (string, error) {
	switch {
	case node == nil:
		return "", fmt.Errorf("%q is missing", key)
	case node.Kind != yaml.ScalarNode:
		return "", fmt.Errorf("%q takes plain text", key)
	case node.ShortTag() != "!!str":
		return "", fmt.Errorf("%q: put quotes around %s", key, node.Value)
	}
	return node.Value, nil
}

// values returns the exact values of a rule in normal form.
func values(node *yaml.Node, kind Kind) (map[string]struct{}, error) {
	if node.Kind != yaml.SequenceNode || len(node.Content) == 0 {
		return nil, errors.New("\"exact\" takes a list of values")
	}
	exact := make(map[string]struct{}, len(node.Content))
	for _, item := range node.Content {
		value, err := scalar(item, "exact")
		if err != nil {
			return nil, err
		}
		exact[Normalize(kind, value)] = struct{}{}
	}
	return exact, nil
}

// pattern compiles a rule's pattern, case-insensitively because it meets folded text. The anchors are looked for in the
// parsed expression: `^a|b$` has both signs and is still open at either end.
func pattern(node *yaml.Node) (*regexp.Regexp, error) {
	expr, err := scalar(node, "pattern")
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("\"pattern\": %w", err)
	}
	if tree.Op != syntax.OpConcat || tree.Sub[0].Op != syntax.OpBeginText || tree.Sub[len(tree.Sub)-1].Op != syntax.OpEndText {
		return nil, fmt.Errorf("\"pattern\": %s is not anchored: it must be ^…$ as a whole", expr)
	}
	return regexp.Compile("(?i)" + expr)
}
