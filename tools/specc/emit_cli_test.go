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

// TestCommandTableOfItems: an array of objects is one flag, which has no place on
// the command line where a part of it is secret, and what a daemon calls is no command.
func TestCommandTableOfItems(t *testing.T) {
	t.Parallel()
	pages, err := readPages("testdata/good")
	if err != nil {
		t.Fatal(err)
	}
	files, err := emit(parseSpec(pages, &mistakes{}), "example.com/gen")
	if err != nil {
		t.Fatal(err)
	}
	text := string(files["cli/commands.gen.go"])
	for _, want := range []string{
		`{Path: "things", Flag: "things", Type: Array, Element: Object, Required: true, Limits: "1-9 items", Secret: true, Members: []Field{`,
		`{Path: "place.row", Type: Integer, Limits: "0-10"},`,
		`{Path: "parts", Type: Array, Element: Object, Limits: "0-2 items"},`,
		`{Path: "parts.shape", Type: String, Limits: "one of round, square; default square", Values: []string{"round", "square"}, Default: "square"},`,
		`{Path: "pins", Flag: "pins", Type: Array, Element: Object, Limits: "2-3 items; at least one of the fields of each", Members: []Field{`,
		`{Path: "box.lids", Flag: "box.lids", Type: Array, Element: Object, Required: true, Limits: "0-3 items", Members: []Field{`,
		`ID:       "vaults.load"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %s", want)
		}
	}
	for _, unwanted := range []string{"vaults.enter", "vaults.beat", "vaults.wait", `Flag: "things.name"`} {
		if strings.Contains(text, unwanted) {
			t.Errorf("the table has %s", unwanted)
		}
	}
	pages["vaults.md"] = pages["vaults.md"][:strings.Index(pages["vaults.md"], "\n## load")] + pages["vaults.md"][strings.Index(pages["vaults.md"], "\n## Events"):]
	pages["vaults.md"] = strings.Replace(pages["vaults.md"], "| load | mutation | test:widgets:create @ compute-pool | v0.1 | registered |\n", "", 1)
	if list := said(pages); len(list) > 0 {
		t.Fatal(list)
	}
	files, err = emit(parseSpec(pages, &mistakes{}), "example.com/gen")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(files["cli/commands.gen.go"]), `"vaults"`) {
		t.Error("a group without commands is a command")
	}
}
