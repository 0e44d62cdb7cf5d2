package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// A written document, as far as credentials, statuses and reasons go.
type writtenDocument struct {
	Paths map[string]struct {
		Post struct {
			Description string                     `json:"description"`
			Action      *string                    `json:"x-action"`
			Security    *[]map[string][]string     `json:"security"`
			Responses   map[string]writtenResponse `json:"responses"`
		} `json:"post"`
	} `json:"paths"`
	Security   []map[string][]string `json:"security"`
	Components struct {
		SecuritySchemes map[string]struct{ Type, Scheme, Description string }
		Schemas         map[string]struct {
			Properties map[string]struct {
				Enum  []string       `json:"enum"`
				Items map[string]any `json:"items"`
			}
			MinProperties int `json:"minProperties"`
		}
	} `json:"components"`
}

type writtenResponse struct {
	Content map[string]struct {
		Schema  map[string]any  `json:"schema"`
		Example json.RawMessage `json:"example"`
	} `json:"content"`
}

func written(t *testing.T, files outputs, name string) (d writtenDocument) {
	t.Helper()
	if err := json.Unmarshal(files[name], &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestSecurityOfDocuments(t *testing.T) {
	t.Parallel()
	files, err := emit(parsed(t, "testdata/good"), "example.com/gen")
	if err != nil {
		t.Fatal(err)
	}
	for name, schemes := range map[string][]string{
		"openapi.json":     {"apiKey", "joinToken", "nodeCertificate"},
		"openapi-3.0.json": {"apiKey", "joinToken"},
	} {
		d := written(t, files, name)
		if got := slices.Sorted(maps.Keys(d.Components.SecuritySchemes)); !slices.Equal(got, schemes) {
			t.Errorf("%s has the schemes %v", name, got)
		}
		if s := d.Components.SecuritySchemes["joinToken"]; s.Type != "http" || s.Scheme != "bearer" || !strings.Contains(s.Description, "`bcjt_<id>.<secret>`") {
			t.Errorf("%s: %+v", name, s)
		}
		if len(d.Security) != 1 || d.Security[0]["apiKey"] == nil {
			t.Errorf("%s: by default %v", name, d.Security)
		}
		post := d.Paths["/api/compute/vaults/load"].Post
		if post.Security != nil || post.Action == nil {
			t.Errorf("%s: what an action decides: %+v", name, post)
		}
		post = d.Paths["/api/compute/vaults/enter"].Post
		if post.Action != nil || post.Security == nil || len(*post.Security) != 1 || (*post.Security)[0]["joinToken"] == nil {
			t.Errorf("%s: what a join token decides: %+v", name, post)
		}
		post = d.Paths["/api/compute/vaults/beat"].Post
		switch {
		case post.Action != nil || post.Security == nil:
			t.Errorf("%s: what a node decides: %+v", name, post)
		case name == "openapi.json" && (len(*post.Security) != 1 || (*post.Security)[0]["nodeCertificate"] == nil):
			t.Errorf("%s: what a node decides: %v", name, *post.Security)
		case name != "openapi.json" && (len(*post.Security) != 0 || !strings.Contains(post.Description, "client certificate")):
			t.Errorf("%s: what a node decides: %v %q", name, *post.Security, post.Description)
		}
	}
}

// TestStatusesOfDocuments: both answers have one schema, and the example stands
// at the one that it is.
func TestStatusesOfDocuments(t *testing.T) {
	t.Parallel()
	files, err := emit(parsed(t, "testdata/good"), "example.com/gen")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"openapi.json", "openapi-3.0.json"} {
		d := written(t, files, name)
		for method, shown := range map[string]string{"enter": "202", "beat": "200"} {
			other := map[string]string{"enter": "202", "beat": "201"}[method]
			responses := d.Paths["/api/compute/vaults/"+method].Post.Responses
			for _, status := range []string{"200", other} {
				content := responses[status].Content[jsonType]
				if ref := content.Schema["$ref"]; ref != "#/components/schemas/Vaults"+capitalize(method)+"Output" || (content.Example != nil) != (status == shown) {
					t.Errorf("%s: %s answers %s with %v %s", name, method, status, ref, content.Example)
				}
			}
		}
		if item := d.Components.Schemas["VaultsLoadInput"].Properties["pins"].Items["$ref"]; item != "#/components/schemas/VaultsLoadInputPinsItem" {
			t.Errorf("%s: the items are %v", name, item)
		}
		if d.Components.Schemas["VaultsLoadInputPinsItem"].MinProperties != 1 {
			t.Errorf("%s: an item may be empty", name)
		}
		if got := d.Components.Schemas["Problem"].Properties["reason"].Enum; !slices.Equal(got, []string{"wrong_vault", "inside"}) {
			t.Errorf("%s: the reasons are %v", name, got)
		}
	}
}

// TestWithoutWhatFewNeed: pages that have no reasons, and no methods but those
// that an action decides, make nothing of it.
func TestWithoutWhatFewNeed(t *testing.T) {
	t.Parallel()
	pages, err := readPages("testdata/good")
	if err != nil {
		t.Fatal(err)
	}
	delete(pages, "vaults.md")
	pages["errors.md"], _, _ = strings.Cut(pages["errors.md"], "\n## Reasons")
	if list := said(pages); len(list) > 0 {
		t.Fatal(list)
	}
	files, err := emit(parseSpec(pages, &mistakes{}), "example.com/gen")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		for _, word := range []string{`"joinToken":`, "mutualTLS", "Reason", "m.bare"} {
			if strings.Contains(string(text), word) {
				t.Errorf("%s speaks of %s", name, word)
			}
		}
	}
}
