package main_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/client"
)

// TestTLS_AWrongPinSendsNoToken holds that a server with another CA never sees
// the token: it logs every call, and there is none.
func TestTLS_AWrongPinSendsNoToken(t *testing.T) {
	t.Parallel()
	s, evil := serve(t), serve(t)
	id, token := s.mint(t, client.JoinTokensCreateInput{})
	m := newMachine(t, s, 1, token)
	m.url = evil.url
	m.join().refused(t, 1, "--ca-sha256 does not match", "no token was sent")
	if log := evil.stderr.String(); strings.Contains(log, "nodes.join") {
		t.Errorf("it was called: %s", log)
	}
	if s.uses(t, id) != 0 {
		t.Error("the token was used")
	}
	m.url = s.url
	m.joins()
}

// TestTLS_ThePinThatTheServerShows holds that `bcserver ca show` prints what a
// machine must be told.
func TestTLS_ThePinThatTheServerShows(t *testing.T) {
	t.Parallel()
	s := serve(t)
	program, err := bcserver()
	must(t, err)
	p := launch(t, program, setting{}, "ca", "show", "--data", s.data, "--output", "json")
	if code := p.exit(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	var shown struct {
		Certificates []struct{ Name, SHA256 string }
	}
	must(t, json.Unmarshal([]byte(p.stdout.String()), &shown))
	if root := shown.Certificates[0]; root.Name != "root" || root.SHA256 != s.pin {
		t.Errorf("it shows %+v, and machines join with %s", root, s.pin)
	}
}

// TestTLS_CAFile holds that the file that the server keeps is enough.
func TestTLS_CAFile(t *testing.T) {
	t.Parallel()
	s, other := serve(t), serve(t)
	_, token := s.mint(t, client.JoinTokensCreateInput{})
	m := newMachine(t, s, 1, token)
	claims := m.flags[4:]
	m.flags = append([]string{"--token-file", m.file("token", token), "--ca-file", m.file("ca.pem", other.bundle(t))}, claims...)
	m.join().refused(t, 1, "unknown authority")
	m.flags = append(m.flags, "--ca-file", m.file("ca.pem", s.bundle(t)))
	m.joins()
}

// TestTLS_AfterTheJoinNothingMustBeGiven holds that what was joined is known.
func TestTLS_AfterTheJoinNothingMustBeGiven(t *testing.T) {
	t.Parallel()
	s := serve(t)
	_, token := s.mint(t, client.JoinTokensCreateInput{})
	m := newMachine(t, s, 1, token)
	m.joins()
	p := launch(t, bcd, setting{}, "run", "--state", m.state)
	m.reported()
	m.stops(p)
}
