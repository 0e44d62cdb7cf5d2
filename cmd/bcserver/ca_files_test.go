package main_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/ca"
)

// writeCA makes a folder for --ca-dir.
func writeCA(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	materials, err := ca.Generate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range materials {
		name := m.Name
		if name == ca.Root {
			name = "ca"
		} else {
			writePEM(t, filepath.Join(dir, name+".key"), "PRIVATE KEY", m.Key.Reveal())
		}
		writePEM(t, filepath.Join(dir, name+".pem"), "CERTIFICATE", m.Certificate)
	}
}
