package main_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// A crash is a server that died while it admitted a machine.
type crash struct {
	ledger  *ledger // as it was found after the death
	token   string
	ops     string
	machine newcomer
	late    *stalled       // the last statement of the dead server, which may still arrive
	another func() *server // another server on the database
}

// The points of NJ-3 at which a server is killed.
const (
	afterClaim = "claimed" // and before the certificate is signed
	afterSign  = "signed"  // and before it is stored
	afterStore = "stored"  // and before the answer is sent
)

var crashPoints = []string{afterClaim, afterSign, afterStore}

// crashAt kills a server at a point, and checks that it is the point.
func crashAt(t *testing.T, kind storetest.Kind, point string) crash {
	t.Helper()
	var c crash
	if kind == storetest.Postgres {
		c = crashOnPostgres(t, point)
	} else {
		c = crashOnSQLite(t, point)
	}
	c.ledger.read(t)
	if c.ledger.chain.Valid != (point == afterStore) {
		t.Fatalf("the server died too late or too early: the chain is there: %t", c.ledger.chain.Valid)
	}
	c.ledger.usedOnce(t)
	return c
}

// comes makes a machine and a token for it.
func (c *crash) comes(t testing.TB, s *server, db *sql.DB) {
	t.Helper()
	var id string
	c.token, id = s.joinToken(t, c.ops, 1)
	c.ledger, c.machine = newLedger(db, id, s.db), newNewcomer(t)
}

// TestNJ_3_JoinOutlivesItsServer holds that a machine whose server dies while it joins
// gets its certificate of another process by the same request: the same node,
// serial and dates, and no second use, however far the dead one had come, and
// one certificate however often it asks at once.
func TestNJ_3_JoinOutlivesItsServer(t *testing.T) {
	t.Parallel()
	for _, point := range crashPoints {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
				c := crashAt(t, kind, point)
				s := c.another()
				answers := make([]answer, 8)
				together(len(answers), func(i int) { // an impatient machine
					a, err := s.tryJoin(t.Context(), c.token, c.machine)
					if err != nil {
						t.Errorf("no answer: %v", err)
					}
					answers[i] = a
				})
				for _, a := range answers {
					c.ledger.repeats(t, nil, c.machine, admission(t, a))
				}
				c.ledger.repeats(t, s, c.machine, s.joined(t, c.token, c.machine))
				c.ledger.usedOnce(t)
				s.call(t, c.token, "nodes.join", object{"csr": newNewcomer(t).csr, "claims": object{}}).refused(t, "UNAUTHENTICATED")
			})
		})
	}
}

// TestNJ_3_JoinOfADeadServerIsStoredLate holds that where the database
// carries out what a dead server has said last, there is one certificate
// nevertheless: who came first has stored it, and the machine has that one.
func TestNJ_3_JoinOfADeadServerIsStoredLate(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{true, false} {
		t.Run(fmt.Sprintf("before the machine calls again: %t", before), func(t *testing.T) {
			t.Parallel()
			c := crashAt(t, storetest.Postgres, afterSign)
			s := c.another()
			if before {
				c.late.deliver(t)
				if c.ledger.read(t); !c.ledger.chain.Valid {
					t.Fatal("the statement was not carried out")
				}
			}
			first := s.joined(t, c.token, c.machine)
			if !before {
				c.late.deliver(t)
			}
			c.ledger.repeats(t, nil, c.machine, first)
			c.ledger.repeats(t, s, c.machine, s.joined(t, c.token, c.machine))
			c.ledger.usedOnce(t)
		})
	}
}
