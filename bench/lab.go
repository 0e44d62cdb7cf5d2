package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// A lab is what the goals of one run share.
type lab struct {
	dir      string // of this run alone; gone afterwards
	progress io.Writer
	postgres string // URL of a server on which databases may be made; empty: none
	bcserver string // the program, built from the tree that bench stands in
	specc    string
}

const product = "github.com/bettercompute/bettercompute"

func newLab(ctx context.Context, progress io.Writer) (*lab, error) {
	dir, err := os.MkdirTemp("", "bc-bench-")
	if err != nil {
		return nil, err
	}
	l := &lab{
		dir:      dir,
		progress: progress,
		postgres: os.Getenv("BC_TEST_POSTGRES"),
		bcserver: filepath.Join(dir, "bcserver"),
		specc:    filepath.Join(dir, "specc"),
	}
	for program, source := range map[string]string{l.bcserver: "./cmd/bcserver", l.specc: "./tools/specc"} {
		build := exec.CommandContext(ctx, "go", "build", "-o", program, source)
		build.Dir = ".."
		if text, err := build.CombinedOutput(); err != nil {
			return nil, errors.Join(fmt.Errorf("cannot build %s: %w\n%s", source, err, text), os.RemoveAll(dir))
		}
	}
	return l, nil
}

func (l *lab) close() { os.RemoveAll(l.dir) }

// say tells whoever waits what goes on.
func (l *lab) say(format string, args ...any) {
	fmt.Fprintf(l.progress, "bench: "+format+"\n", args...)
}

// folder makes a fresh folder.
func (l *lab) folder(name string) (string, error) { return os.MkdirTemp(l.dir, name+"-") }

// withoutPostgres is the line of a goal that needs what is not there.
func withoutPostgres() []line {
	return []line{{Name: "everything", Result: absentResult, Note: "BC_TEST_POSTGRES is not set; run make bench, which starts a Postgres"}}
}

// pgbenchPath finds pgbench beside the Postgres that .ci/with-postgres starts:
// in PATH, or the newest of Debian's.
func pgbenchPath() (string, error) {
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(initdb); err == nil {
			if beside := filepath.Join(filepath.Dir(real), "pgbench"); executable(beside) {
				return beside, nil
			}
		}
	}
	newest, best := 0, ""
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
	for _, program := range found {
		version, _ := strconv.Atoi(strings.Split(program, "/")[4])
		if version > newest && executable(program) {
			newest, best = version, program
		}
	}
	if best != "" {
		return best, nil
	}
	return exec.LookPath("pgbench")
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
