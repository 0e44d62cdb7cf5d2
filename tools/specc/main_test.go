package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// specc runs the command and returns its exit code and what it says.
func specc(args ...string) (code int, stdout, stderr string) {
	var out, errs strings.Builder
	code = run(args, &out, &errs)
	return code, out.String(), errs.String()
}

// module is an empty folder with a go.mod.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/m\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		below, err := filepath.Rel(dir, name)
		files[filepath.ToSlash(below)] = read(t, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-nonsense"}, {"spec"}, {"-spec"}, {"-check=perhaps"}, {"-spec", "a", "b"}} {
		code, stdout, stderr := specc(args...)
		if code != 2 || stderr == "" || stdout != "" {
			t.Errorf("specc %q exits with %d and says %q", args, code, stderr)
		}
	}
}

func TestFolders(t *testing.T) {
	t.Parallel()
	empty, noPage, homeless := module(t), module(t), t.TempDir()
	if err := os.Mkdir(filepath.Join(noPage, "types.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(module(t), "gen")
	for _, c := range []struct{ name, spec, out, says string }{
		{"missing", filepath.Join(empty, "none"), out, "no such file or directory"},
		{"without pages", empty, out, "has no pages (*.md)"},
		{"a page that cannot be read", noPage, out, "types.md: is a directory"},
		{"a file", "main.go", out, "not a directory"},
		{"output in no module", "testdata/good", filepath.Join(homeless, "gen"), "is in no Go module; create a go.mod above it"},
		{"output that is a file", "testdata/good", "main.go/gen", "not a directory"},
	} {
		code, stdout, stderr := specc("-spec", c.spec, "-out", c.out)
		if code != 1 || !strings.Contains(stderr, c.says) || stdout != "" {
			t.Errorf("%s: exits with %d and says %q; want %q", c.name, code, stderr, c.says)
		}
	}
	if entries, err := os.ReadDir(homeless); err != nil || len(entries) > 0 {
		t.Errorf("it wrote outside a module: %v %v", entries, err)
	}
}

func TestModuleWithoutName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("go 1.26\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := specc("-spec", "testdata/good", "-out", filepath.Join(dir, "gen"))
	if code != 1 || !strings.Contains(stderr, "has no module line") {
		t.Errorf("exits with %d and says %q", code, stderr)
	}
}

// TestMistakes: all are told, nothing is written, and what was there stays.
func TestMistakes(t *testing.T) {
	t.Parallel()
	dir := module(t)
	spec, out := filepath.Join(dir, "spec"), filepath.Join(dir, "gen")
	if err := os.CopyFS(spec, os.DirFS("testdata/good")); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := specc("-spec", spec, "-out", out); code != 0 {
		t.Fatal(stderr)
	}
	before := tree(t, dir)
	page, want := read(t, "testdata/bad/several-at-once.md"), read(t, "testdata/bad/several-at-once.want")
	if err := os.WriteFile(filepath.Join(spec, "zones.md"), []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	var says strings.Builder
	for _, line := range strings.SplitAfter(strings.TrimSuffix(want, "\n"), "\n") {
		says.WriteString(filepath.Join(spec, line))
	}
	for _, args := range [][]string{{}, {"-check"}} {
		code, stdout, stderr := specc(append(args, "-spec", spec, "-out", out)...)
		if code != 1 || stdout != "" || !strings.HasPrefix(stderr, says.String()) || !strings.HasSuffix(stderr, "; nothing written\n") {
			t.Errorf("exits with %d and says\n%s", code, stderr)
		}
	}
	after := tree(t, dir)
	delete(after, "spec/zones.md")
	if len(after) != len(before) {
		t.Errorf("there are %d files, and there were %d", len(after), len(before))
	}
	for name, text := range before {
		if after[name] != text {
			t.Errorf("%s is another", name)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	dir := module(t)
	out := filepath.Join(dir, "gen")
	args := []string{"-spec", "testdata/good", "-out", out}
	check := append([]string{"-check"}, args...)

	code, _, stderr := specc(check...)
	if code != 1 || !strings.Contains(stderr, "openapi.json is missing") {
		t.Errorf("an empty folder: exits with %d and says %q", code, stderr)
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("-check writes: %v", err)
	}
	if code, stdout, stderr := specc(args...); code != 0 || !strings.Contains(stdout, ", 0 removed") {
		t.Fatalf("exits with %d: %s%s", code, stdout, stderr)
	}
	if code, _, stderr := specc(check...); code != 0 {
		t.Errorf("what was written differs: %s", stderr)
	}

	stale := filepath.Join("wire", "old.gen.go")
	for name, text := range map[string]string{
		"openapi.json":                         "{}",
		stale:                                  marker + " from spec/*.md. DO NOT EDIT.\n\npackage wire\n",
		filepath.Join("wire", "hand.gen.go"):   "package wire\n",
		filepath.Join("wire", "handmade.go"):   "package wire\n",
		filepath.Join("problem", "README.txt"): "not ours\n",
	} {
		if err := os.WriteFile(filepath.Join(out, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(out, "contract", "corpus.json")); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	code, _, stderr = specc(check...)
	want := "specc: " + out + " is not what the spec says; run make generate (contract/corpus.json is missing, openapi.json differs, " + stale + " is stale)\n"
	if code != 1 || stderr != want {
		t.Errorf("exits with %d and says\n%swant\n%s", code, stderr, want)
	}
	for name, text := range tree(t, dir) {
		if before[name] != text {
			t.Errorf("-check changes %s", name)
		}
	}

	code, stdout, stderr := specc(args...)
	if code != 0 || !strings.Contains(stdout, "2 changed, 1 removed") {
		t.Errorf("exits with %d and says %s%s", code, stdout, stderr)
	}
	after := tree(t, out)
	if _, there := after["wire/old.gen.go"]; there {
		t.Error("a generated file that nothing asks for is still there")
	}
	for _, name := range []string{"wire/hand.gen.go", "wire/handmade.go", "problem/README.txt"} {
		if _, there := after[name]; !there {
			t.Errorf("%s is not generated, and it is gone", name)
		}
	}
}

// TestDeterministic: the same pages give the same bytes, in another folder too,
// and a second run changes nothing.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"testdata/good", specDir} {
		first, second := module(t), module(t)
		for _, dir := range []string{first, second, first} {
			code, stdout, stderr := specc("-spec", spec, "-out", filepath.Join(dir, "gen"))
			if code != 0 {
				t.Fatal(stderr)
			}
			if dir == first && len(tree(t, second)) > 1 && !strings.Contains(stdout, " 0 changed, 0 removed") {
				t.Errorf("a second run says %s", stdout)
			}
		}
		a, b := tree(t, first), tree(t, second)
		if len(a) != len(b) {
			t.Errorf("%d files, and then %d", len(a), len(b))
		}
		for name, text := range a {
			if b[name] != text {
				t.Errorf("%s comes out in two ways", name)
			}
			if strings.HasSuffix(name, ".go") && !bytes.HasPrefix([]byte(text), []byte("// Code generated by ")) && !strings.Contains(text, "\n// Code generated by ") {
				t.Errorf("%s does not say that it is generated", name)
			}
		}
	}
}

// TestGenerated holds gen against the spec, as make check does.
func TestGenerated(t *testing.T) {
	t.Parallel()
	if code, _, stderr := specc("-check", "-spec", specDir, "-out", "../../gen"); code != 0 {
		t.Error(stderr)
	}
}

// TestLongRepeats: a pattern may repeat more often than package regexp allows.
func TestLongRepeats(t *testing.T) {
	t.Parallel()
	pages, err := readPages("testdata/good")
	if err != nil {
		t.Fatal(err)
	}
	const key = "| idempotencyKey | Key | yes | |\n"
	pages["yards.md"] = strings.Replace(pages["yards.md"], key, "| note | string | | at most 4096 characters; matches `^[a-z]{1,4096}$` |\n"+key, 1)
	if list := said(pages); len(list) > 0 {
		t.Fatal(list)
	}
	mustEmit(t, parseSpec(pages, &mistakes{}))
}
