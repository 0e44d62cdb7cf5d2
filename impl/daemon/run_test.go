package daemon_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/client"
	"github.com/bettercompute/bettercompute/impl/daemon"
)

// TestRun_WaitsOutADeferral holds that a pending machine asks again when the
// server said, the same thing each time, and goes on by itself when approved.
func TestRun_WaitsOutADeferral(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	approved := false
	s.answer = func(c call) any {
		if c.method() != "nodes/join" || approved {
			return nil
		}
		return client.NodesJoinOutput{Pending: &client.Deferral{RequestID: "jr_0123456789abcdefghjkmnpqrs", Reason: "unknown_machine", CSRSha256: strings.Repeat("ab", 32), RetryAfterSeconds: 40, ServerTime: s.now}}
	}
	d := m.open()
	m.until(s, d, "asked thrice", func() bool { return len(s.heard("nodes/join")) == 3 })
	if passed := s.now.Sub(today); passed != 80*time.Second {
		t.Errorf("asked thrice within %v", passed)
	}
	if got := values(t, d); got["bcd_join_state pending"] != 1 {
		t.Errorf("metrics %v", got)
	}
	if notes := m.notified(); !strings.Contains(notes[len(notes)-1], "STATUS=waits for an operator: request jr_0123456789abcdefghjkmnpqrs (unknown_machine)") {
		t.Errorf("systemd was told %q", notes)
	}
	s.set(func() { approved = true })
	m.until(s, d, "reported", func() bool { return len(s.heard("nodes/report")) > 0 })
	calls := s.heard("nodes/join")
	for _, c := range calls[1:] {
		if c.csr(t) != calls[0].csr(t) {
			t.Error("another request")
		}
	}
}

// TestRun_WaitsForTheServer holds that a server that is away is asked again,
// later each time, but at least once a minute.
func TestRun_WaitsForTheServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	m.Jitter = func(most time.Duration) time.Duration { return most }
	away := true
	s.answer = func(call) any {
		if away {
			return refused{status: http.StatusServiceUnavailable, code: client.ErrorCodeUNAVAILABLE}
		}
		return nil
	}
	d := m.open()
	var waits []time.Duration
	for len(s.heard("nodes/join")) < 9 {
		wait, err := d.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if wait > 0 {
			waits = append(waits, wait)
		}
		m.pass(s, wait)
	}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		if waits[i] != want*time.Second {
			t.Errorf("wait %d is %v, want %v", i, waits[i], want*time.Second)
		}
	}
	s.set(func() {
		s.answer = func(call) any {
			if away {
				return refused{status: http.StatusTooManyRequests, code: client.ErrorCodeRATELIMITED, retryAfter: "100"}
			}
			return nil
		}
	})
	before := s.now
	m.until(s, d, "asked twice more", func() bool { return len(s.heard("nodes/join")) == 11 })
	if passed := s.now.Sub(before); passed != time.Minute+125*time.Second { // a former wait, and what the server asked for, and a quarter
		t.Errorf("it waited %v", passed)
	}
	if !strings.Contains(m.status().Problem, "join: RATE_LIMITED") {
		t.Errorf("status %+v", m.status())
	}
	s.set(func() { away = false })
	m.until(s, d, "reported", func() bool { return len(s.heard("nodes/report")) > 0 })
	if p := m.status().Problem; p != "" {
		t.Errorf("the problem is still %q", p)
	}
}

// TestRun_StopsWhereAPersonIsNeeded holds that a refused join is said and not repeated.
func TestRun_StopsWhereAPersonIsNeeded(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	m.give(s.mint(tokenID, 0))
	err := daemon.Run(t.Context(), m.Config)
	wantSays(t, err, daemon.TokenRefused)
	if n := len(s.heard("nodes/join")); n != 1 {
		t.Errorf("%d joins", n)
	}
	if p := m.status().Problem; !strings.Contains(p, daemon.TokenRefused) {
		t.Errorf("the problem is %q", p)
	}
	m = newMachine(t, s)
	m.TokenFile = ""
	wantSays(t, daemon.Run(t.Context(), m.Config), "--token-file is missing")
}

// TestRun_ABanMayBeLifted holds that a banned node keeps asking, and shows it.
func TestRun_ABanMayBeLifted(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	m.joined()
	banned := true
	s.answer = func(call) any {
		if banned {
			return refused{status: http.StatusForbidden, code: client.ErrorCodePERMISSIONDENIED, reason: "node_banned"}
		}
		return nil
	}
	d := m.open()
	m.until(s, d, "asked five times", func() bool { return len(s.heard("nodes/report")) == 5 })
	if got := values(t, d); got["bcd_join_state banned"] != 1 || got["bcd_calls_total report PERMISSION_DENIED"] != 5 {
		t.Errorf("metrics %v", got)
	}
	if p := m.status().Problem; !strings.Contains(p, "the node is banned") {
		t.Errorf("the problem is %q", p)
	}
	s.set(func() { banned = false })
	m.until(s, d, "reported", func() bool { return m.status().LastReportAt != nil })
	if got := values(t, d); got["bcd_join_state joined"] != 1 {
		t.Errorf("metrics %v", got)
	}
}

// TestRun_TellsSystemdAndStops holds that Run is ready at once, also while it
// waits, and ends without an error when it is told to.
func TestRun_TellsSystemdAndStops(t *testing.T) {
	t.Parallel()
	s := newServerAt(t, time.Now(), "127.0.0.1")
	m := newMachine(t, s)
	m.Now, m.Metrics, m.WatchdogEvery = time.Now, ":0", time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	ready := make(chan string, 1)
	m.Ready = func(metrics string) { ready <- metrics }
	reported := make(chan struct{}, 1)
	s.sent = func(c call) {
		if c.method() == "nodes/report" {
			reported <- struct{}{}
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- daemon.Run(ctx, m.Config) }()
	address := <-ready
	if !strings.HasPrefix(address, "127.0.0.1:") {
		t.Errorf("metrics at %s", address)
	}
	<-reported
	response, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := http.Get("http://" + address + "/metrics"); err == nil {
		t.Error("metrics are still shown")
	}
	notes := m.notified()
	if !strings.HasPrefix(notes[0], "READY=1\nSTATUS=joins") || !slices.Contains(notes, "STOPPING=1") || !strings.Contains(strings.Join(notes, "\n"), "\nSTATUS=node nd_") {
		t.Errorf("systemd was told %q", notes)
	}
}
