// Package hardware reads what tells one machine from another: the claims that a
// daemon makes of its machine when it joins (NJ-4).
package hardware

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
)

// Claims are what a machine says of itself, in the form of the API. What it has
// not, or may not read, is absent. Nothing is decided here: a placeholder is
// claimed as the firmware has it, and the server knows it for one.
type Claims struct {
	ProductUUID string   `json:"productUuid,omitempty"`
	Serial      string   `json:"serial,omitempty"`
	MACs        []string `json:"macs,omitempty"`     // permanent, of physical interfaces; sorted
	GPUUUIDs    []string `json:"gpuUuids,omitempty"` // sorted
	Hostname    string   `json:"hostname,omitempty"`
	Environment string   `json:"environment,omitempty"`
}

// Roots are where a machine is read.
type Roots struct {
	Sys  string // where sysfs is: /sys
	Proc string // where procfs is: /proc
	Run  string // where a pod has its service account: /var/run
	Path string // the folders in which nvidia-smi is looked for, as in $PATH

	InCluster bool // the environment names a Kubernetes API server
	Hostname  func() (string, error)
	// Permanent returns the permanent addresses of the interfaces that the
	// kernel knows one of, by name; nil: none.
	Permanent func() (map[string]net.HardwareAddr, error)
}

// Host are the roots of the machine itself.
func Host() Roots {
	return Roots{
		Sys: "/sys", Proc: "/proc", Run: "/var/run", Path: os.Getenv("PATH"),
		InCluster: os.Getenv("KUBERNETES_SERVICE_HOST") != "",
		Hostname:  os.Hostname,
		Permanent: permanentAddresses,
	}
}

// Collect reads the claims of a machine. Each warning is a sentence about
// something that is there and could not be read, most often since only root may.
func Collect(ctx context.Context, roots Roots) (claims Claims, warnings []string) {
	r := &reader{roots: roots}
	claims.ProductUUID = fit(r.text(roots.Sys, "class/dmi/id/product_uuid"), func(v string) Claims { return Claims{ProductUUID: v} })
	claims.Serial = fit(r.serial(), func(v string) Claims { return Claims{Serial: v} })
	claims.MACs = fitList(r.macs(), func(v []string) Claims { return Claims{MACs: v} })
	claims.GPUUUIDs = fitList(r.gpus(ctx), func(v []string) Claims { return Claims{GPUUUIDs: v} })
	name, err := roots.Hostname()
	if err != nil {
		r.warn("the host name cannot be read: %v", err)
	}
	claims.Hostname = fit(printable(name), func(v string) Claims { return Claims{Hostname: v} })
	claims.Environment = r.environment()
	return claims, r.warnings
}

// A reader reads one machine once.
type reader struct {
	roots    Roots
	warnings []string
}

func (r *reader) warn(format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf(format, args...))
}

// serial is that of the system. Where firmware leaves it empty it is that of
// the chassis, which a label shows too; the one of the board is no fallback: a
// board is a spare part, and takes its serial with it. Others who identify
// machines by one serial take the system's alone (MAAS, Ironic's agent); those
// who fall back do so for empty fields, as here, or by a list of placeholders,
// which is the server's to judge. A serial that is there and may not be read
// has no substitute, so that root and others do not claim different things.
func (r *reader) serial() string {
	read := len(r.warnings)
	serial := r.text(r.roots.Sys, "class/dmi/id/product_serial")
	if serial == "" && len(r.warnings) == read {
		serial = r.text(r.roots.Sys, "class/dmi/id/chassis_serial")
	}
	return serial
}

// environment only tells an operator where the daemon runs; the server trusts
// the token, never this (JT-40).
func (r *reader) environment() string {
	if _, err := os.Stat(filepath.Join(r.roots.Run, "secrets/kubernetes.io/serviceaccount/token")); err == nil || r.roots.InCluster {
		return "kubernetes"
	}
	return "host"
}

// maxFile is more than any file of sysfs or procfs that is read here has.
const maxFile = 16 << 10

// text returns a file's text made printable, "" where there is none.
func (r *reader) text(root, name string) string { return printable(r.raw(root, name)) }

// raw returns a file as it is, "" where there is none.
func (r *reader) raw(root, name string) string {
	file := filepath.Join(root, name)
	text, err := readFile(file)
	if err != nil && !absent(err) {
		hint := ""
		if errors.Is(err, fs.ErrPermission) {
			hint = "; run as root to claim what it says"
		}
		r.warn("%s cannot be read: %v%s", file, cause(err), hint)
	}
	return text
}

func readFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	return string(text), err
}

// cause is an error without the path that the message has already.
func cause(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// sorted returns values in order, each once, so that two reads of one machine
// claim the same: changed claims void an approval (JR-4).
func sorted(values []string) []string {
	slices.Sort(values)
	return slices.Compact(values)
}
