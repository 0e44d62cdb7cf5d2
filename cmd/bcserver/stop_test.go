package main_test

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

const mintBody = `{"tenantId": "acme", "poolId": "lab", "ttlSeconds": 3600, "idempotencyKey": "in-flight"}`

// TestStop_CallsFinishAndStreamsEnd holds what a stop promises: streams end at
// once and whole, new connections are refused, calls in flight finish, and the
// process ends with 0.
func TestStop_CallsFinishAndStreamsEnd(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
				s := serve(t, storetest.EmptyURL(t, kind))
				ops := withLab(t, s, s.admin(t))
				var streams []*watcher
				for range 20 {
					streams = append(streams, watch(t, s, ops))
				}
				call, rest := half(t, s, ops, "joinTokens.create", mintBody)
				asked := time.Now()
				s.signal(t, signal)
				for _, w := range streams {
					if err := within(t, "the end of a stream", w.ended); err != nil {
						t.Errorf("a stream broke off: %v", err)
					}
				}
				eventually(t, "new connections are refused", func() bool {
					c, err := net.Dial("tcp", s.address())
					if err == nil {
						c.Close()
					}
					return err != nil
				})
				select {
				case <-s.ended:
					t.Fatal("the process ended before the call")
				default:
				}
				call.say(rest)
				if ok[minted](t, call.answer(t, "POST")).Token == "" {
					t.Error("the call in flight has no token")
				}
				if code := s.exit(t); code != 0 {
					t.Errorf("exit code %d", code)
				}
				if took := time.Since(asked); took > stopTime {
					t.Errorf("the stop took %v", took)
				}
				db := connect(t, s.db)
				wantNumber(t, db, 1, "SELECT count(*) FROM join_tokens")
				wantNumber(t, db, 0, "SELECT count(*) FROM leases")
			})
		})
	}
}

// TestStop_DoesNotWaitForEver holds that callers who never finish, or never
// begin, cannot keep the process.
func TestStop_DoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	s := serve(t, storetest.EmptyURL(t, storetest.SQLite))
	ops := withLab(t, s, s.admin(t))
	call, _ := half(t, s, ops, "joinTokens.create", mintBody)
	for range 20 {
		dial(t, s)
	}
	headers := dial(t, s)
	headers.say("POST " + pathOf("joinTokens.create") + " HTTP/1.1\r\nHost: bc\r\nX-Slow: ")
	s.stops(t, syscall.SIGTERM)
	call.closed(t)
	wantNumber(t, connect(t, s.db), 0, "SELECT count(*) FROM join_tokens")
}

// TestStop_RecordsWhatWasRefused holds that refusals are counted up to the end.
func TestStop_RecordsWhatWasRefused(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		s := serve(t, storetest.EmptyURL(t, kind))
		admin := s.admin(t)
		withLab(t, s, admin)
		auditor := newKey(t, s, admin, "eve", "pool-auditor")
		for range 3 {
			s.call(t, auditor, "joinTokens.create", mint("denied")).refused(t, "PERMISSION_DENIED")
		}
		s.stops(t, syscall.SIGTERM)
		wantNumber(t, connect(t, s.db), 3, "SELECT sum(count) FROM denials WHERE principal = 'acme/eve' AND action = 'compute:join-tokens:create'")
	})
}

// TestStop_WhileStarting holds that a start that waits for another one's
// migration can be stopped.
func TestStop_WhileStarting(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t, storetest.Postgres)
	db := connect(t, url)
	execute(t, db, "BEGIN; LOCK TABLE schema_migrations")
	s := launchServer(t, setting{}, t.TempDir(), url)
	other := connect(t, url)
	eventually(t, "the start waits", func() bool {
		return number(t, other, "SELECT count(*) FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())") > 0
	})
	asked := time.Now()
	s.signal(t, syscall.SIGTERM)
	s.exit(t)
	if took := time.Since(asked); took > stopTime {
		t.Errorf("the stop took %v", took)
	}
	if out := s.stdout.String(); out != "" {
		t.Errorf("stdout is %q", out)
	}
}
