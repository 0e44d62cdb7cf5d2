package main_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// A wire lies between a server and Postgres. Armed, it breaks once: after the
// next COMMIT has taken effect and before the server hears of it.
type wire struct {
	url   string // of the database, through the wire
	armed atomic.Bool
	dead  atomic.Pointer[atomic.Bool] // whether what is carried now is swallowed
}

// swallow makes all connections that there are silent for ever: they stay open,
// and nothing comes through. New ones work.
func (w *wire) swallow() { w.dead.Swap(new(atomic.Bool)).Store(true) }

func newWire(t testing.TB, db string) *wire {
	t.Helper()
	u, err := url.Parse(db)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target, w := u.Host, &wire{}
	u.Host = listener.Addr().String()
	w.url = u.String()
	w.dead.Store(new(atomic.Bool))
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { w.carry(t, client, target) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		all.Wait() // the server has ended by now, and with it its connections
	})
	return w
}

// carry carries one connection.
func (w *wire) carry(t testing.TB, client net.Conn, target string) {
	defer client.Close()
	database, err := net.Dial("tcp", target)
	if err != nil {
		t.Error(err)
		return
	}
	var broken atomic.Bool
	dead := w.dead.Load()
	var both sync.WaitGroup
	both.Go(func() {
		defer database.Close()
		pump(database, client, dead, func(chunk []byte) bool {
			if bytes.Contains(chunk, []byte("COMMIT\x00")) && w.armed.CompareAndSwap(true, false) {
				broken.Store(true)
			}
			return true
		})
	})
	pump(client, database, dead, func([]byte) bool { return !broken.Load() })
	client.Close()
	both.Wait()
}

// pump copies as long as look allows.
func pump(to, from net.Conn, dead *atomic.Bool, look func([]byte) bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !look(buffer[:n]) {
				return
			}
			if dead.Load() {
				continue
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// TestCommitThatBrokeOff_FirstStartKeepsTheKey holds that where nobody knows
// whether the database has the admin key, the file stays, and opens it.
func TestCommitThatBrokeOff_FirstStartKeepsTheKey(t *testing.T) {
	t.Parallel()
	url, data := storetest.EmptyURL(t, storetest.Postgres), t.TempDir()
	w := newWire(t, url)
	w.armed.Store(true)
	runWith(t, setting{}, "serve", "--listen", "127.0.0.1:0", "--db", w.url, "--data", data).refused(t, 1, "UNAVAILABLE")
	wantNumber(t, connect(t, url), 1, allAPIKeys)

	s := launchServer(t, setting{}, data, url)
	s.ready(t)
	isPlatformAdmin(t, s, s.admin(t))
	wantNumber(t, connect(t, url), 1, allAPIKeys)
}

// TestCommitThatBrokeOff_KeyTells holds that a create whose commit broke off is
// UNAVAILABLE, and that the same call then returns the record that was made.
func TestCommitThatBrokeOff_KeyTells(t *testing.T) {
	t.Parallel()
	w := newWire(t, storetest.EmptyURL(t, storetest.Postgres))
	s := serve(t, w.url)
	ops := withLab(t, s, s.admin(t))
	db := connect(t, w.url)
	broke := 0
	for i := range 50 { // the sequencer commits too, and may be the one that it hits
		key := mint(fmt.Sprint("call-", i))
		w.armed.Store(true)
		a := s.call(t, ops, "joinTokens.create", key)
		w.armed.Store(false)
		if a.status == http.StatusOK {
			continue
		}
		a.refused(t, "UNAVAILABLE")
		if a.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		again := ok[minted](t, s.call(t, ops, "joinTokens.create", key))
		if again.Token != "" {
			t.Error("a repeated call was answered with a token")
		}
		again.id(t)
		broke++
	}
	if broke == 0 {
		t.Fatal("no commit broke off")
	}
	wantNumber(t, db, 0, tokensWithoutOneEvent)
	wantNumber(t, db, number(t, db, "SELECT count(*) FROM join_tokens"), createDecisions)
}

const (
	tokensWithoutOneEvent = `SELECT count(*) FROM join_tokens AS t WHERE 1 <> (
		SELECT count(*) FROM events AS e WHERE e.subject = t.id AND e.type = 'security.join-token.created')`
	createDecisions = "SELECT count(*) FROM decisions WHERE action = 'compute:join-tokens:create'"
)
