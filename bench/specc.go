package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const (
	speccOperations = 320
	speccBound      = 30 // seconds
)

// speccGoal: generate and build the packages of a spec with 320 operations. The
// compiler itself and what the packages import are built beforehand.
func speccGoal(ctx context.Context, l *lab) ([]line, error) {
	dir, err := l.folder("specc")
	if err != nil {
		return nil, err
	}
	operations, err := syntheticModule(dir)
	if err != nil {
		return nil, err
	}
	// The imports, so that only what was generated is built below.
	warm := exec.CommandContext(ctx, "go", "build", "./gen/...", "./impl/strictjson")
	warm.Dir = ".."
	if text, err := warm.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w\n%s", err, text)
	}
	took, worked := map[string]float64{}, map[string]float64{}
	for _, step := range [][]string{
		{l.specc, "-spec", "spec", "-out", "gen"},
		{"go", "build", "-mod=mod", "./..."},
	} {
		command := exec.CommandContext(ctx, step[0], step[1:]...)
		command.Dir = dir
		began := time.Now()
		if text, err := command.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", strings.Join(step, " "), err, shortened(text))
		}
		took[step[0]] = time.Since(began).Seconds()
		worked[step[0]] = (command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Seconds()
	}
	generate, build := took[l.specc], took["go"]
	return []line{bounded("generate and build, against 30 s", seconds, generate+build, speccBound, atMost("1", 1)).
		withNote("%d operations; generate %.1f s (%.1f s of processor time), build %.1f s (%.1f s)",
			operations, generate, worked[l.specc], build, worked["go"])}, nil
}

func shortened(text []byte) []byte { return text[:min(len(text), 2000)] }

var syntheticMethod = regexp.MustCompile(`(?m)^\| [a-zA-Z]+ \| (mutation|read) \|`)

// syntheticModule makes a module whose spec is ours and copies of joinTokens
// under other names, until there are enough operations. The module has a name of
// its own, so that no build of it was ever kept.
func syntheticModule(dir string) (operations int, err error) {
	spec := filepath.Join(dir, "spec")
	if err := os.CopyFS(spec, os.DirFS(filepath.Join("..", "spec"))); err != nil {
		return 0, err
	}
	pages, err := filepath.Glob(filepath.Join(spec, "*.md"))
	if err != nil {
		return 0, err
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return 0, err
		}
		operations += len(syntheticMethod.FindAll(text, -1))
	}
	model, err := os.ReadFile(filepath.Join(spec, "joinTokens.md"))
	if err != nil {
		return 0, err
	}
	roles, err := os.ReadFile(filepath.Join(spec, "roles.md"))
	if err != nil {
		return 0, err
	}
	each := len(syntheticMethod.FindAll(model, -1))
	if each == 0 {
		return 0, errors.New("spec/joinTokens.md has no methods")
	}
	for n := 1; operations < speccOperations; n++ {
		page, grants := syntheticPage(string(model), string(roles), n)
		if err := os.WriteFile(filepath.Join(spec, syntheticName(n)+"Tokens.md"), []byte(page), 0o644); err != nil {
			return 0, err
		}
		roles = append(roles, grants...)
		operations += each
	}
	return operations, errors.Join(
		os.WriteFile(filepath.Join(spec, "roles.md"), roles, 0o644),
		syntheticGoMod(dir),
	)
}

// syntheticPage is joinTokens as another group, and the rows of roles.md that
// give its actions to roles.
func syntheticPage(model, roles string, n int) (page, grants string) {
	name := syntheticName(n)
	rename := strings.NewReplacer(
		"joinTokens", name+"Tokens",
		"join-tokens", name+"-tokens",
		"security.join-token.", "security."+name+"-token.",
	)
	page = rename.Replace(model)
	// The answers keep their field, which is named like the group.
	page = strings.ReplaceAll(page, "| "+name+"Tokens | array of", "| joinTokens | array of")
	page = strings.ReplaceAll(page, `"`+name+`Tokens": [`, `"joinTokens": [`)
	for row := range strings.Lines(roles) {
		if strings.HasPrefix(row, "| compute:join-tokens:") {
			grants += rename.Replace(row)
		}
	}
	return page, grants
}

// syntheticName is a word of its own for each n, without digits.
func syntheticName(n int) string {
	return fmt.Sprintf("synth%c%c", 'a'+n/26, 'a'+n%26)
}

// syntheticGoMod asks for the product as it stands here, and for all that it
// asks for.
func syntheticGoMod(dir string) error {
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return err
	}
	mod := strings.Replace(string(text), "module "+product, "module synthetic.test/"+strings.ToLower(rand.Text()), 1)
	mod += fmt.Sprintf("\nrequire %s v0.0.0-00010101000000-000000000000\n\nreplace %s => %s\n", product, product, root)
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644),
		os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644),
	)
}
