package hardware_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/hardware"
)

// A machine is a tree of files that looks like one.
type machine struct {
	hardware.Roots
	t testing.TB
}

func newMachine(t testing.TB) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{t: t, Roots: hardware.Roots{
		Sys: filepath.Join(dir, "sys"), Proc: filepath.Join(dir, "proc"), Run: filepath.Join(dir, "run"), Path: filepath.Join(dir, "bin"),
		Hostname: func() (string, error) { return "rack7-u12", nil },
	}}
	return m
}

// file writes one below a root.
func (m *machine) file(root, name, text string) {
	m.t.Helper()
	file := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) dmi(name, text string) { m.file(m.Sys, "class/dmi/id/"+name, text) }

// nic adds an interface with files such as address=…
func (m *machine) nic(name string, files map[string]string) {
	for file, text := range files {
		m.file(m.Sys, filepath.Join("class/net", name, file), text+"\n")
	}
}

// card makes the files of a physical interface whose address is its own.
func card(address string) map[string]string {
	return map[string]string{"address": address, "addr_assign_type": "0", "device/vendor": "0x8086"}
}

func with(files map[string]string, name, text string) map[string]string {
	files[name] = text
	return files
}

// smi puts a program in the place of nvidia-smi.
func (m *machine) smi(script string) {
	m.t.Helper()
	m.file(m.Path, "nvidia-smi", "#!/bin/sh\nPATH=/usr/bin:/bin\n"+script)
	if err := os.Chmod(filepath.Join(m.Path, "nvidia-smi"), 0o755); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) collect() (hardware.Claims, []string) {
	return hardware.Collect(m.t.Context(), m.Roots)
}

// claims collects where nothing is to be warned of.
func (m *machine) claims() hardware.Claims {
	m.t.Helper()
	claims, warnings := m.collect()
	if len(warnings) > 0 {
		m.t.Errorf("warnings %q", warnings)
	}
	return claims
}

// unreadable makes a file that cannot be read, also for root: a folder.
func (m *machine) unreadable(root, name string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
		m.t.Fatal(err)
	}
}

func wantList(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func permanent(known map[string]string) func() (map[string]net.HardwareAddr, error) {
	return func() (map[string]net.HardwareAddr, error) {
		addresses := map[string]net.HardwareAddr{}
		for name, text := range known {
			address, err := net.ParseMAC(text)
			if err != nil {
				return nil, err
			}
			addresses[name] = address
		}
		return addresses, nil
	}
}

var errKernel = errors.New("the kernel is busy")
