package main

import (
	"strings"
	"testing"
)

// emitted compiles our own pages after a change to one of them.
func emitted(t *testing.T, page, old, new string) (outputs, error) {
	t.Helper()
	pages, err := readPages("../../spec")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(pages[page], old) {
		t.Fatalf("%s lacks %q", page, old)
	}
	pages[page] = strings.ReplaceAll(pages[page], old, new)
	wrong := &mistakes{}
	s := parseSpec(pages, wrong)
	if list := wrong.sorted(); len(list) > 0 {
		t.Fatal(list)
	}
	return emit(s, "example.com/gen")
}

func TestCommandTable(t *testing.T) {
	t.Parallel()
	files, err := emitted(t, "sites.md", "| custom | boolean | | default false |", "| custom | boolean | | default true |")
	if err != nil {
		t.Fatal(err)
	}
	text := string(files["cli/commands.gen.go"])
	for _, want := range []string{
		`Once: &Once{Member: "token", Record: "joinToken", Revoke: "revoke", ID: "tokenId"}`,
		`Once: &Once{Member: "key", Record: "apiKey", Revoke: "revoke", ID: "keyId"}`,
		`Page: &Page{Ask: "cursor", Next: "cursor"}`,
		`Page: &Page{Ask: "after", Next: "cursor", Always: true}`,
		`{Path: "custom", Flag: "custom", Type: Boolean, Limits: "default true", Default: "true"}`,
		`{Path: "expect", Type: Object, Limits: "at least one of its fields"}`,
		`Flag: "policy.kubernetes.platform-operated"`,
		`{Path: "policy.kubernetes.platformOperated"},`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %s", want)
		}
	}
}

func TestCommandTableRefusesFlagsOfItsOwn(t *testing.T) {
	t.Parallel()
	_, err := emitted(t, "sites.md", "| custom | boolean | | default false |\n\n### Output", "| server | boolean | | default false |\n\n### Output")
	if err == nil || !strings.Contains(err.Error(), "sites.md:") || !strings.Contains(err.Error(), "--server") {
		t.Errorf("%v", err)
	}
}
