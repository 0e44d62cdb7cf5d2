package main

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// A machine is where a run took place, and with what.
type machine struct {
	CPU      string            `json:"cpu"`
	Cores    int               `json:"cores"`
	MemoryMB int               `json:"memoryMb"`
	OS       string            `json:"os"`
	Go       string            `json:"go"`
	Versions map[string]string `json:"versions"` // of the peers and of what both sides stand on
}

// reported are the modules whose versions belong to a result.
var reported = []string{
	"github.com/getkin/kin-openapi",
	"github.com/go-faster/jx",
	"github.com/lib/pq",
	"github.com/oapi-codegen/nethttp-middleware",
	"github.com/oapi-codegen/oapi-codegen/v2",
	"github.com/oapi-codegen/runtime",
	"github.com/ogen-go/ogen",
	"github.com/uptrace/bun",
	"modernc.org/sqlite",
}

func thisMachine() machine {
	m := machine{
		CPU:      field("/proc/cpuinfo", "model name"),
		Cores:    runtime.NumCPU(),
		OS:       runtime.GOOS + "/" + runtime.GOARCH,
		Go:       runtime.Version(),
		Versions: map[string]string{},
	}
	if kilobytes, err := strconv.Atoi(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB")); err == nil {
		m.MemoryMB = kilobytes / 1024
	}
	if name := strings.Trim(field("/etc/os-release", "PRETTY_NAME"), `"`); name != "" {
		m.OS = name + ", " + m.OS
	}
	list := append([]string{"list", "-m", "-f", "{{.Path}} {{.Version}}"}, reported...)
	if text, err := exec.Command("go", list...).Output(); err == nil {
		for row := range strings.Lines(string(text)) {
			module, version, _ := strings.Cut(strings.TrimSpace(row), " ")
			m.Versions[module] = version
		}
	}
	if program, err := pgbenchPath(); err == nil {
		if text, err := exec.Command(program, "--version").Output(); err == nil {
			m.Versions["pgbench"] = strings.TrimPrefix(strings.TrimSpace(string(text)), "pgbench ")
		}
	}
	return m
}

// field returns the value of the first line of a file that begins with name,
// or "" where there is none.
func field(file, name string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, found := strings.Cut(strings.Replace(lines.Text(), "=", ":", 1), ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
