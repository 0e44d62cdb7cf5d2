package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestElsewhere compiles a spec of somebody else, in a module of their own: the
// result builds, its decoders hold its corpus, its client and server understand
// each other, and a method that is added to a
// page is all that the server then lacks.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds all generated packages")
	}
	e := newElsewhere(t)
	e.specc()
	if out, err := e.command("go", "vet", "./..."); err != nil {
		t.Fatalf("what specc wrote does not build: %v\n%s", err, out)
	}
	if out, err := e.command("go", "test", "."); err != nil {
		t.Errorf("its decoders break its corpus, or its client is not what its server needs: %v\n%s", err, out)
	}

	page := filepath.Join(e.dir, "spec", "yards.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	e.write("spec/yards.md", addMethod(t, string(text), "get", "peek"))
	e.specc()
	out, err := e.command("go", "build", "./...")
	if err == nil {
		t.Fatal("the server builds without the new method")
	}
	var wrong []string
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if !strings.HasPrefix(line, "#") {
			wrong = append(wrong, line)
		}
	}
	missing := regexp.MustCompile(`^\./server\.go:\d+:\d+: cannot use yards\{\} .* as api\.Yards value in struct literal: yards does not implement api\.Yards \(missing method Peek\)$`)
	if len(wrong) != 1 || !missing.MatchString(wrong[0]) {
		t.Errorf("the build must fail with the missing method Peek alone; it says\n%s", out)
	}
}

// elsewhere is a module that is not ours.
type elsewhere struct {
	t   *testing.T
	dir string
}

func newElsewhere(t *testing.T) *elsewhere {
	t.Helper()
	e := &elsewhere{t, t.TempDir()}
	if err := os.CopyFS(filepath.Join(e.dir, "spec"), os.DirFS("testdata/good")); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	const ours = "github.com/bettercompute/bettercompute"
	theirs := strings.Replace(string(module), "module "+ours, "module example.com/elsewhere", 1)
	e.write("go.mod", theirs+"\nrequire "+ours+" v0.0.0\n\nreplace "+ours+" => "+root+"\n")
	for from, to := range map[string]string{
		"../../go.sum":                          "go.sum",
		"testdata/elsewhere/server.go.txt":      "server.go",
		"testdata/elsewhere/corpus_test.go.txt": "corpus_test.go",
		"testdata/elsewhere/calls_test.go.txt":  "calls_test.go",
	} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		e.write(to, string(text))
	}
	return e
}

func (e *elsewhere) write(name, text string) {
	e.t.Helper()
	if err := os.WriteFile(filepath.Join(e.dir, name), []byte(text), 0o644); err != nil {
		e.t.Fatal(err)
	}
}

func (e *elsewhere) specc() {
	e.t.Helper()
	var stderr strings.Builder
	if code := run([]string{"-spec", filepath.Join(e.dir, "spec"), "-out", filepath.Join(e.dir, "gen")}, io.Discard, &stderr); code != 0 {
		e.t.Fatalf("specc exits with %d:\n%s", code, &stderr)
	}
}

// command runs a go command in the module, with what the module cache holds.
func (e *elsewhere) command(name string, args ...string) (string, error) {
	command := exec.Command(name, args...)
	command.Dir = e.dir
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	out, err := command.CombinedOutput()
	return string(out), err
}

// addMethod adds a copy of a method of a page under another name.
func addMethod(t *testing.T, page, name, added string) string {
	t.Helper()
	row := regexp.MustCompile(`(?m)^\| ` + name + ` \|.*\n`).FindString(page)
	section := regexp.MustCompile(`(?s)\n## ` + name + `\n.*?\n(## )`).FindString(page)
	if row == "" || section == "" {
		t.Fatalf("the page has no method %s", name)
	}
	section = strings.TrimSuffix(section, "## ")
	rename := strings.NewReplacer("| "+name+" |", "| "+added+" |", "\n## "+name+"\n", "\n## "+added+"\n", "/"+name+"`", "/"+added+"`")
	page = strings.Replace(page, row, row+rename.Replace(row), 1)
	return strings.Replace(page, section, section+rename.Replace(section), 1)
}
