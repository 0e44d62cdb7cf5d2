package hardware_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bettercompute/bettercompute/impl/hardware"
)

const (
	gpuA = "GPU-13fd0930-06c3-5975-8720-72c72ee7a823"
	gpuB = "GPU-e1924eea-b9bb-d537-39f2-b345087fa145"
)

func (m *machine) nvidia(bus, uuid string) {
	m.file(m.Proc, "driver/nvidia/gpus/"+bus+"/information", "Model: \t\t NVIDIA H100\nIRQ:   \t\t 16\nGPU UUID: \t "+uuid+"\nVideo BIOS: \t 96.00\n")
}

// TestGPUs_OfTheDriver holds that procfs is enough where the driver knows all,
// and that no program is run then.
func TestGPUs_OfTheDriver(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.nvidia("0000:3b:00.0", gpuB)
	m.nvidia("0000:5e:00.0", gpuA)
	m.smi("touch " + filepath.Join(m.Path, "called"))
	wantList(t, "GPUs", m.claims().GPUUUIDs, gpuA, gpuB)
	if _, err := os.Stat(filepath.Join(m.Path, "called")); err == nil {
		t.Error("nvidia-smi was called")
	}
}

// TestGPUs_OfNvidiaSMI holds that it is asked where procfs says nothing, or
// not all yet, with a clean environment.
func TestGPUs_OfNvidiaSMI(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.smi(`env >"` + m.Path + `/env"; printf '%s\n' "$@" >"` + m.Path + `/args"; printf '` + gpuA + `\n` + gpuB + `\n'`)
	wantList(t, "GPUs", m.claims().GPUUUIDs, gpuA, gpuB)
	args, err := os.ReadFile(filepath.Join(m.Path, "args"))
	if err != nil || string(args) != "--query-gpu=uuid\n--format=csv,noheader\n" {
		t.Errorf("called with %q, %v", args, err)
	}
	env, err := os.ReadFile(filepath.Join(m.Path, "env"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(env)) {
		if name, _, _ := strings.Cut(line, "="); name != "PATH" && name != "LC_ALL" && name != "PWD" && name != "_" && name != "SHLVL" && name != "OLDPWD" {
			t.Errorf("its environment has %s", line)
		}
	}
	m.nvidia("0000:3b:00.0", "GPU-????????-????-????-????-????????????")
	m.nvidia("0000:5e:00.0", gpuA)
	wantList(t, "GPUs", m.claims().GPUUUIDs, gpuA, gpuB)
}

// TestGPUs_NvidiaSMIMayFail holds that a failure is a warning, what it writes
// besides is no UUID, and that it is not found in relative folders.
func TestGPUs_NvidiaSMIMayFail(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.smi("echo 'NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.'; exit 9")
	got, warnings := m.collect()
	wantList(t, "GPUs", got.GPUUUIDs)
	if len(warnings) != 1 || !strings.Contains(warnings[0], "could not communicate") || !strings.Contains(warnings[0], "exit status 9") {
		t.Errorf("warnings %q", warnings)
	}

	m.smi("printf 'No devices were found\\n\\nGPU-1\\nMIG-13fd0930-06c3-5975-8720-72c72ee7a823\\n" + gpuA + "\\n'")
	wantList(t, "GPUs", m.claims().GPUUUIDs, gpuA)

	m.smi("head -c 10000000 /dev/zero | tr '\\0' x")
	wantList(t, "GPUs", m.claims().GPUUUIDs)

	if err := os.Chmod(filepath.Join(m.Path, "nvidia-smi"), 0o644); err != nil {
		t.Fatal(err)
	}
	wantList(t, "GPUs", m.claims().GPUUUIDs)
	m.Path = ".:" + strings.TrimPrefix(m.Path, "/") + ":"
	wantList(t, "GPUs", m.claims().GPUUUIDs)
}

// TestGPUs_NvidiaSMIMayHang holds that nobody waits for it once it is too late.
func TestGPUs_NvidiaSMIMayHang(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	called := filepath.Join(t.TempDir(), "called")
	if err := syscall.Mkfifo(called, 0o600); err != nil {
		t.Fatal(err)
	}
	m.smi("echo >" + called + "; exec sleep 1000")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		if f, err := os.Open(called); err == nil { // which waits until it was called
			f.Close()
		}
	}()
	got, warnings := hardware.Collect(ctx, m.Roots)
	wantList(t, "GPUs", got.GPUUUIDs)
	if len(warnings) != 1 || !strings.Contains(warnings[0], "did not answer") {
		t.Errorf("warnings %q", warnings)
	}
}

// TestGPUs_OfAMD holds that the unique ids of cards are claimed, not those of
// connectors, and each once.
func TestGPUs_OfAMD(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for name, id := range map[string]string{
		"card0": "5AB32C7E97EF5251", "card1": "0x76c2b4d0e8f3a1b5", "card2": "5ab32c7e97ef5251", "card3": "0000000000000000",
		"card4": "5ab32c7e", "card5": "not a number at", "card6": "", "card0-HDMI-A-1": "1111111111111111", "renderD128": "2222222222222222", "cardigan": "3333333333333333",
	} {
		m.file(m.Sys, "class/drm/"+name+"/device/unique_id", id+"\n")
	}
	m.file(m.Sys, "class/drm/card7/device/vendor", "0x10de\n")
	wantList(t, "GPUs", m.claims().GPUUUIDs, "GPU-5ab32c7e97ef5251", "GPU-76c2b4d0e8f3a1b5")
}
