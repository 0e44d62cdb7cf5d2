package main_test

import (
	"syscall"
	"testing"

	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// TestNJ_3_JoinOfADeadServerIsUndone holds that a claim that nobody has signed
// and no machine has asked for again is undone by a server when its five
// minutes are over: the token has its use back, for the same machine or another.
func TestNJ_3_JoinOfADeadServerIsUndone(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		c := crashAt(t, kind, afterClaim)
		l := c.ledger
		ages := "UPDATE node_certificates SET created_at = created_at - INTERVAL '301 seconds'"
		if kind == storetest.SQLite { // in the form in which times are kept
			ages = "UPDATE node_certificates SET created_at = strftime('%Y-%m-%d %H:%M:%S', created_at, '-301 seconds') || substr(created_at, 20)"
		}
		execute(t, l.db, ages)
		s := c.another()
		if kind == storetest.Postgres { // the chores of this one are not due for a minute
			s.stops(t, syscall.SIGTERM)
			s = joinable(t, t.TempDir(), s.db)
		}
		eventually(t, "the use is given back", func() bool {
			return number(t, l.db, "SELECT uses FROM join_tokens WHERE id = '"+l.token+"'") == 0
		})
		for _, query := range []string{
			"join_uses WHERE token_id = '" + l.token, "nodes WHERE id = '" + l.nodeID,
			"node_certificates WHERE serial = '" + l.serial, "node_identifiers WHERE node_id = '" + l.nodeID,
		} {
			wantNumber(t, l.db, 0, "SELECT count(*) FROM "+query+"'")
		}
		for _, kind := range []string{"joined", "removed"} { // what was said is taken back
			wantNumber(t, l.db, 1, "SELECT count(*) FROM events WHERE subject = '"+l.nodeID+"' AND type = 'security.node."+kind+"'")
		}
		wantNumber(t, l.db, 2, "SELECT count(*) FROM events WHERE subject = '"+l.nodeID+"'")
		first := s.joined(t, c.token, c.machine)
		if first.Replayed || first.NodeID == l.nodeID || first.Serial == l.serial {
			t.Errorf("the machine is admitted as %+v", first)
		}
		l.read(t)
		l.repeats(t, s, c.machine, s.joined(t, c.token, c.machine))
		l.usedOnce(t)
	})
}
