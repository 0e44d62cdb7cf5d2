// Command reduce cuts our OpenAPI document down to joinTokens.create and what
// it needs, so that the code that other generators make of it stays small.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

const (
	path      = "/api/compute/joinTokens/create"
	reference = "#/components/"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: reduce FROM TO")
		os.Exit(2)
	}
	if err := reduce(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "reduce:", err)
		os.Exit(1)
	}
}

// reduce keeps the input and the answer as they are. Security, the refusals and
// the descriptions go: no peer is measured at them.
func reduce(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		return err
	}
	item, ok := at(document, "paths", path).(map[string]any)
	if !ok {
		return fmt.Errorf("%s has no path %s", from, path)
	}
	post := item["post"].(map[string]any)
	post["responses"] = map[string]any{"200": at(post, "responses", "200")}
	delete(post, "tags")

	schemas := map[string]any{}
	collect(document, item, schemas)
	out := map[string]any{
		"openapi":    document["openapi"],
		"info":       map[string]any{"title": "joinTokens.create alone", "version": "0"},
		"paths":      map[string]any{path: item},
		"components": map[string]any{"schemas": schemas},
	}
	withoutProse(out["paths"])
	withoutProse(schemas)
	pretty, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(to, append(pretty, '\n'), 0o644)
}

// collect adds the schemas that node refers to, and those that they refer to.
func collect(document map[string]any, node any, schemas map[string]any) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			collect(document, item, schemas)
		}
	case map[string]any:
		for name, value := range node {
			if target, isText := value.(string); isText && name == "$ref" {
				part, schema, _ := strings.Cut(strings.TrimPrefix(target, reference), "/")
				if _, known := schemas[schema]; !known {
					schemas[schema] = at(document, "components", part, schema)
					collect(document, schemas[schema], schemas)
				}
				continue
			}
			collect(document, value, schemas)
		}
	}
}

// withoutProse drops descriptions and examples wherever they are texts about
// something, not fields of that name.
func withoutProse(node any) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			withoutProse(item)
		}
	case map[string]any:
		if _, isResponse := node["content"]; !isResponse {
			if _, isText := node["description"].(string); isText {
				delete(node, "description")
			}
		}
		delete(node, "example")
		for _, value := range node {
			withoutProse(value)
		}
	}
}

func at(node any, names ...string) any {
	for _, name := range names {
		object, ok := node.(map[string]any)
		if !ok {
			return nil
		}
		node = object[name]
	}
	return node
}
