package main

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestReservedNames: what generated packages declare for two specs that have
// little in common, they declare for every spec, so that no type may have its name.
func TestReservedNames(t *testing.T) {
	t.Parallel()
	first, second := declared(t, "testdata/good"), declared(t, specDir)
	for _, name := range sortedKeys(first) {
		if !second[name] || slices.Contains(reserved, name) {
			continue
		}
		// both specs have these types
		if strings.HasPrefix(name, "Match") || strings.HasPrefix(name, "Role") || strings.HasPrefix(name, "ErrorCode") || strings.HasPrefix(name, "ViolationRule") {
			continue
		}
		t.Errorf("%s is declared for every spec; add it to reserved", name)
	}
	for _, name := range reserved {
		if !first[name] && name != "Problem" {
			t.Errorf("%s is reserved, and nothing declares it", name)
		}
	}
}

// declared are the exported names of the packages whose types are named after those of a spec.
func declared(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := emit(parsed(t, dir), "example.com/gen")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for name, text := range files {
		if !slices.Contains([]string{"api", "client", "wire", "events"}, path.Dir(name)) || path.Ext(name) != ".go" {
			continue
		}
		file, err := goparser.ParseFile(token.NewFileSet(), name, text, goparser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			for _, name := range namesOf(declaration) {
				if ast.IsExported(name) {
					names[name] = true
				}
			}
		}
	}
	return names
}

func namesOf(declaration ast.Decl) (names []string) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

// TestGoNames: where oapi-codegen names a field, it does so as we do.
func TestGoNames(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{specDir, "testdata/good"} {
		files, err := emit(parsed(t, dir), "example.com/gen")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"api/server.gen.go", "client/http.gen.go"} {
			file, err := goparser.ParseFile(token.NewFileSet(), name, files[name], goparser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			seen := 0
			ast.Inspect(file, func(n ast.Node) bool {
				f, ok := n.(*ast.Field)
				if !ok || f.Tag == nil || len(f.Names) != 1 {
					return true
				}
				tag, err := strconv.Unquote(f.Tag.Value)
				if err != nil {
					t.Fatal(err)
				}
				said, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
				if seen++; said != "Last-Event-ID" && f.Names[0].Name != goName(said) {
					t.Errorf("%s: the field %s is %s to us and %s to oapi-codegen", name, said, goName(said), f.Names[0].Name)
				}
				return true
			})
			if seen < 20 {
				t.Errorf("%s has %d fields", name, seen)
			}
		}
	}
}
