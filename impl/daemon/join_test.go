package daemon_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/client"
	"github.com/bettercompute/bettercompute/impl/daemon"
)

// TestJoin_StoresAndConfirms holds what a join leaves behind: one use of the
// token, one confirmed certificate, and files that only we can read.
func TestJoin_StoresAndConfirms(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	o := m.joined()
	if o.NodeID == "" || o.TenantID != "acme" || o.PoolID != "lab" || o.Profile != "node-tenant" || !o.Confirmed || o.Already || !o.NotAfter.Equal(today.Add(certificateLife)) {
		t.Errorf("the outcome is %+v", o)
	}
	for _, name := range []string{"state.json", "key.pem", "cert.pem", "ca.pem"} {
		if !m.has(name) {
			t.Errorf("no %s", name)
		}
	}
	if m.has("join-key.pem") {
		t.Error("the key is there under two names")
	}
	if got := string(m.file("ca.pem")); got != s.authority.Bundle() {
		t.Errorf("ca.pem is %s", got)
	}
	var in client.NodesJoinInput
	if err := json.Unmarshal(s.heard("nodes/join")[0].Body, &in); err != nil {
		t.Fatal(err)
	}
	if c := in.Claims; c.Hostname == nil || *c.Hostname != "rack7-u12" || c.Environment == nil || *c.Environment != "host" || c.Serial != nil || c.Macs != nil {
		t.Errorf("claims %+v", c)
	}
	if calls := len(s.heard("nodes/join")); calls != 1 || len(s.heard("nodes/confirm")) != 1 {
		t.Errorf("%d joins", calls)
	}
}

// TestJoin_AnotherServer holds that a machine which moves to another server
// verifies it by the new pin, not by what it knows of the old one.
func TestJoin_AnotherServer(t *testing.T) {
	t.Parallel()
	s, other := newServer(t), newServer(t)
	m := newMachine(t, s)
	m.joined()
	m.Server, m.CASHA256 = other.URL, other.pin()
	m.give(other.mint("jt_2123456789abcdefghjkmnpqrs", 1))
	m.joined()
	if string(m.file("ca.pem")) != other.authority.Bundle() || m.status().Server != other.URL {
		t.Error("it is still with the old one")
	}
}

// TestJoin_IsOnce holds that a machine that has joined stays as it is, with the
// same token, and without one.
func TestJoin_IsOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	first := m.joined()
	for range 2 {
		if o := m.joined(); !o.Already || o.NodeID != first.NodeID {
			t.Errorf("%+v", o)
		}
		m.TokenFile = ""
	}
	if calls := s.heard("nodes/join"); len(calls) != 1 {
		t.Errorf("%d joins", len(calls))
	}
}

// TestJoin_AnotherTokenMakesAnotherKey holds that a key is never presented with
// two tokens, that a refused newcomer keeps what it had, and that an admitted
// one has the new identity.
func TestJoin_AnotherTokenMakesAnotherKey(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	first := m.joined()
	identity := string(m.file("cert.pem"))

	m.give(s.mint("jt_1123456789abcdefghjkmnpqrs", 0)) // used up
	_, err := m.join()
	wantSays(t, err, daemon.TokenRefused)
	if got := m.status(); got.NodeID != first.NodeID || !got.Valid || string(m.file("cert.pem")) != identity {
		t.Errorf("the identity is %+v", got)
	}

	m.give(s.mint("jt_2123456789abcdefghjkmnpqrs", 1))
	if o := m.joined(); o.NodeID == first.NodeID || o.Already {
		t.Errorf("%+v", o)
	}
	keys := map[string]bool{}
	for _, c := range s.heard("nodes/join") {
		keys[keyHash(t, c.csr(t))] = true
	}
	if len(keys) != 3 {
		t.Errorf("%d keys for three tokens", len(keys))
	}
}

// TestJoin_ARefusalIsFinal holds that what a person must act on is said in one
// line, and not asked for again.
func TestJoin_ARefusalIsFinal(t *testing.T) {
	t.Parallel()
	denied := func(reason string) refused {
		return refused{status: http.StatusForbidden, code: client.ErrorCodePERMISSIONDENIED, reason: reason}
	}
	for name, c := range map[string]struct {
		answer refused
		says   []string
	}{
		"token":        {unauthenticated, []string{"the server refuses the token: wrong, expired, used up or revoked", "req_1"}},
		"pin":          {denied("hardware_mismatch"), []string{"pinned to", "reason hardware_mismatch", "req_1"}},
		"byte order":   {denied("uuid_byte_order"), []string{"byte-swapped", "reason uuid_byte_order"}},
		"attestor":     {denied("attestation_failed"), []string{"attestor refuses", "reason attestation_failed"}},
		"denied":       {denied("request_denied"), []string{"an operator denied", "reason request_denied"}},
		"in use":       {denied("identity_in_use"), []string{"another node of the pool", "--allow-reclaim"}},
		"banned":       {denied("node_banned"), []string{"banned"}},
		"newer reason": {denied("moon_phase"), []string{"refuses this machine", "moon_phase"}},
		"input":        {refused{status: http.StatusBadRequest, code: client.ErrorCodeINVALIDINPUT}, []string{"INVALID_INPUT", "req_1"}},
		"older server": {refused{status: http.StatusNotFound, code: client.ErrorCodeNOTFOUND}, []string{"does not know how to join", "--server"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			m := newMachine(t, s)
			s.answer = func(call) any { return c.answer }
			_, err := m.join()
			wantSays(t, err, c.says...)
			if calls := s.heard("nodes/join"); len(calls) != 1 {
				t.Errorf("%d calls", len(calls))
			}
			if _, err := m.join(); err == nil { // it is the same join: a denial stands
				t.Error("admitted")
			}
			if calls := s.heard("nodes/join"); len(calls) != 2 || calls[0].csr(t) != calls[1].csr(t) {
				t.Errorf("%d calls, or another request", len(calls))
			}
		})
	}
}

// TestJoin_WaitsForABusyServer holds that what passes by itself is waited out.
func TestJoin_WaitsForABusyServer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	answers := []any{
		refused{status: http.StatusServiceUnavailable, code: client.ErrorCodeUNAVAILABLE},
		refused{status: http.StatusTooManyRequests, code: client.ErrorCodeRATELIMITED, retryAfter: "1"},
		cut{},
	}
	s.answer = func(c call) (next any) {
		if c.method() == "nodes/join" && len(answers) > 0 {
			next, answers = answers[0], answers[1:]
		}
		return next
	}
	m.joined()
	if calls := s.heard("nodes/join"); len(calls) != 4 || calls[0].csr(t) != calls[3].csr(t) {
		t.Errorf("%d calls, or not the same ones", len(calls))
	}
}

// TestJoin_AConflictMakesAnotherKey holds that a key that stands for something
// else already, as after a folder was copied, is given up.
func TestJoin_AConflictMakesAnotherKey(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	first := true
	s.answer = func(c call) any {
		if c.method() == "nodes/join" && first {
			first = false
			return refused{status: http.StatusConflict, code: client.ErrorCodeCONFLICT}
		}
		return nil
	}
	m.joined()
	if calls := s.heard("nodes/join"); len(calls) != 2 || keyHash(t, calls[0].csr(t)) == keyHash(t, calls[1].csr(t)) {
		t.Errorf("%d calls, or the same key", len(calls))
	}
}

// TestJoin_GivesUpInTime holds that the last thing that went wrong is said.
func TestJoin_GivesUpInTime(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	m.Timeout = 5 * time.Second
	s.answer = func(call) any {
		return refused{status: http.StatusServiceUnavailable, code: client.ErrorCodeUNAVAILABLE}
	}
	_, err := m.join()
	wantSays(t, err, "no success within 5s", "UNAVAILABLE")
	s.Close()
	_, err = m.join()
	wantSays(t, err, "no success within 5s", "no token was sent", "connection refused")
}

// TestJoin_ACertificateForAnotherKeyIsNotTaken holds that an answer is looked at.
func TestJoin_ACertificateForAnotherKeyIsNotTaken(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	other := newMachine(t, s)
	other.joined()
	m := newMachine(t, s)
	s.answer = func(c call) any {
		var a client.Admission
		for _, a = range s.issued {
		}
		return client.NodesJoinOutput{Admitted: &a}
	}
	_, err := m.join()
	wantSays(t, err, "cannot be used", "for another key")
	if m.status().Joined {
		t.Error("joined")
	}
}

// TestJoin_ClaimsOfAFile holds that a file of claims stands for the machine.
func TestJoin_ClaimsOfAFile(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	m.Claims = filepath.Join(t.TempDir(), "claims.json")
	if err := os.WriteFile(m.Claims, []byte(`{"serial": "CZ2D1X0QTP", "macs": ["3c:ec:ef:12:34"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := m.join()
	wantSays(t, err, m.Claims, "macs[0]", "pattern")
	if err := os.WriteFile(m.Claims, []byte(`{"serial": "CZ2D1X0QTP"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	m.joined()
	if body := string(s.heard("nodes/join")[0].Body); !strings.Contains(body, `"claims":{"serial":"CZ2D1X0QTP"}`) {
		t.Errorf("sent %s", body)
	}
}
