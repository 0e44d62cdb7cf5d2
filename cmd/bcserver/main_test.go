package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// program is bcserver, built with the race detector. A test of this package
// knows of it what a user knows: flags, environment, output, exit code,
// signals and HTTP.
var program string

// running has, for each process of a test that would outlive it, what ends it:
// an interrupted test runs no cleanup.
var running sync.Map // any → func()

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "bcserver-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // some tests run it as another user
		return 1, err
	}
	program = filepath.Join(dir, "bcserver")
	if text, err := exec.Command("go", append(append([]string{"build"}, raceFlag...), "-o", program, ".")...).CombinedOutput(); err != nil {
		return 1, fmt.Errorf("go build: %w\n%s", err, text)
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		running.Range(func(_, end any) bool {
			end.(func())()
			return true
		})
		os.RemoveAll(dir)
		os.Exit(130)
	}()
	return m.Run(), nil
}
