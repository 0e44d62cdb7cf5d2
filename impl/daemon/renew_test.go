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

// TestNJ_6_RenewsInTimeWithANewKey holds the life of a node: it confirms,
// reports every 30 seconds, and renews when the server says, with another key,
// which takes the place of the old one only with its certificate.
func TestNJ_6_RenewsInTimeWithANewKey(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	d := m.open()
	m.until(s, d, "reported thrice", func() bool { return len(s.heard("nodes/report")) == 3 })
	if passed := s.now.Sub(today); passed != 2*daemon.ReportEvery || len(s.heard("nodes/confirm")) != 1 {
		t.Errorf("three reports in %v", passed)
	}
	first := m.file("key.pem")
	s.set(func() {
		s.sent = func(c call) {
			if c.method() == "nodes/renew" && (string(m.file("key.pem")) != string(first) || !m.has("renew-key.pem")) {
				t.Error("the old key is not in its place while there is no answer")
			}
		}
	})
	m.pass(s, renewLife-time.Hour)
	m.until(s, d, "renewed and confirmed", func() bool { return len(s.heard("nodes/confirm")) == 2 })
	if passed := s.now.Sub(today); passed < renewLife || passed > renewLife+time.Minute {
		t.Errorf("renewed after %v", passed)
	}
	if string(m.file("key.pem")) == string(first) || m.has("renew-key.pem") {
		t.Error("the key is the old one")
	}
	confirms := s.heard("nodes/confirm")
	if a, b := confirms[0].Certificates[0], confirms[1].Certificates[0]; a.SerialNumber.Cmp(b.SerialNumber) == 0 {
		t.Error("the new certificate is not the one that confirms")
	}
	got := values(t, d)
	if got["bcd_calls_total renew ok"] != 1 || got["bcd_join_state joined"] != 1 || got["bcd_join_state none"] != 0 ||
		got["bcd_certificate_end_timestamp_seconds"] != float64(s.now.Add(certificateLife).Unix()) {
		t.Errorf("metrics %v", got)
	}
	for _, c := range s.heard("nodes/confirm", "nodes/renew", "nodes/report") {
		if c.Authorization != "" {
			t.Errorf("%s was called with the token", c.Path)
		}
	}
}

// TestNJ_6_RenewalsAreSpread holds that the jitter is after the time that the
// server names, and within a tenth of what is left.
func TestNJ_6_RenewalsAreSpread(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	m.Jitter = func(most time.Duration) time.Duration { return most }
	d := m.open()
	m.until(s, d, "reported", func() bool { return len(s.heard("nodes/report")) == 1 })
	m.pass(s, renewLife)
	m.until(s, d, "reported", func() bool { return len(s.heard("nodes/report")) == 2 })
	if len(s.heard("nodes/renew")) > 0 {
		t.Error("renewed without jitter")
	}
	m.until(s, d, "renewed", func() bool { return len(s.heard("nodes/renew")) == 1 })
	if passed, most := s.now.Sub(today), renewLife+(certificateLife-renewLife)/10; passed > most+time.Minute || passed < most-time.Minute {
		t.Errorf("renewed after %v, want %v", passed, most)
	}
}

// TestNJ_6_AnInterruptedRenewalIsResumed holds that a renewal without an answer
// is the same one after a restart, and that one whose answer could not be
// stored costs nothing.
func TestNJ_6_AnInterruptedRenewalIsResumed(t *testing.T) {
	t.Parallel()
	for name, interrupt := range map[string]func(m *machine, s *server) any{
		"lost answer": func(m *machine, s *server) any { return cut{} },
		"full disk": func(m *machine, s *server) any {
			if err := os.MkdirAll(filepath.Join(m.State, "state.json.new", "x"), 0o700); err != nil {
				m.t.Error(err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			m := newMachine(t, s)
			m.joined()
			first := true
			s.answer = func(c call) any {
				if c.method() != "nodes/renew" || !first {
					return nil
				}
				first = false
				answer := s.byTheRules(t.Context(), c)
				if instead := interrupt(m, s); instead != nil {
					return instead
				}
				return answer
			}
			d := m.open()
			m.pass(s, renewLife)
			for len(s.heard("nodes/renew")) == 0 {
				if _, err := d.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(m.State, "state.json.new")); err != nil {
				t.Fatal(err)
			}
			m.Jitter = func(most time.Duration) time.Duration { return most }
			d = m.open()
			from := s.now
			m.until(s, d, "confirmed", func() bool { return len(s.heard("nodes/confirm")) == 2 })
			if passed := s.now.Sub(from); passed > 0 {
				t.Errorf("resumed after %v", passed)
			}
			calls := s.heard("nodes/renew")
			if len(calls) != 2 || calls[0].csr(t) != calls[1].csr(t) {
				t.Errorf("%d renewals, or not the same ones", len(calls))
			}
			if !strings.Contains(m.log.String(), "replayed=true") {
				t.Error("it is another renewal")
			}
			m.until(s, d, "reported", func() bool { return len(s.heard("nodes/report")) > 1 })
		})
	}
}

// TestNJ_6_AnExpiredCertificateIsRenewed holds that a machine that was off for
// less than 7 days is a node again by itself.
func TestNJ_6_AnExpiredCertificateIsRenewed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	node := m.joined().NodeID
	m.pass(s, certificateLife+6*24*time.Hour)
	m.TokenFile = ""
	d := m.open()
	m.until(s, d, "reported", func() bool {
		return len(s.heard("nodes/report")) > 0 && len(s.heard("nodes/renew")) > 0 && m.status().Valid
	})
	if got := m.status(); got.NodeID != node || len(s.heard("nodes/join")) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestNJ_6_AfterSevenDaysANewTokenIsNeeded holds what is said then, and that a
// token that is there is used, with a new key.
func TestNJ_6_AfterSevenDaysANewTokenIsNeeded(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	m.joined()
	m.pass(s, certificateLife+8*24*time.Hour)
	stops := func(says ...string) {
		t.Helper()
		d := m.open()
		defer d.Close()
		for range 20 {
			wait, err := d.Step(t.Context())
			if err != nil {
				wantSays(t, err, says...)
				return
			}
			m.pass(s, wait)
		}
		t.Errorf("it never says %q", says)
	}
	token := m.TokenFile
	m.TokenFile = ""
	stops("more than 7 days ago", "a new token is needed", "--token-file")
	m.TokenFile = filepath.Join(t.TempDir(), "gone")
	stops("more than 7 days ago", "a new token is needed", "gone", "no such file")
	m.TokenFile = token
	stops("the server refuses the token") // it had one use
	m.give(s.mint("jt_2123456789abcdefghjkmnpqrs", 1))
	d := m.open()
	m.until(s, d, "joined again", func() bool { return m.status().Valid })
	if p := m.status().Problem; p != "" {
		t.Errorf("the problem is still %q", p)
	}
	joins := s.heard("nodes/join")
	if a, b := joins[0].csr(t), joins[len(joins)-1].csr(t); keyHash(t, a) == keyHash(t, b) {
		t.Error("it joined with the old key")
	}
}

// TestRun_RenewsAtOnceWhenTheServerSaysSo holds that a pool that has lost trust
// does not wait for two thirds of a day.
func TestRun_RenewsAtOnceWhenTheServerSaysSo(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	m.joined()
	first := true
	s.answer = func(c call) any {
		if c.method() == "nodes/report" && first {
			first = false
			s.minTrust = client.TrustTenantControlled
			return client.NodesReportOutput{NodeID: "nd_x", ServerTime: s.now, RenewAfter: s.now}
		}
		return nil
	}
	d := m.open()
	m.until(s, d, "confirmed", func() bool { return len(s.heard("nodes/confirm")) == 2 })
	if passed := s.now.Sub(today); passed > daemon.ReportEvery || m.status().Trust != "tenant-controlled" {
		t.Errorf("after %v: %+v", passed, m.status())
	}
	m.until(s, d, "reported thrice", func() bool { return len(s.heard("nodes/report")) == 4 })
	if n := len(s.heard("nodes/renew")); n != 1 {
		t.Errorf("%d renewals", n)
	}
}

// TestRun_ACertificateThatIsNeverTakenIsNotRenewedWithoutEnd holds that renewals
// which do not help get rarer.
func TestRun_ACertificateThatIsNeverTakenIsNotRenewedWithoutEnd(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	m.joined()
	s.answer = func(c call) any {
		if c.method() != "nodes/renew" {
			return unauthenticated
		}
		return nil
	}
	d := m.open()
	m.until(s, d, "an hour has passed", func() bool { return s.now.Sub(today) > time.Hour })
	if n := len(s.heard("nodes/renew")); n < 10 || n > 130 {
		t.Errorf("%d renewals in an hour", n)
	}
}

// TestRun_AConflictMakesAnotherRenewal holds that a request whose certificate
// was confirmed, and is lost here, is given up.
func TestRun_AConflictMakesAnotherRenewal(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	m.joined()
	first := true
	s.answer = func(c call) any {
		if c.method() == "nodes/renew" && first {
			first = false
			return refused{status: http.StatusConflict, code: client.ErrorCodeCONFLICT}
		}
		return nil
	}
	d := m.open()
	m.pass(s, renewLife)
	m.until(s, d, "confirmed", func() bool { return len(s.heard("nodes/confirm")) == 2 })
	if calls := s.heard("nodes/renew"); len(calls) != 2 || keyHash(t, calls[0].csr(t)) == keyHash(t, calls[1].csr(t)) {
		t.Errorf("%d renewals, or the same key", len(calls))
	}
}

// TestRun_ARenewalThatIsDueIsNotPutOff holds that a server which keeps saying
// "now" is followed within half a minute, however the dice fall, and also after
// a restart.
func TestRun_ARenewalThatIsDueIsNotPutOff(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	m.joined()
	m.Jitter = func(most time.Duration) time.Duration { return most }
	s.answer = func(c call) any {
		if c.method() == "nodes/report" {
			return client.NodesReportOutput{NodeID: "nd_x", ServerTime: s.now, RenewAfter: s.now}
		}
		return nil
	}
	d := m.open()
	m.until(s, d, "reported", func() bool { return len(s.heard("nodes/report")) == 1 })
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = m.open()
	from := s.now
	m.until(s, d, "renewed", func() bool { return len(s.heard("nodes/renew")) == 1 })
	if passed := s.now.Sub(from); passed > daemon.ReportEvery+time.Second {
		t.Errorf("renewed after %v", passed)
	}
}

// TestRun_ACertificateThatIsDueAtOnceIsNotRenewedWithoutEnd holds that a server
// with a clock of its own mind is not asked again and again.
func TestRun_ACertificateThatIsDueAtOnceIsNotRenewedWithoutEnd(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	s.answer = func(c call) any {
		switch answer := s.byTheRules(t.Context(), c).(type) {
		case client.NodesJoinOutput:
			answer.Admitted.RenewAfter = s.now.Add(-time.Hour)
			return answer
		case client.NodesRenewOutput:
			answer.Admitted.RenewAfter = s.now.Add(-time.Hour)
			return answer
		default:
			return answer
		}
	}
	d := m.open()
	m.until(s, d, "ten minutes have passed", func() bool { return s.now.Sub(today) > 10*time.Minute })
	if n := len(s.heard("nodes/renew")); n < 5 || n > 11 {
		t.Errorf("%d renewals in ten minutes", n)
	}
}
