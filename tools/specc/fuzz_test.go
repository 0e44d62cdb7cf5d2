package main

import (
	"go/ast"
	"go/importer"
	goparser "go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// FuzzParsePages puts a text in the place of a page of testdata/good, or beside
// them. The compiler never panics and never hangs, tells of every mistake where
// it is, and what it finds no mistake in it can write: documents that validate
// and Go that type-checks.
func FuzzParsePages(f *testing.F) {
	good, err := readPages("testdata/good")
	if err != nil {
		f.Fatal(err)
	}
	names := append(sortedKeys(good), "zones.md")
	for i, name := range names {
		f.Add(uint8(i), good[name])
	}
	spec, err := readPages(specDir)
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range sortedKeys(spec) {
		f.Add(uint8(len(names)-1), strings.Replace(spec[name], "# "+strings.TrimSuffix(name, ".md"), "# zones", 1))
	}
	for _, b := range badPages(f) {
		for i, name := range names {
			if name == b.page {
				f.Add(uint8(i), b.pages[name])
			}
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		pages := maps.Clone(good)
		pages[names[int(which)%len(names)]] = text
		compileAny(t, pages)
	})
}

// compileAny compiles pages that may be wrong in every way.
func compileAny(t *testing.T, pages map[string]string) {
	t.Helper()
	start := time.Now()
	wrong := &mistakes{}
	s := parseSpec(pages, wrong)
	for _, m := range wrong.list {
		if !inside(m.at, pages) {
			t.Errorf("%s is no place in the pages: %s", m.at, m.text)
		}
		if m.text == "" || strings.ContainsAny(m.text, "\n\x00") || strings.Contains(m.text, "%!") {
			t.Errorf("the message %q", m.text)
		}
	}
	if len(wrong.list) == 0 {
		mustEmit(t, s)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("it takes %s", took)
	}
}

// mustEmit writes what this package writes by itself, without oapi-codegen.
func mustEmit(t *testing.T, s *spec) {
	t.Helper()
	e := &emitter{spec: s, importPath: "example.com/gen", files: outputs{}}
	for _, part := range []func() error{e.openAPI, e.problem, e.wire, e.eventTypes, e.contract} {
		if err := part(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"problem", "wire", "events"} {
		if err := typeCheck(name, e.files); err != nil {
			t.Errorf("the package %s: %v", name, err)
		}
	}
}

// checked imports what generated packages import; strictjson from its source.
var checked = sync.OnceValue(func() *sourceImporter {
	i := &sourceImporter{Importer: importer.Default()}
	set := token.NewFileSet()
	var files []*ast.File
	names, _ := filepath.Glob("../../impl/strictjson/*.go")
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := goparser.ParseFile(set, name, nil, 0)
		if err != nil {
			panic(err)
		}
		files = append(files, file)
	}
	config := types.Config{Importer: i.Importer}
	strictjson, err := config.Check(runtimePath, set, files, nil)
	if err != nil {
		panic(err)
	}
	i.strictjson = strictjson
	return i
})

type sourceImporter struct {
	types.Importer
	mu         sync.Mutex // the importer of the standard library is not made for two
	strictjson *types.Package
}

// Import implements [types.Importer].
func (i *sourceImporter) Import(path string) (*types.Package, error) {
	if path == runtimePath {
		return i.strictjson, nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.Importer.Import(path)
}

// typeCheck compiles a generated package as far as its types go.
func typeCheck(name string, files outputs) error {
	set := token.NewFileSet()
	var parsed []*ast.File
	for _, file := range sortedKeys(files) {
		if filepath.Dir(file) != name || filepath.Ext(file) != ".go" {
			continue
		}
		syntax, err := goparser.ParseFile(set, file, files[file], 0)
		if err != nil {
			return err
		}
		parsed = append(parsed, syntax)
	}
	config := types.Config{Importer: checked()}
	_, err := config.Check("example.com/gen/"+name, set, parsed, nil)
	return err
}
