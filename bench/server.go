package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The things that every database of a run has, besides its tokens.
const (
	tenant = "acme"
	pool   = "lab"
)

// A program is a running bcserver.
type program struct {
	command *exec.Cmd
	address string // host:port
	key     string // of a tenant-admin of the tenant
	ended   chan error
}

// serve prepares a database (see prepare) and starts bcserver on it as it comes:
// with its defaults, and its log in a file. What extra says goes on the command line.
func (l *lab) serve(ctx context.Context, url string, extra ...string) (*program, error) {
	data, err := l.folder("data")
	if err != nil {
		return nil, err
	}
	key, err := l.prepare(ctx, url, data)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(data, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p, err := l.start(ctx, log, append([]string{"--db", url, "--data", data}, extra...)...)
	if err != nil {
		return nil, err
	}
	p.key = key
	return p, nil
}

// start runs bcserver serve and waits until it listens.
func (l *lab) start(ctx context.Context, log io.Writer, flags ...string) (*program, error) {
	return launch(serveCommand(ctx, l.bcserver, flags...), "http", log)
}

// serveCommand is the command bcserver serve.
func serveCommand(ctx context.Context, binary string, flags ...string) *exec.Cmd {
	return exec.CommandContext(ctx, binary, append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)
}

// launch runs a command that is to serve, and waits until it listens.
func launch(command *exec.Cmd, scheme string, log io.Writer) (*program, error) {
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 15 * time.Second
	command.Stderr = log
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	p := &program{command: command, ended: make(chan error, 1)}
	listening, err := bufio.NewReader(out).ReadString('\n')
	go func() { p.ended <- command.Wait() }()
	address, ok := strings.CutPrefix(strings.TrimSpace(listening), "listening on "+scheme+"://")
	if !ok {
		return nil, errors.Join(fmt.Errorf("bcserver did not start: %q", listening), err, p.stop())
	}
	p.address = address
	return p, nil
}

// stop ends the program and waits for it.
func (p *program) stop() error {
	p.command.Process.Signal(syscall.SIGTERM) // where it has ended already, Wait tells
	return <-p.ended
}

// run runs bcserver to its end and returns what it prints.
func (l *lab) run(ctx context.Context, args ...string) (string, error) {
	var out, complaints bytes.Buffer
	command := exec.CommandContext(ctx, l.bcserver, args...)
	command.Stdout, command.Stderr = &out, &complaints
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("bcserver %s: %w\n%s", args[0], err, &complaints)
	}
	return strings.TrimSpace(out.String()), nil
}

// prepare migrates a database and makes a key for the tenant in it.
func (l *lab) prepare(ctx context.Context, url, data string) (key string, err error) {
	where := []string{"--db", url, "--data", data}
	if _, err := l.run(ctx, append([]string{"migrate"}, where...)...); err != nil {
		return "", err
	}
	return l.run(ctx, append([]string{"keys", "create", "--tenant", tenant, "--identity", "bench", "--role", "tenant-admin"}, where...)...)
}

// makePool creates a site and a pool of the tenant through the API.
func (p *program) makePool() error {
	c, err := p.dial()
	if err != nil {
		return err
	}
	defer c.close()
	for _, call := range [][2]string{
		{"/api/compute/sites/create", fmt.Sprintf(`{"tenantId":%q,"siteId":"berlin"}`, tenant)},
		{"/api/compute/pools/create", fmt.Sprintf(`{"tenantId":%q,"poolId":%q,"siteId":"berlin"}`, tenant, pool)},
	} {
		if status, answer, err := c.post(call[0], call[1]); err != nil || status != 200 {
			return fmt.Errorf("%s: %d %s: %w", call[0], status, answer, orUnexpected(err))
		}
	}
	return nil
}

var errUnexpected = errors.New("not what was expected")

func orUnexpected(err error) error {
	if err == nil {
		return errUnexpected
	}
	return err
}
