package server_test

import (
	"fmt"
	"os"
	"testing"
)

// TestMain runs the package and then holds everything that its servers left
// behind against every secret that they ever gave out (issue 2, "What it must show" 5).
func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "secret scan:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "bc-evidence-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	left.dir = dir
	code = m.Run()
	found, _, err := left.scan("")
	if err != nil {
		return code, err
	}
	for _, f := range found {
		fmt.Fprintln(os.Stderr, "secret scan: a secret was left behind:", f)
	}
	if len(found) > 0 {
		code = max(code, 1)
	}
	return code, nil
}
