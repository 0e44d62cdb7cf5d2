package main_test

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A wire is a proxy on the way to a server, which cannot look into TLS, but can
// be cut.
type wire struct {
	listener net.Listener
	to       string
	// cut loses answers that are as large as a certificate: the connection
	// breaks before all of it has arrived.
	cut atomic.Bool

	mu    sync.Mutex
	conns []net.Conn
	lost  atomic.Int64 // answers
}

// newWire leads to a server.
func newWire(t testing.TB, s *server) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w := &wire{listener: l, to: strings.TrimPrefix(s.url, "https://")}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			done.Go(func() { w.carry(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		w.mu.Lock()
		for _, c := range w.conns {
			c.Close()
		}
		w.mu.Unlock()
		done.Wait()
	})
	return w
}

func (w *wire) url() string { return "https://" + w.listener.Addr().String() }

// large is more than the answer to a report has, and less than a certificate with its chain.
const large = 1500 // bytes

// carry carries one connection.
func (w *wire) carry(caller net.Conn) {
	server, err := net.Dial("tcp", w.to)
	if err != nil {
		caller.Close()
		return
	}
	w.mu.Lock()
	w.conns = append(w.conns, caller, server)
	w.mu.Unlock()
	var greeted, asked atomic.Bool // the server has begun its half of the handshake; the caller has ended its own
	var answer atomic.Int64        // bytes since the caller has spoken last
	var done sync.WaitGroup
	done.Go(func() {
		defer server.Close()
		for buffer := make([]byte, 64<<10); ; {
			n, err := caller.Read(buffer)
			if n > 0 && greeted.Load() {
				asked.Store(true)
			}
			answer.Store(0)
			if _, wrong := server.Write(buffer[:n]); wrong != nil || err != nil {
				return
			}
		}
	})
	for buffer := make([]byte, 64<<10); ; {
		n, err := server.Read(buffer)
		greeted.Store(true)
		if answer.Add(int64(n)) > large && asked.Load() && w.cut.Load() {
			w.lost.Add(1)
			break
		}
		if _, wrong := caller.Write(buffer[:n]); wrong != nil || err != nil {
			break
		}
	}
	caller.Close()
	done.Wait()
}
