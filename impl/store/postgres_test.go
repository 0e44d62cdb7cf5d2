package store_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// kill ends other connections to db's database, as a restart of the server does.
func kill(t *testing.T, db *store.DB, which string, args ...any) {
	t.Helper()
	var ended []bool
	must(t, db.Query(t.Context(), "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE "+
		"datname = current_database() AND pid <> pg_backend_pid() AND "+which, args...).Scan(&ended))
	if len(ended) == 0 {
		t.Fatal("there was nothing to terminate")
	}
}

func openPostgres(t *testing.T) (db, killer *store.DB) {
	t.Helper()
	db = open(t, storetest.URL(t, storetest.Postgres))
	withLab(t, db)
	return db, storetest.Replica(t, db)
}

func TestPostgres_TerminatedInATransaction(t *testing.T) {
	t.Parallel()
	db, killer := openPostgres(t)
	for name, after := range map[string]func(tx *store.Tx) error{
		"then commits": func(*store.Tx) error { return nil },
		"then writes":  func(tx *store.Tx) error { return createSite(t, tx, "acme", "half") },
		"then reads":   func(tx *store.Tx) error { _, err := tx.Pool(t.Context(), "acme", "lab"); return err },
	} {
		err := db.Write(t.Context(), func(tx *store.Tx) error {
			if _, err := tx.MintToken(t.Context(), token(tx, tokenID(1))); err != nil {
				return err
			}
			var pid int
			must(t, tx.Query(t.Context(), "SELECT pg_backend_pid()").Scan(&pid))
			kill(t, killer, "pid = ?", pid)
			return after(tx)
		})
		t.Log(name, err)
		wantCode(t, err, problem.Unavailable)
	}
	if tokens, half := count(t, db, "join_tokens"), count(t, db, "sites WHERE site_id = 'half'"); tokens+half != 0 {
		t.Errorf("%d tokens and %d sites of broken transactions", tokens, half)
	}
	mint(t, db, tokenID(1), nil)
	if n := count(t, db, "events WHERE type = 'security.join-token.created'"); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
}

func TestPostgres_TerminatedWhileIdle_NextCallsWork(t *testing.T) {
	t.Parallel()
	db, killer := openPostgres(t)
	for round := range 3 {
		fill := make(chan struct{}) // every connection of the pool is open
		together(4, func(i int) {
			_ = db.Write(t.Context(), func(*store.Tx) error {
				if i == 0 {
					for db.Stats().InUse < 4 {
						runtime.Gosched()
					}
					close(fill)
				}
				<-fill
				return nil
			})
		})
		kill(t, killer, "TRUE")
		if round%2 == 0 {
			mint(t, db, tokenID(round), nil)
		} else if _, err := db.Pool(t.Context(), "acme", "lab"); err != nil {
			t.Error(err)
		}
	}
}

func TestPostgres_RestartUnderLoad_FailsUnavailableThenRecovers(t *testing.T) {
	t.Parallel()
	db, killer := openPostgres(t)
	const workers, each = 4, 40
	together(workers+1, func(i int) {
		if i == workers {
			for range 10 {
				var ended []bool
				err := killer.Query(t.Context(), "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()").Scan(&ended)
				if err != nil {
					t.Error(err)
				}
			}
			return
		}
		for n := range each {
			id := tokenID(i*each + n)
			for { // as a client retries
				err := db.Write(t.Context(), func(tx *store.Tx) error {
					_, err := tx.MintToken(t.Context(), token(tx, id))
					return err
				})
				if err == nil {
					break
				}
				if wantCode(t, err, problem.Unavailable); t.Failed() {
					return
				}
			}
		}
	})
	tokens, published := count(t, db, "join_tokens"), count(t, db, "events WHERE type = 'security.join-token.created'")
	if tokens != workers*each || published != tokens {
		t.Errorf("%d tokens and %d events, want %d each", tokens, published, workers*each)
	}
}

func TestPostgres_StatementFails_IsNotUnavailable(t *testing.T) {
	t.Parallel()
	db, _ := openPostgres(t)
	var n int
	err := db.Query(t.Context(), "SELECT 1 / 0").Scan(&n)
	if err == nil || fault.From(err).Code != problem.Internal {
		t.Errorf("error is %v, want INTERNAL", err)
	}
}

// Whoever loses a deadlock may try again; the other one goes on.
func TestPostgres_Deadlock_IsUnavailable(t *testing.T) {
	t.Parallel()
	db, _ := openPostgres(t)
	for n := range 2 {
		mint(t, db, tokenID(n), nil)
	}
	var both sync.WaitGroup
	both.Add(2)
	errs := make([]error, 2)
	together(2, func(i int) {
		errs[i] = db.Write(t.Context(), func(tx *store.Tx) error {
			const touch = "UPDATE join_tokens SET uses = uses + 1 WHERE id = ?"
			err := tx.Exec(t.Context(), touch, tokenID(i))
			both.Done()
			both.Wait()
			if err != nil {
				return err
			}
			return tx.Exec(t.Context(), touch, tokenID(1-i))
		})
	})
	lost := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if lost < 0 || errs[1-lost] != nil {
		t.Fatalf("errors %v, want one", errs)
	}
	wantCode(t, errs[lost], problem.Unavailable)
	if n := count(t, db, "join_tokens WHERE uses = 1"); n != 2 {
		t.Errorf("%d tokens were changed, want 2", n)
	}
}

// wiretap passes connections on to a Postgres server and keeps the kinds of the
// messages that clients send after the first.
type wiretap struct {
	net.Listener
	mu    sync.Mutex
	kinds string
	next  func()       // called when the next message comes
	cut   sync.RWMutex // while it is locked, nothing reaches the server
}

func newWiretap(t *testing.T, server string) *wiretap {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	tap := &wiretap{Listener: listener}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				t.Error(err)
				_ = client.Close()
				return
			}
			wg.Go(func() { _, _ = io.Copy(client, upstream); _ = client.Close() })
			wg.Go(func() { tap.listen(client, upstream); _ = upstream.Close() })
		}
	})
	return tap
}

// listen passes on one client's messages, noting each before it: but for the
// first, they begin with their kind, then comes the length without the kind.
func (tap *wiretap) listen(client io.Reader, upstream io.Writer) {
	r := bufio.NewReader(client)
	for header := 4; ; header = 5 {
		message := make([]byte, header)
		if _, err := io.ReadFull(r, message); err != nil {
			return
		}
		rest := make([]byte, binary.BigEndian.Uint32(message[header-4:])-4)
		if _, err := io.ReadFull(r, rest); err != nil {
			return
		}
		if header == 5 {
			tap.mu.Lock()
			tap.kinds += string(message[:1])
			if tap.next != nil {
				tap.next()
				tap.next = nil
			}
			tap.mu.Unlock()
		}
		tap.cut.RLock()
		_, err := upstream.Write(append(message, rest...))
		tap.cut.RUnlock()
		if err != nil {
			return
		}
	}
}

func (tap *wiretap) take() string {
	tap.mu.Lock()
	defer tap.mu.Unlock()
	defer func() { tap.kinds = "" }()
	return tap.kinds
}

// onMessage calls fn when the next message comes from a client.
func (tap *wiretap) onMessage(fn func()) {
	tap.mu.Lock()
	defer tap.mu.Unlock()
	tap.next = fn
}

func openTapped(t *testing.T) (*store.DB, *wiretap) {
	t.Helper()
	u, err := url.Parse(storetest.URL(t, storetest.Postgres))
	must(t, err)
	tap := newWiretap(t, u.Host)
	u.Host = tap.Addr().String()
	db := open(t, u.String())
	withLab(t, db)
	return db, tap
}

func TestPostgres_OneRoundTripPerStatement(t *testing.T) {
	t.Parallel()
	db, tap := openTapped(t)
	tap.take()
	mint(t, db, tokenID(1), nil)
	if got := tap.take(); got != "QQQQ" { // simple queries: begin, token, event, commit
		t.Errorf("minting sent messages %q, want QQQQ", got)
	}
	if _, err := db.JoinToken(t.Context(), tokenID(1)); err != nil {
		t.Error(err)
	}
	if got := tap.take(); got != "Q" {
		t.Errorf("reading sent messages %q, want Q", got)
	}
}

// A server that is cut off answers nothing, not even a cancellation.
func TestPostgres_CutOff_CallsEndWithTheirContexts(t *testing.T) {
	t.Parallel()
	db, tap := openTapped(t)
	for name, call := range map[string]func(ctx context.Context, cancel func()) error{
		"read": func(ctx context.Context, cancel func()) error {
			tap.cut.Lock()
			tap.onMessage(cancel)
			_, err := db.Pool(ctx, "acme", "lab")
			return err
		},
		"commit": func(ctx context.Context, cancel func()) error {
			return db.Write(ctx, func(tx *store.Tx) error {
				err := createSite(t, tx, "acme", "cut-off")
				tap.cut.Lock()
				tap.onMessage(cancel)
				return err
			})
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		err := call(ctx, cancel)
		tap.cut.Unlock()
		cancel()
		if fault.From(err).Code != problem.Unavailable {
			t.Errorf("%s: error is %v", name, err)
		}
		if _, err := db.Pool(t.Context(), "acme", "lab"); err != nil {
			t.Errorf("%s: the next call says %v", name, err)
		}
	}
}
