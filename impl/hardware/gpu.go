package hardware

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	smiName    = "nvidia-smi"
	smiTimeout = 20 * time.Second // it starts the driver where nothing else has
	maxOutput  = 64 << 10
)

// gpus returns the UUIDs of the GPUs of both makers.
func (r *reader) gpus(ctx context.Context) []string {
	nvidia, complete := r.nvidia()
	if !complete {
		nvidia = append(nvidia, r.nvidiaSMI(ctx)...)
	}
	return sorted(append(nvidia, r.amd()...))
}

// nvidia reads what the driver says in procfs. It is incomplete where there is
// no such driver, and where a GPU has not been started yet: its UUID is then
// written in question marks.
func (r *reader) nvidia() (uuids []string, complete bool) {
	files, _ := filepath.Glob(filepath.Join(r.roots.Proc, "driver/nvidia/gpus/*/information")) // its only error is of the pattern
	complete = len(files) > 0
	for _, file := range files {
		uuid := gpuUUID(r.raw("", file))
		if uuid == "" || strings.Contains(uuid, "?") {
			complete = false
			continue
		}
		uuids = append(uuids, uuid)
	}
	return uuids, complete
}

// gpuUUID finds the line "GPU UUID: GPU-…".
func gpuUUID(information string) string {
	for line := range strings.Lines(information) {
		name, value, found := strings.Cut(line, ":")
		if found && strings.EqualFold(strings.TrimSpace(name), "GPU UUID") {
			return printable(value)
		}
	}
	return ""
}

// nvidiaSMI asks NVIDIA's own tool, where there is one: with a clean
// environment, and not for ever.
func (r *reader) nvidiaSMI(ctx context.Context) (uuids []string) {
	program := lookIn(r.roots.Path, smiName)
	if program == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, smiTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--query-gpu=uuid", "--format=csv,noheader")
	cmd.Env = []string{"PATH=" + r.roots.Path, "LC_ALL=C"}
	cmd.WaitDelay = time.Second // for what it leaves behind with our pipe
	out := &limited{}
	cmd.Stdout = out
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		r.warn("%s did not answer: %v", program, ctx.Err())
		return nil
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		r.warn("%s: %v: %s", program, err, printable(firstLine(string(out.kept))))
		return nil
	}
	for line := range strings.Lines(string(out.kept)) {
		if uuid := printable(line); uuid != "" {
			uuids = append(uuids, uuid)
		}
	}
	return uuids
}

// lookIn finds a program in absolute folders; never in the working directory.
func lookIn(path, name string) string {
	for _, folder := range filepath.SplitList(path) {
		file := filepath.Join(folder, name)
		if info, err := os.Stat(file); filepath.IsAbs(folder) && err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return file
		}
	}
	return ""
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// amd reads the unique ids that amdgpu has of its cards, in the form in which
// AMD's own tools write them.
func (r *reader) amd() (uuids []string) {
	folder := filepath.Join(r.roots.Sys, "class/drm")
	entries, err := os.ReadDir(folder)
	if err != nil && !absent(err) {
		r.warn("%s cannot be read: %v", folder, cause(err))
	}
	for _, e := range entries {
		number, isCard := strings.CutPrefix(e.Name(), "card")
		if !isCard || strings.Trim(number, "0123456789") != "" { // connectors are there, too
			continue
		}
		text := strings.TrimPrefix(r.text(folder, filepath.Join(e.Name(), "device/unique_id")), "0x")
		if id, err := hex.DecodeString(text); err == nil && len(id) == 8 && [8]byte(id) != [8]byte{} {
			uuids = append(uuids, "GPU-"+hex.EncodeToString(id))
		}
	}
	return uuids
}

// limited keeps the beginning of what is written to it.
type limited struct{ kept []byte }

// Write implements [io.Writer].
func (l *limited) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p[:min(len(p), maxOutput-len(l.kept))]...)
	return len(p), nil
}
