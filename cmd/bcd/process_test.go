package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen. Nothing takes nearly
// as long, but on a machine with other things to do.
const patience = time.Minute

// A process is a program that was started.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr *output
	ended          chan struct{} // closed when it has ended
}

// A setting is what a process is started with besides its arguments.
type setting struct {
	env   []string // its whole environment, but for PATH
	stdin string
	attr  *syscall.SysProcAttr
}

// launch starts a program. When the test ends it is killed, and what the race
// detector had to say is an error.
func launch(t testing.TB, program string, with setting, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(program, args...), stdout: newOutput(), stderr: newOutput(), ended: make(chan struct{})}
	p.cmd.Dir = t.TempDir()
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}, with.env...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = strings.NewReader(with.stdin), p.stdout, p.stderr
	p.cmd.SysProcAttr = with.attr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	running.Store(p, func() { _ = p.cmd.Process.Kill() })
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // what it returns is in ProcessState
		running.Delete(p)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // fails only where it has ended
		<-p.ended
		if strings.Contains(p.stderr.String(), "DATA RACE") {
			t.Errorf("the race detector found something:\n%s", p.stderr)
		}
		if t.Failed() {
			t.Logf("%s %s\nstdout:\n%s\nstderr, the end:\n%s", filepath.Base(program), strings.Join(args, " "), p.stdout, tail(p.stderr.String(), 30))
		}
	})
	return p
}

// exit waits until the process has ended and returns its exit code.
func (p *process) exit(t testing.TB) int {
	t.Helper()
	within(t, "the end of the process", p.ended)
	return p.cmd.ProcessState.ExitCode()
}

// signal sends a signal.
func (p *process) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// await returns the first match of a pattern in the output, once it is there.
func (p *process) await(t testing.TB, out *output, pattern string) []string {
	t.Helper()
	looked := regexp.MustCompile(pattern)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for ended := false; ; {
		text, more := out.next()
		if match := looked.FindStringSubmatch(text); match != nil {
			return match
		}
		if ended {
			t.Fatalf("the process ended with %d and never wrote %q", p.cmd.ProcessState.ExitCode(), pattern)
		}
		select {
		case <-more:
		case <-p.ended:
			ended = true // its output is complete now
		case <-timer.C:
			t.Fatalf("still waiting for %q", pattern)
		}
	}
}

// An ended process.
type ended struct {
	code           int
	stdout, stderr string
}

// runWith runs bcd to its end.
func runWith(t testing.TB, with setting, args ...string) ended {
	t.Helper()
	p := launch(t, bcd, with, args...)
	code := p.exit(t)
	return ended{code, p.stdout.String(), p.stderr.String()}
}

// refused checks that bcd ended with a code and printed nothing, and that its
// last message, on stderr, says all of the words.
func (e ended) refused(t testing.TB, code int, words ...string) {
	t.Helper()
	if e.code != code || e.stdout != "" {
		t.Errorf("exit code %d with stdout %q, want %d and nothing; stderr: %s", e.code, e.stdout, code, e.stderr)
	}
	last := e.stderr[max(0, strings.LastIndex(e.stderr, "bcd: ")):]
	for _, word := range append(words, "bcd: ") {
		if !strings.Contains(last, word) {
			t.Errorf("the message does not say %q: %s", word, last)
		}
	}
}

// output is what a process has written so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed by the next write
}

func newOutput() *output { return &output{more: make(chan struct{})} }

// Write implements [io.Writer].
func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.more)
	o.more = make(chan struct{})
	return o.text.Write(text)
}

func (o *output) next() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String(), o.more
}

// String returns all of it.
func (o *output) String() string {
	text, _ := o.next()
	return text
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// within returns what comes from a channel, or fails when that takes too long.
func within[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v := <-from:
		return v
	case <-timer.C:
		t.Fatalf("still waiting for %s", what)
		panic("not reached")
	}
}

// eventually polls until a condition holds, or fails when that takes too long.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	timer, tick := time.NewTimer(patience), time.NewTicker(20*time.Millisecond)
	defer timer.Stop()
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-timer.C:
			t.Fatalf("still waiting until %s", what)
		}
	}
}
