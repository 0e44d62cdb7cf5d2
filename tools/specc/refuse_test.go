package main

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// A badPage is a file of testdata/bad: a page that takes the place of one of
// testdata/good, or joins them, and everything that is then said.
type badPage struct {
	name  string
	page  string // the page that it stands for: that of the first line of want
	pages map[string]string
	want  string
}

// missing is the text of a bad page that is not there at all.
const missing = "missing\n"

func badPages(t testing.TB) []badPage {
	t.Helper()
	names, err := filepath.Glob("testdata/bad/*.md")
	if err != nil || len(names) == 0 {
		t.Fatalf("no bad pages: %v", err)
	}
	good, err := readPages("testdata/good")
	if err != nil {
		t.Fatal(err)
	}
	var list []badPage
	for _, name := range names {
		text, want := read(t, name), read(t, strings.TrimSuffix(name, ".md")+".want")
		page, _, _ := strings.Cut(want, ":")
		b := badPage{strings.TrimSuffix(filepath.Base(name), ".md"), page, maps.Clone(good), want}
		if b.pages[page] = text; text == missing {
			delete(b.pages, page)
		}
		list = append(list, b)
	}
	return list
}

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// said compiles pages and returns what is wrong with them.
func said(pages map[string]string) []mistake {
	wrong := &mistakes{}
	parseSpec(pages, wrong)
	return wrong.sorted()
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, b := range badPages(t) {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			var got strings.Builder
			for _, m := range said(b.pages) {
				got.WriteString(m.at.String() + ": " + m.text + "\n")
				if !inside(m.at, b.pages) {
					t.Errorf("%s is no place in the pages", m.at)
				}
			}
			if got.String() != b.want {
				t.Errorf("it says\n%swant\n%s", got.String(), b.want)
			}
		})
	}
}

// inside reports whether a position lies in its page, or right behind a line of it.
func inside(at position, pages map[string]string) bool {
	text, ok := pages[at.file]
	if !ok {
		return at.line == 1 && at.col == 1 // a page that is missing
	}
	lines := strings.Split(text, "\n")
	return at.line >= 1 && at.line <= len(lines) &&
		at.col >= 1 && at.col <= utf8.RuneCountInString(lines[at.line-1])+1
}

// TestEveryRefusalIsTested takes the formats of all messages from the source. A
// new one needs a file in testdata/bad that provokes it.
func TestEveryRefusalIsTested(t *testing.T) {
	t.Parallel()
	var all []string
	for _, b := range badPages(t) {
		for _, m := range said(b.pages) {
			all = append(all, m.text)
		}
	}
	for _, m := range said(map[string]string{"errors.md": "# errors\n", "roles.md": "# roles\n", "types.md": "# types\n"}) {
		all = append(all, m.text)
	}
	for _, format := range messageFormats(t) {
		form := asRegexp(format)
		if !slices.ContainsFunc(all, form.MatchString) {
			t.Errorf("no file in testdata/bad provokes %q", format)
		}
	}
}

// messageFormats are the format strings of all calls of mistakes.add and exampleReader.bad.
func messageFormats(t *testing.T) (formats []string) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := goparser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || method.Sel.Name != "bad" && !(method.Sel.Name == "add" && lastName(method.X) == "wrong") {
				return true
			}
			literal, ok := call.Args[1].(*ast.BasicLit)
			if !ok {
				t.Errorf("%s: the format of a message is a literal", name)
				return true
			}
			format, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			if method.Sel.Name == "bad" {
				format = "the example breaks the table: %s " + format
			}
			formats = append(formats, format)
			return true
		})
	}
	if len(formats) < 100 {
		t.Fatalf("found only %d messages", len(formats))
	}
	return formats
}

// lastName is the last name of an expression: wrong of both wrong and r.wrong.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func asRegexp(format string) *regexp.Regexp {
	text := regexp.QuoteMeta(format)
	text = strings.NewReplacer("%q", `"(?:[^"\\]|\\.)*"`, "%d", `-?[0-9]+`, "%U", `U\+[0-9A-F]+`, "%s", ".*", "%v", ".*").Replace(text)
	return regexp.MustCompile("^" + text + "$")
}

// TestEveryReasonIsTested does the same for the second halves of two messages.
func TestEveryReasonIsTested(t *testing.T) {
	t.Parallel()
	var all []string
	for _, b := range badPages(t) {
		all = append(all, b.want)
	}
	text := strings.Join(all, "")
	for _, reason := range []string{
		"is not an integer", "is outside the range", "is neither true nor false", "is none of", "stands on a type that takes none",
		"has more than 12 characters", "does not match ^",
	} {
		if !strings.Contains(text, reason) {
			t.Errorf("no file in testdata/bad has the reason %q", reason)
		}
	}
}
