package daemon_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/client"
	"github.com/bettercompute/bettercompute/impl/daemon"
)

// TestNJ_3_KeyAndRequestAreOnTheDiskFirst holds that nothing is sent before
// what was sent can be sent again.
func TestNJ_3_KeyAndRequestAreOnTheDiskFirst(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	s.sent = func(c call) {
		if c.method() != "nodes/join" {
			return
		}
		if joining, _ := m.state("joining").(map[string]any); joining["csr"] != c.csr(t) || joining["tokenId"] != tokenID {
			t.Errorf("state.json has %v", joining)
		}
		if !strings.Contains(string(m.file("join-key.pem")), "PRIVATE KEY") {
			t.Error("the key is not stored")
		}
	}
	m.joined()
}

// TestNJ_3_ALostAnswerCostsNothing holds that a join whose answer got lost is
// sent again as it was, in the same run or in another one.
func TestNJ_3_ALostAnswerCostsNothing(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"same run": true, "next run": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			m := newMachine(t, s)
			lose := true
			s.answer = func(c call) any {
				if c.method() != "nodes/join" || !lose {
					return nil
				}
				lose = false
				s.byTheRules(t.Context(), c) // it is a node now
				return cut{}
			}
			if !again {
				ctx, cancel := context.WithCancel(t.Context())
				config := m.Config
				config.Jitter = func(time.Duration) time.Duration { cancel(); return 0 } // when it would wait
				_, err := daemon.Join(ctx, config)
				wantSays(t, err, "nodes.join: no answer")
			}
			m.joined()
			calls := s.heard("nodes/join")
			if len(calls) != 2 || calls[0].csr(t) != calls[1].csr(t) {
				t.Errorf("%d calls, or not the same ones", len(calls))
			}
			if !strings.Contains(m.log.String(), "replayed=true") {
				t.Error("it is another join")
			}
		})
	}
}

// TestNJ_3_AnAnswerThatCannotBeStoredCostsNothing holds that a full disk loses no join.
func TestNJ_3_AnAnswerThatCannotBeStoredCostsNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	inTheWay := filepath.Join(m.State, "state.json.new", "x")
	s.sent = func(c call) {
		if c.method() == "nodes/join" && len(s.heard("nodes/join")) == 1 {
			if err := os.MkdirAll(inTheWay, 0o700); err != nil {
				t.Error(err)
			}
		}
	}
	_, err := m.join()
	wantSays(t, err, "has issued a certificate for nd_", "could not be stored", "state.json", "the next attempt gets the same one")
	if err := os.RemoveAll(filepath.Dir(inTheWay)); err != nil {
		t.Fatal(err)
	}
	m.joined()
	if calls := s.heard("nodes/join"); len(calls) != 2 || calls[0].csr(t) != calls[1].csr(t) {
		t.Errorf("%d calls, or not the same ones", len(calls))
	}
}

// TestNJ_3_WhatIsNotStoredIsNotConfirmed holds that a daemon goes on as if it
// had no answer: an identity that only it knows would be lost with it.
func TestNJ_3_WhatIsNotStoredIsNotConfirmed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	inTheWay := filepath.Join(m.State, "state.json.new", "x")
	s.sent = func(c call) {
		if len(s.heard("nodes/join")) < 4 {
			if err := os.MkdirAll(inTheWay, 0o700); err != nil {
				t.Error(err)
			}
		}
	}
	d := m.open()
	m.until(s, d, "joined thrice", func() bool { return len(s.heard("nodes/join")) == 3 })
	if n := len(s.heard("nodes/confirm", "nodes/report")); n > 0 {
		t.Errorf("%d calls with a certificate that is not stored", n)
	}
	if err := os.RemoveAll(filepath.Dir(inTheWay)); err != nil {
		t.Fatal(err)
	}
	m.until(s, d, "reported", func() bool { return len(s.heard("nodes/report")) == 1 })
	if calls := s.heard("nodes/join"); len(calls) != 4 || calls[0].csr(t) != calls[3].csr(t) {
		t.Errorf("%d joins, or not the same ones", len(calls))
	}
}

// TestJoin_WithoutADiskThereIsNoCall holds that a key that cannot be stored is not used.
func TestJoin_WithoutADiskThereIsNoCall(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"join-key.pem", "state.json"} {
		s := newServer(t)
		m := newMachine(t, s)
		if err := os.MkdirAll(filepath.Join(m.State, file+".new", "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := m.join()
		wantSays(t, err, file)
		if calls := s.heard("nodes/join"); len(calls) != 0 {
			t.Errorf("%d calls", len(calls))
		}
	}
}

// TestJR_1_PendingIsTheSameJoinWhenCalledAgain holds that a deferral is told
// with what an operator needs, and that the approved machine is the one that asked.
func TestJR_1_PendingIsTheSameJoinWhenCalledAgain(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	deferred := client.Deferral{RequestID: "jr_0123456789abcdefghjkmnpqrs", Reason: "placeholder_hardware", CSRSha256: strings.Repeat("ab", 32), RetryAfterSeconds: 30, ServerTime: today}
	approved := false
	s.answer = func(c call) any {
		if c.method() != "nodes/join" || approved {
			return nil
		}
		return client.NodesJoinOutput{Pending: &deferred}
	}
	for range 2 {
		o, err := m.join()
		if err != nil || o.Pending == nil || *o.Pending != (daemon.Pending{RequestID: deferred.RequestID, Reason: "placeholder_hardware", CSRSHA256: deferred.CSRSha256}) || o.NodeID != "" {
			t.Fatalf("%+v, %v", o, err)
		}
		if got := m.status(); got.Joined || got.Valid || got.Pending == nil || got.Pending.RequestID != deferred.RequestID || !strings.Contains(got.Next, "operator") {
			t.Errorf("status %+v", got)
		}
	}
	s.set(func() { approved = true })
	m.joined()
	if got := m.status(); !got.Valid || got.Pending != nil {
		t.Errorf("status %+v", got)
	}
	calls := s.heard("nodes/join")
	if len(calls) != 3 || calls[0].csr(t) != calls[2].csr(t) {
		t.Errorf("%d calls, or not the same ones", len(calls))
	}
}
