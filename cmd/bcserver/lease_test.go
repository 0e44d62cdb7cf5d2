package main_test

import (
	"syscall"
	"testing"

	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// TestLease_PassesToAnotherServer holds that when the server that gives events
// their positions ends, whether it is asked to or killed, another one goes on,
// and that streams miss nothing.
func TestLease_PassesToAnotherServer(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"stopped": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
				first := serve(t, storetest.EmptyURL(t, kind))
				ops := withLab(t, first, first.admin(t))
				db := connect(t, first.db)
				positioned(t, db) // by the first, which has the lease
				holder := leaseHolder(t, first)
				second := serve(t, first.db)
				w := watch(t, second, ops)
				ok[minted](t, second.call(t, ops, "joinTokens.create", mint("before")))
				w.next(t, "security.join-token.created")
				if now := leaseHolder(t, first); now != holder {
					t.Fatalf("the lease went from %s to %s though its holder lives", holder, now)
				}
				first.signal(t, signal)
				first.exit(t)
				ok[minted](t, second.call(t, ops, "joinTokens.create", mint("after")))
				w.next(t, "security.join-token.created")
				if leaseHolder(t, second) == holder {
					t.Error("the lease is still that of the server that ended")
				}
			})
		})
	}
}

func leaseHolder(t testing.TB, s *server) (owner string) {
	t.Helper()
	if err := connect(t, s.db).QueryRow("SELECT owner FROM leases WHERE name = 'event-sequencer'").Scan(&owner); err != nil {
		t.Fatal(err)
	}
	return owner
}
