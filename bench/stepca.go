package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// The certificate authority that our joins are compared with.
const (
	stepCAModule  = "github.com/smallstep/certificates"
	stepCAVersion = "v0.30.2"
	stepCAStart   = 30 * time.Second // within which it has to be healthy
)

// installStepCA builds step-ca as its users do, and returns the program. It
// stays out of every go.mod: go install takes all versions from the module itself.
func (l *lab) installStepCA(ctx context.Context) (string, error) {
	command := exec.CommandContext(ctx, "go", "install", stepCAModule+"/cmd/step-ca@"+stepCAVersion)
	command.Dir = l.dir
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOBIN="+l.dir, "GOFLAGS=", "GOWORK=off")
	if text, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build step-ca: %w\n%s", err, shortened(text))
	}
	return filepath.Join(l.dir, "step-ca"), nil
}

// A stepCA is a running step-ca, and what it takes to be certified by it.
type stepCA struct {
	*target
	provisioner *provisioner
}

// A stepCADatabase is the part of its configuration that says where step-ca
// keeps its rows. On badgerv2 every commit is synced to the disk, as it comes.
type stepCADatabase struct {
	Type       string `json:"type"`
	DataSource string `json:"dataSource"`
}

// serveStepCA starts step-ca with an authority and a provisioner of its own, and
// everything else as it comes, and waits until it is healthy.
func (l *lab) serveStepCA(ctx context.Context, program string, db stepCADatabase) (*stepCA, error) {
	dir, err := l.folder("step-ca")
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	if db.DataSource == "" {
		db.DataSource = filepath.Join(dir, "db")
	}
	roots, err := writeAuthority(dir)
	if err != nil {
		return nil, err
	}
	provisioner, err := newProvisioner("https://" + address + signPath)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"root":      filepath.Join(dir, rootFile),
		"crt":       filepath.Join(dir, intermediateFile),
		"key":       filepath.Join(dir, intermediateKeyFile),
		"address":   address,
		"dnsNames":  []string{"127.0.0.1"},
		"logger":    map[string]string{"format": "text"}, // as step ca init writes it
		"db":        db,
		"authority": map[string]any{"provisioners": []any{provisioner.config()}},
	})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "ca.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return nil, err
	}
	p, err := startStepCA(ctx, program, dir, file, address)
	if err != nil {
		return nil, err
	}
	ca := &stepCA{newTarget(p, roots, http.StatusCreated), provisioner}
	if err := ca.healthy(ctx); err != nil {
		text, _ := os.ReadFile(filepath.Join(dir, "log"))
		return nil, errors.Join(fmt.Errorf("step-ca did not start: %w\n%s", err, shortened(text)), p.stop())
	}
	return ca, nil
}

func startStepCA(ctx context.Context, binary, dir, config, address string) (*program, error) {
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command := exec.CommandContext(ctx, binary, config)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 15 * time.Second
	command.Env = append(os.Environ(), "STEPPATH="+dir)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return nil, err
	}
	p := &program{command: command, address: address, ended: make(chan error, 1)}
	go func() { p.ended <- command.Wait() }()
	return p, nil
}

// healthy waits until the server says so.
func (ca *stepCA) healthy(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+ca.address+"/health", nil)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(stepCAStart)
	for {
		err := ca.ask(request, http.StatusOK)
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		select {
		case ended := <-ca.ended:
			ca.ended <- ended // for stop
			return errors.Join(errUnexpected, ended)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// freeAddress is a loopback address that nobody listens on: step-ca has to be
// told its own, which its tokens name.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
