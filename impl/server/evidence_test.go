package server_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// left is what the servers of this run left behind.
var left = &evidence{}

// evidence is a folder of logs, tables, metrics and answers, and the secrets
// that must be in none of them.
type evidence struct {
	dir string

	mu      sync.Mutex
	files   int
	secrets []string
}

// secret records a bearer that was given out.
func (e *evidence) secret(bearer string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.secrets = append(e.secrets, bearer)
}

// privateKey records a P-256 key in PKCS#8.
func (e *evidence) privateKey(der []byte) {
	const head = 36 // bytes that are the same in all of them
	e.secret("ca." + string(der[head:]))
	e.secret("ca." + string(der[head+4:])) // a number may be printed without its leading zeros
}

// open begins a file of evidence.
func (e *evidence) open(t testing.TB, what string) *evidenceFile {
	t.Helper()
	e.mu.Lock()
	e.files++
	name := fmt.Sprintf("%s-%s-%d", plainName(t), what, e.files)
	e.mu.Unlock()
	f, err := os.Create(filepath.Join(e.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return &evidenceFile{file: f, w: bufio.NewWriterSize(f, 1<<16)}
}

// plainName is the name of a test as part of a file's.
func plainName(t testing.TB) string {
	return strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())
}

// scan looks for every secret in every file whose name begins so and says where
// one is.
func (e *evidence) scan(prefix string) (found []string, files int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := newScanner(e.secrets)
	all, err := os.ReadDir(e.dir)
	if err != nil {
		return nil, 0, err
	}
	for _, entry := range all {
		if !strings.HasPrefix(entry.Name(), prefix) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(e.dir, entry.Name()))
		if err != nil {
			return found, files, err
		}
		files++
		for _, f := range s.find(text) {
			found = append(found, fmt.Sprintf("%s at byte %d, as %s", entry.Name(), f.at, f.form))
		}
	}
	return found, files, nil
}

// An evidenceFile is written by many goroutines.
type evidenceFile struct {
	mu   sync.Mutex
	file *os.File
	w    *bufio.Writer
}

// Write implements [io.Writer].
func (f *evidenceFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.w.Write(p)
}

// text is what was written so far.
func (f *evidenceFile) text(t testing.TB) string {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.w.Flush(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (f *evidenceFile) close(t testing.TB) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.w.Flush(); err != nil {
		t.Error(err)
	}
	if err := f.file.Close(); err != nil {
		t.Error(err)
	}
}
