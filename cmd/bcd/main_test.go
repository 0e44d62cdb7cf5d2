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

// bcd is the program, built with the race detector. A test of this package
// knows of it what a user knows: flags, environment, output, exit code,
// signals, files and TLS.
var bcd string

// bcserver builds the server that it joins, once a test needs it.
var bcserver func() (string, error)

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
	dir, err := os.MkdirTemp("", "bcd-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { // some tests run it as another user
		return 1, err
	}
	if bcd, err = build(dir, "bcd"); err != nil {
		return 1, err
	}
	bcserver = sync.OnceValues(func() (string, error) { return build(dir, "bcserver") })
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

func build(dir, name string) (string, error) {
	program := filepath.Join(dir, name)
	args := append(append([]string{"build"}, raceFlag...), "-o", program, "../"+name)
	if text, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, text)
	}
	return program, nil
}
