package daemon_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/client"
	"github.com/bettercompute/bettercompute/impl/daemon"
)

// TestClock_BehindIsOvercome holds that a machine whose clock was reset joins,
// says so, and goes by the server's time: it neither renews at once nor never.
func TestClock_BehindIsOvercome(t *testing.T) {
	t.Parallel()
	for name, local := range map[string]time.Time{
		"dead battery": time.Unix(0, 0).UTC(),
		"a year":       today.AddDate(-1, 0, 0),
		"an hour":      today.Add(-time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			m := newMachine(t, s)
			m.set(local)
			d := m.open()
			m.until(s, d, "reported", func() bool { return len(s.heard("nodes/report")) == 1 })
			behind := today.Sub(local)
			got := values(t, d)
			if off := got["bcd_clock_offset_seconds"]; off != behind.Seconds() || got["bcd_clock_behind"] != 1 {
				t.Errorf("offset %v, want %v; behind %v", off, behind.Seconds(), got["bcd_clock_behind"])
			}
			if log := m.log.String(); !strings.Contains(log, "the clock of this machine is behind: the server's certificate is not valid yet") ||
				!strings.Contains(log, "the clock of this machine is wrong; the server's is used") {
				t.Error("the log does not say it")
			}
			if st := m.status(); !st.Valid || st.ClockOffsetSeconds != behind.Seconds() {
				t.Errorf("status %+v", st)
			}
			m.pass(s, renewLife-2*time.Minute)
			m.until(s, d, "reported again", func() bool { return len(s.heard("nodes/report")) == 2 })
			if n := len(s.heard("nodes/renew")); n > 0 {
				t.Errorf("%d renewals too early", n)
			}
			m.until(s, d, "renewed", func() bool { return len(s.heard("nodes/renew")) == 1 })
			if late := s.now.Sub(today.Add(renewLife)); late < 0 || late > time.Minute {
				t.Errorf("renewed %v after the time", late)
			}
		})
	}
}

// TestClock_AfterARestartItGoesOnFromTheServersTime holds that a machine without
// a battery does not go by 1970 while it has not heard the server: what falls
// due is done.
func TestClock_AfterARestartItGoesOnFromTheServersTime(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	m.joined()
	d := m.open()
	m.pass(s, renewLife-time.Minute)
	m.until(s, d, "reported", func() bool { return len(s.heard("nodes/report")) == 1 })
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	s.set(func() {
		s.answer = func(c call) any {
			if c.method() == "nodes/report" {
				return refused{status: http.StatusServiceUnavailable, code: client.ErrorCodeUNAVAILABLE}
			}
			return nil
		}
	})
	m.set(time.Unix(0, 0))
	from := s.now
	d = m.open()
	m.until(s, d, "renewed", func() bool { return len(s.heard("nodes/confirm")) == 2 })
	if passed := s.now.Sub(from); passed < time.Minute || passed > 2*time.Minute {
		t.Errorf("renewed after %v", passed)
	}
}

// TestClock_AheadIsRefused holds that a server's certificate which has ended by
// the local clock is refused, with both times, and no token is sent.
func TestClock_AheadIsRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	ahead := today.AddDate(0, 2, 0) // the certificate lasts 30 days
	m.set(ahead)
	_, err := m.join()
	wantSays(t, err, "the server's certificate has ended", "valid until 2026-03-31T", ahead.Format(time.RFC3339), "if the clock is ahead, set it")
	s.wantNoCredential(t, "/ca.pem")

	m.set(today)
	m.joined()
	m.set(ahead) // now it is known what the server said
	d := m.open()
	if _, err := d.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := m.status().Problem; !strings.Contains(p, "the server said last that it was 2026-03-01T12:00:00Z") {
		t.Errorf("the problem is %q", p)
	}
	m.set(today)
	s.set(func() { s.now = today })
	m.until(s, d, "reported, once the clock is right", func() bool { return len(s.heard("nodes/report")) > 0 && m.status().Problem == "" })
}

// TestClock_AheadButWithinIsOvercome holds that a clock which is ahead, but not
// past the server's certificate, does not renew too early.
func TestClock_AheadButWithinIsOvercome(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	m.set(today.AddDate(0, 0, 20))
	d := m.open()
	m.until(s, d, "reported for a while", func() bool { return len(s.heard("nodes/report")) == 6 })
	if n := len(s.heard("nodes/renew")); n > 0 {
		t.Errorf("%d renewals", n)
	}
	if off := values(t, d)["bcd_clock_offset_seconds"]; off != -(20 * 24 * time.Hour).Seconds() {
		t.Errorf("offset %v", off)
	}
	if !m.status().Valid {
		t.Error("status says that it has ended")
	}
}

// TestClock_WhatHasEndedIsNotAcceptedByAClockThatIsBehind holds that a server
// with an old certificate cannot wait for machines whose clock was reset: what
// the server said last is known.
func TestClock_WhatHasEndedIsNotAcceptedByAClockThatIsBehind(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	s.set(func() { s.now = today.AddDate(1, 0, 0) }) // long after the end of its certificate
	m.joined()
	m.set(time.Unix(0, 0))
	d := m.open()
	if _, err := d.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := m.status().Problem; !strings.Contains(p, "the server's certificate has ended") {
		t.Errorf("the problem is %q", p)
	}
	if n := len(s.heard("nodes/report")); n > 0 {
		t.Errorf("%d reports", n)
	}
}

// TestClock_SlightlyBehindDoesNotProlongACertificate holds the same where the
// certificate is still valid by the local clock.
func TestClock_SlightlyBehindDoesNotProlongACertificate(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	end := s.Certificate().NotAfter
	s.set(func() { s.now = end.Add(time.Hour) })
	m.set(end.Add(-time.Hour))
	m.joined() // nothing was known before
	m.set(end.Add(-30 * time.Minute))
	d := m.open()
	if _, err := d.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := m.status().Problem; !strings.Contains(p, "the server's certificate has ended") || !strings.Contains(p, "the server said last that it was "+end.Add(time.Hour).Format(time.RFC3339)) {
		t.Errorf("the problem is %q", p)
	}
	if n := len(s.heard("nodes/report", "nodes/confirm")); n > 0 {
		t.Errorf("%d calls", n)
	}
}

// TestClock_ASecondOffIsNothing holds that nobody is bothered by it.
func TestClock_ASecondOffIsNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	m.set(today.Add(-time.Second))
	m.joined()
	if strings.Contains(m.log.String(), "clock") {
		t.Error("the log says something about the clock")
	}
}

func values(t testing.TB, d daemon.Stepper) map[string]float64 {
	t.Helper()
	got, err := d.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return got
}
