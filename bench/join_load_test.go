package main

import (
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// machinesSeen is a server that remembers who was there.
type machinesSeen struct {
	connections atomic.Int64
	resumed     atomic.Int64
	mu          sync.Mutex
	bodies      map[string]int
	refuse      string // the body that holds this is refused
}

func (s *machinesSeen) start(t *testing.T) *target {
	t.Helper()
	server := httptest.NewUnstartedServer(s)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	self := &exec.Cmd{Process: &os.Process{Pid: os.Getpid()}} // whose processor time is looked at
	return newTarget(&program{command: self, address: server.Listener.Addr().String()}, roots, http.StatusCreated)
}

func (s *machinesSeen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.TLS.DidResume {
		s.resumed.Add(1)
	}
	var body struct{ Name string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies[body.Name]++
	if body.Name == s.refuse {
		http.Error(w, "not you", http.StatusForbidden)
		return
	}
	w.WriteHeader(http.StatusCreated)
}

func named(t *target) prepare {
	return func(i int) (*http.Request, error) {
		return postJSON("https://"+t.address+"/", map[string]string{"name": strings.Repeat("x", i)})
	}
}

// Everyone joins once, on a connection of its own that resumes nothing.
func TestLoadIsFresh(t *testing.T) {
	const n = 200
	for _, how := range []string{"load", "steady"} {
		seen := &machinesSeen{bodies: map[string]int{}, refuse: "nobody"}
		target := seen.start(t)
		requests, err := made(n, named(target))
		if err != nil {
			t.Fatal(err)
		}
		var l load
		if how == "load" {
			l, err = target.load(t.Context(), requests)
		} else {
			l, err = target.steady(t.Context(), requests, 1000)
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(seen.bodies) != n || seen.connections.Load() != n || seen.resumed.Load() != 0 {
			t.Errorf("%s: %d machines on %d connections, %d resumed", how, len(seen.bodies), seen.connections.Load(), seen.resumed.Load())
		}
		if l.perSecond <= 0 || l.half <= 0 || l.most < l.half {
			t.Errorf("%s: %s", how, l.text())
		}
	}
}

// One machine that is refused fails the run.
func TestLoadFailsOnRefusal(t *testing.T) {
	seen := &machinesSeen{bodies: map[string]int{}, refuse: "xxx"}
	target := seen.start(t)
	requests, err := made(20, named(target))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.load(t.Context(), requests); err == nil || !strings.Contains(err.Error(), "403 instead of 201: not you") {
		t.Errorf("the error is %v", err)
	}
}
