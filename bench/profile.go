package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// profiled builds bcserver with one more file, which takes a CPU profile from one
// SIGUSR1 to the next. The product itself has nothing of it.
func (l *lab) profiled(ctx context.Context) (binary string, err error) {
	source, err1 := filepath.Abs(filepath.Join("overlay", "profile.go.txt"))
	root, err2 := filepath.Abs("..")
	if err := errors.Join(err1, err2); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(root, "cmd", "bcserver", "profile.go"): source,
	}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(l.dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o644); err != nil {
		return "", err
	}
	binary = filepath.Join(l.dir, "bcserver-profiled")
	build := exec.CommandContext(ctx, "go", "build", "-overlay", file, "-o", binary, "./cmd/bcserver")
	build.Dir = root
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build a bcserver to profile: %w\n%s", err, shortened(text))
	}
	return binary, nil
}

// told are the functions that a summary names: those of the rooms that let a
// machine join, and the handshake beside them.
var told = regexp.MustCompile(`^(` + regexp.QuoteMeta(product) + `/impl/(attest|ca|csr|nodes|store)\.[^\[]*[a-zA-Z]|crypto/tls\.\(\*Conn\)\.serverHandshake)$`)

const toldRows = 12

// profileVariable tells a profiled bcserver which file to write.
const profileVariable = "BC_BENCH_PROFILE"

// profile writes a CPU profile of the server while it is under a load, and
// says how much of its time it spent in, and below, which functions.
func profile(ctx context.Context, t *target, binary, file string, during func() error) (summary string, err error) {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := t.command.Process.Signal(syscall.SIGUSR1); err != nil {
		return "", err
	}
	if err := errors.Join(during(), t.command.Process.Signal(syscall.SIGUSR1)); err != nil {
		return "", err
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			break
		} else if time.Now().After(deadline) {
			return "", err
		}
	}
	text, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-cum", binary, file).Output()
	if err != nil {
		return "", fmt.Errorf("go tool pprof: %w", err)
	}
	var most []string
	for row := range strings.Lines(string(text)) {
		fields := strings.Fields(row) // flat, flat%, sum%, cum, cum%, name
		if len(fields) >= 6 && told.MatchString(fields[5]) && len(most) < toldRows {
			most = append(most, fmt.Sprintf("%s %s", path.Base(fields[5]), fields[4]))
		}
	}
	return strings.Join(most, ", "), nil
}
