package daemon_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/client"
	"github.com/bettercompute/bettercompute/impl/daemon"
)

const otherTokenID = "jt_2123456789abcdefghjkmnpqrs"

func forbidden(reason string) refused {
	return refused{status: http.StatusForbidden, code: client.ErrorCodePERMISSIONDENIED, reason: reason}
}

// wantStatus checks what `bcd status` says of a refusal.
func (m *machine) wantStatus(refused, next, problem string) {
	m.t.Helper()
	s := m.status()
	if s.Refused != refused || !strings.Contains(s.Next, next) || !strings.Contains(s.Problem, problem) || s.Valid != (refused == "") {
		m.t.Errorf("refused %q, valid %v, next %q, problem %q", s.Refused, s.Valid, s.Next, s.Problem)
	}
}

// stops steps until a person is needed.
func (m *machine) stops(s *server, says ...string) {
	m.t.Helper()
	d := m.open()
	defer d.Close()
	for range 20 {
		wait, err := d.Step(m.t.Context())
		if err != nil {
			wantSays(m.t, err, says...)
			return
		}
		m.pass(s, wait)
	}
	m.t.Errorf("it never says %q", says)
}

// TestStatus_SaysThatTheNodeIsBanned holds that it stands until a call succeeds
// again, also while the server is away, and that this is logged once.
func TestStatus_SaysThatTheNodeIsBanned(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	m.joined()
	var answer any = forbidden("node_banned")
	s.answer = func(call) any { return answer }
	d := m.open()
	m.until(s, d, "asked", func() bool { return len(s.heard("nodes/report")) == 2 })
	const next = "an operator must unban or remove it"
	m.wantStatus("banned", next, "the node is banned: "+next)
	if !strings.Contains(m.log.String(), next) {
		t.Error("the log does not say what to do")
	}
	s.set(func() { answer = refused{status: http.StatusServiceUnavailable, code: client.ErrorCodeUNAVAILABLE} })
	m.until(s, d, "asked again", func() bool { return len(s.heard("nodes/report")) == 4 })
	m.wantStatus("banned", next, "UNAVAILABLE")
	s.set(func() { answer = nil })
	m.until(s, d, "reported thrice", func() bool { return len(s.heard("nodes/report")) == 7 })
	m.wantStatus("", "reports every 30 seconds", "")
	if n := strings.Count(m.log.String(), "report succeeds again"); n != 1 {
		t.Errorf("logged %d times", n)
	}
}

// TestStatus_AProblemOfAFormerRunIsCleared holds that it does not outlive the
// success of what it was about.
func TestStatus_AProblemOfAFormerRunIsCleared(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	m.joined()
	var answer any = refused{status: http.StatusServiceUnavailable, code: client.ErrorCodeUNAVAILABLE}
	s.answer = func(call) any { return answer }
	d := m.open()
	m.until(s, d, "asked", func() bool { return len(s.heard("nodes/report")) == 1 })
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	m.wantStatus("", "", "report: UNAVAILABLE")
	s.set(func() { answer = nil })
	d = m.open()
	m.until(s, d, "reported", func() bool { return len(s.heard("nodes/report")) == 2 })
	if p := m.status().Problem; p != "" {
		t.Errorf("the problem is still %q", p)
	}
}

// TestStatus_SaysThatTheNodeHasEnded holds the same for one that was removed or
// taken over, whichever command is called, and that a new token starts anew:
// nothing of the former node is left, and its renewal is not gone on with.
func TestStatus_SaysThatTheNodeHasEnded(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	d := m.open()
	m.until(s, d, "reported", func() bool { return len(s.heard("nodes/report")) == 1 })
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	s.set(func() { clear(s.serials) })
	token := m.TokenFile
	m.TokenFile = ""
	says := []string{"another machine has taken the node over", "look at that machine", "a new token is needed"}
	for range 2 {
		m.stops(s, says...)
		m.wantStatus("ended", "join with a new token", "another machine has taken the node over")
	}
	_, err := m.join()
	wantSays(t, err, says...)
	m.TokenFile = token
	_, err = m.join() // it had one use
	wantSays(t, err, daemon.TokenRefused)
	m.wantStatus("ended", "join with a new token", daemon.TokenRefused)
	if m.state("renewing") == nil || m.status().LastReportAt == nil {
		t.Fatal("nothing of the former node is there to be reset")
	}
	m.give(s.mint(otherTokenID, 1))
	m.joined()
	m.wantStatus("", "reports every 30 seconds", "")
	if m.status().LastReportAt != nil || m.state("renewing") != nil || m.has("renew-key.pem") {
		t.Errorf("of the former node is left: %+v", m.status())
	}
	renewals := len(s.heard("nodes/renew"))
	d = m.open()
	from := s.now
	m.until(s, d, "an hour has passed", func() bool { return s.now.Sub(from) > time.Hour })
	if n := len(s.heard("nodes/renew")); n != renewals {
		t.Errorf("%d renewals of the new certificate", n-renewals)
	}
}

// TestStatus_SaysThatTheJoinIsRefused holds that a request which was denied, or
// whose token was revoked, waits for nobody, and that a new token clears it.
func TestStatus_SaysThatTheJoinIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer        refused
		refused, next string
		problem       string
	}{
		"denied":      {forbidden("request_denied"), "request_denied", "join with a new token", "an operator denied this join"},
		"revoked":     {unauthenticated, "token_refused", "join with a new token", daemon.TokenRefused},
		"banned":      {forbidden("node_banned"), "node_banned", "an operator must unban or remove it", "the node is banned"},
		"another pin": {forbidden("hardware_mismatch"), "hardware_mismatch", "what the problem says", "pinned to"},
	} {
		for _, command := range []string{"join", "run"} {
			t.Run(name+", "+command, func(t *testing.T) {
				t.Parallel()
				s := newServer(t)
				m := newMachine(t, s)
				var answer any = client.NodesJoinOutput{Pending: &client.Deferral{
					RequestID: "jr_0123456789abcdefghjkmnpqrs", Reason: "unknown_machine", CSRSha256: strings.Repeat("ab", 32), RetryAfterSeconds: 15, ServerTime: today,
				}}
				s.answer = func(call) any { return answer }
				if o, err := m.join(); err != nil || o.Pending == nil {
					t.Fatalf("%+v, %v", o, err)
				}
				pending := answer
				s.set(func() { answer = c.answer })
				refuse := func() {
					if command == "run" {
						m.stops(s, c.problem)
						return
					}
					_, err := m.join()
					wantSays(t, err, c.problem)
				}
				refuse()
				m.wantStatus(c.refused, c.next, c.problem)
				if p := m.status().Pending; p != nil {
					t.Errorf("pending: %+v", p)
				}
				s.set(func() { answer = pending }) // an operator has changed something
				if o, err := m.join(); err != nil || o.Pending == nil {
					t.Fatalf("%+v, %v", o, err)
				}
				if got := m.status(); got.Refused != "" || got.Problem != "" || got.Pending == nil {
					t.Errorf("status %+v", got)
				}
				s.set(func() { answer = c.answer })
				refuse()
				s.set(func() { answer = nil })
				m.give(s.mint(otherTokenID, 1))
				m.joined()
				m.wantStatus("", "reports every 30 seconds", "")
			})
		}
	}
}

// TestStatus_ANodeThatIsWellStaysSo holds that a token which is refused does not
// count against a node that has joined.
func TestStatus_ANodeThatIsWellStaysSo(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	m.joined()
	m.give(s.mint(otherTokenID, 0))
	_, err := m.join()
	wantSays(t, err, daemon.TokenRefused)
	m.wantStatus("", "reports every 30 seconds", "")
	if p := m.status().Problem; p != "" {
		t.Errorf("the problem is %q", p)
	}
}

// TestJoin_AnotherServerWithoutItsTokenIsNotAsked holds that the outcome says
// where a machine stays that has joined, and that `bcd run` and `bcd status`
// agree on the server that is used.
func TestJoin_AnotherServerWithoutItsTokenIsNotAsked(t *testing.T) {
	t.Parallel()
	s, other := newServer(t), newServer(t)
	m := newMachine(t, s)
	if o := m.joined(); o.Stays != "" {
		t.Errorf("%+v", o)
	}
	former := m.status().Server
	m.Server, m.CASHA256 = other.URL, ""
	for range 2 {
		if o := m.joined(); !o.Already || o.Stays != former {
			t.Errorf("%+v", o)
		}
		if len(other.calls) > 0 || m.status().Server != former {
			t.Errorf("%d calls, server %s", len(other.calls), m.status().Server)
		}
		m.TokenFile = ""
	}
	d := m.open() // it uses what it is given, and does not trust it
	if _, err := d.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := m.status(); got.Server != other.URL || !strings.Contains(got.Problem, "unknown authority") {
		t.Errorf("status %+v", got)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	m.Server = former + "/" // the same one, spelled otherwise
	if o := m.joined(); o.Stays != "" {
		t.Errorf("%+v", o)
	}
	m.Server = ""
	d = m.open()
	m.until(s, d, "reported", func() bool { return len(s.heard("nodes/report")) > 0 })
	if got := m.status(); got.Server != former || got.Problem != "" {
		t.Errorf("status %+v", got)
	}
}

// TestToken_NoneIsNoToken holds what bcd.service hands on where the file is not
// there: nothing is missing to a machine that has joined, and another one says it.
func TestToken_NoneIsNoToken(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	token := m.TokenFile
	none := filepath.Join(t.TempDir(), "join-token")
	write := func(text string) {
		if err := os.WriteFile(none, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("none")
	m.TokenFile = none
	_, err := m.join()
	wantSays(t, err, none, "there is no token", "/etc/bcd/join-token is not there")
	m.stops(s, none, "/etc/bcd/join-token is not there")
	m.TokenFile = token
	node := m.joined().NodeID
	m.TokenFile = none
	for _, text := range []string{"none", "none\n", "", "\n"} {
		write(text)
		if o := m.joined(); !o.Already || o.NodeID != node {
			t.Errorf("%q: %+v", text, o)
		}
	}
	write("none")
	s.set(func() { clear(s.serials) })
	m.stops(s, "a new token is needed", "/etc/bcd/join-token is not there")
}
