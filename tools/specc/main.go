// Command specc compiles a folder of spec pages into an OpenAPI document,
// server and client stubs, decoders, a command table, policies and a contract
// corpus. The grammar of the pages is in spec/README.md.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run compiles and returns the exit code: 0 done, 1 the spec or the output is wrong, 2 usage.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("specc", flag.ContinueOnError)
	flags.SetOutput(stderr)
	specDir := flags.String("spec", "spec", "folder with the spec pages")
	outDir := flags.String("out", "gen", "folder to write, inside a Go module")
	fsmDir := flags.String("fsm", "", "folder for the state table of provision.md, a Go package; empty: it is not written")
	checkOnly := flags.Bool("check", false, "write nothing; fail when the folder differs from what the spec says")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "specc: unexpected argument %q\n", flags.Arg(0))
		return 2
	}
	if err := compile(*specDir, *outDir, *fsmDir, *checkOnly, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "specc:", err)
		return 1
	}
	return 0
}

func compile(specDir, outDir, fsmDir string, checkOnly bool, stdout, stderr io.Writer) error {
	pages, err := readPages(specDir)
	if err != nil {
		return err
	}
	wrong := &mistakes{}
	s := parseSpec(pages, wrong)
	if list := wrong.sorted(); len(list) > 0 {
		for _, m := range list {
			fmt.Fprintf(stderr, "%s: %s\n", filepath.Join(specDir, m.at.String()), m.text)
		}
		return fmt.Errorf("mistakes in %s: %d; nothing written", specDir, len(list))
	}
	importPath, err := importPathOf(outDir)
	if err != nil {
		return err
	}
	files, err := emit(s, importPath)
	if err != nil {
		return err
	}
	if err := files.bring(outDir, checkOnly, stdout); err != nil || fsmDir == "" {
		return err
	}
	if files, err = emitMachine(s); err != nil {
		return err
	}
	return files.bring(fsmDir, checkOnly, stdout)
}

func readPages(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	pages := map[string]string{}
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".md" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		pages[entry.Name()] = string(text)
	}
	if len(pages) == 0 {
		return nil, fmt.Errorf("%s has no pages (*.md)", dir)
	}
	return pages, nil
}
