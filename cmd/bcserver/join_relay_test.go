package main_test

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// A relay carries connections to an address. Armed, it stalls once, on the
// connection on which what it waits for has been said: a server behind it, or
// before it, is then held at that very point, and nothing in it knows.
type relay struct {
	address string // where it listens
	target  string
	stall   stall
	armed   atomic.Bool
	stalled chan stalled

	mu    sync.Mutex
	open  []net.Conn
	ended bool
	all   sync.WaitGroup
}

// A stall is where a relay stops.
type stall struct {
	after   []string // what is said towards the target, one after the other; nothing: anything
	request bool     // the last of it never reaches the target; otherwise it does, and the answer comes never
}

// What was stalled can be delivered later on.
type stalled struct {
	target net.Conn
	chunk  []byte
	ended  chan struct{} // closed when the target has closed the connection
}

func newRelay(t testing.TB, target string, at stall) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{address: listener.Addr().String(), target: target, stall: at, stalled: make(chan stalled, 1)}
	r.all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			r.all.Go(func() { r.carry(t, client) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		r.mu.Lock()
		r.ended = true
		r.mu.Unlock()
		r.cut()
		r.all.Wait()
	})
	return r
}

// cut closes all connections, at both ends.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.open {
		c.Close()
	}
}

// keep notes what there is to cut, unless all is over.
func (r *relay) keep(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = append(r.open, conns...)
	return !r.ended
}

// carry carries one connection. Where a request was stalled, the target does not
// hear of the client's end: what was said may still arrive.
func (r *relay) carry(t testing.TB, client net.Conn) {
	defer client.Close()
	target, err := net.Dial("tcp", r.target)
	if err != nil {
		t.Error(err)
		return
	}
	if !r.keep(client, target) {
		target.Close()
		return
	}
	var there, back atomic.Bool // what is swallowed
	ended := make(chan struct{})
	r.all.Go(func() {
		defer close(ended)
		defer client.Close()
		pump(client, target, &back, func([]byte) bool { return true })
	})
	said, done := 0, false
	pump(target, client, &there, func(chunk []byte) bool {
		if done || !r.armed.Load() {
			return true
		}
		for said < len(r.stall.after) && bytes.Contains(chunk, []byte(r.stall.after[said])) {
			said++
		}
		if said == len(r.stall.after) && r.armed.CompareAndSwap(true, false) {
			done = true
			there.Store(r.stall.request)
			back.Store(true)
			r.stalled <- stalled{target, bytes.Clone(chunk), ended}
		}
		return true
	})
	if !there.Load() {
		target.Close()
	}
}

// deliver sends a statement that was stalled to Postgres, with a good-bye of
// the protocol, and returns when it was carried out.
func (s stalled) deliver(t testing.TB) {
	t.Helper()
	terminate := []byte{'X', 0, 0, 0, 4}
	if _, err := s.target.Write(append(s.chunk, terminate...)); err != nil {
		t.Fatal(err)
	}
	within(t, "the end of the connection", s.ended)
}
