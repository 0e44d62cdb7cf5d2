package store_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

func TestJR_ApproveRacesDeny_OneWinsOneEvent(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		rounds := 40
		if !isPostgres(db) {
			rounds = 10
		}
		mint(t, db, tokenID(1), func(token *store.JoinToken) { token.MaxUses = 1000 })
		handles := replicas(t, db)
		denials := 0
		for round := range rounds {
			q := deferred(t, db, newRequest(tokenID(1), fmt.Sprint(round)))
			answers := make([]string, 4)
			together(4, func(i int) {
				decide := map[int]func(testing.TB, *store.DB, store.JoinRequest) (store.JoinRequest, error){0: approve, 1: deny}[i%2]
				made, err := decide(t, handles[i/2], q)
				answers[i] = made.Status
				if err != nil {
					answers[i] = string(fault.From(err).Code)
				}
			})
			// Whoever denies wins in the end; who approves comes before, or is told.
			status := request(t, db, q.ID).Status
			if status != "denied" || answers[1] != "denied" || answers[3] != "denied" {
				t.Fatalf("round %d: %s, answers %v", round, status, answers)
			}
			for _, answer := range []string{answers[0], answers[2]} {
				if answer != "approved" && answer != "INVALID_STATE" {
					t.Fatalf("round %d: approve answers %s", round, answer)
				}
			}
			approvals := count(t, db, "events WHERE type = 'security.join-request.approved' AND subject = '"+q.ID+"'")
			if want := slices.Contains(answers, "approved"); approvals != map[bool]int{true: 1}[want] {
				t.Fatalf("round %d: %d events for answers %v", round, approvals, answers)
			}
			denials++
		}
		if n := published(t, db, "security.join-request.denied"); n != denials {
			t.Errorf("%d events for %d denials", n, denials)
		}
	})
}

// Of an approval that is collected while it is taken back, one wins: it was
// consumed and there is a node, or it was denied and there is none.
func TestJR_3_CollectRacesDeny(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		rounds := 20
		if !isPostgres(db) {
			rounds = 6
		}
		mint(t, db, tokenID(1), func(token *store.JoinToken) { token.MaxUses = 1000 })
		handles := replicas(t, db)
		for round := range rounds {
			name := fmt.Sprint(round)
			q := approved(t, db, newRequest(tokenID(1), name))
			c := newClaim(tokenID(1), name)
			c.RequestID = q.ID
			var outcome store.ClaimOutcome
			var denied, failed error
			together(2, func(i int) {
				if i == 0 {
					outcome, failed = handles[0].ClaimJoin(t.Context(), c)
				} else {
					_, denied = deny(t, handles[1], q)
				}
			})
			must(t, failed)
			got := fmt.Sprint(outcome, " ", fault.From(denied).Code, " ", request(t, db, q.ID).Status, " ", count(t, db, "nodes WHERE id = '"+c.Node.ID+"'"))
			won, lost := fmt.Sprint(store.Claimed, " INVALID_STATE consumed 1"), fmt.Sprint(store.Overtaken, " ", fault.From(nil).Code, " denied 0")
			if got != won && got != lost {
				t.Fatalf("round %d: %s, want %s or %s", round, got, won, lost)
			}
		}
	})
}

func TestJR_1_ParallelRetriesConsumeAnApprovalOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		rounds := 10
		if !isPostgres(db) {
			rounds = 4
		}
		mint(t, db, tokenID(1), func(token *store.JoinToken) { token.MaxUses = 1000 })
		handles := replicas(t, db)
		for round := range rounds {
			name := fmt.Sprint(round)
			q := approved(t, db, newRequest(tokenID(1), name))
			outcomes := make([]store.ClaimOutcome, 16)
			together(16, func(i int) {
				c := newClaim(tokenID(1), name) // as each call makes it: another node, another certificate
				c.Node.ID = fmt.Sprint("nd_", round, "-", i)
				c.Certificate.NodeID, c.Certificate.Serial, c.RequestID = c.Node.ID, sum(c.Node.ID), q.ID
				var err error
				if outcomes[i], err = handles[i%2].ClaimJoin(t.Context(), c); err != nil {
					t.Error(err)
				}
			})
			if got, want := tally(outcomes), fmt.Sprintf("%d:1 %d:15", store.Claimed, store.Repeated); got != want {
				t.Fatalf("round %d: outcomes %s, want %s", round, got, want)
			}
			use, err := db.JoinUse(t.Context(), tokenID(1), q.CSRSHA256)
			must(t, err)
			if q := request(t, db, q.ID); q.Status != "consumed" || q.NodeID != use.NodeID {
				t.Fatalf("round %d: request %+v, use %+v", round, q, use)
			}
		}
		token, err := db.JoinToken(t.Context(), tokenID(1))
		must(t, err)
		for what, n := range map[string]int{"uses": int(token.Uses), "nodes": count(t, db, "nodes"), "events": published(t, db, "security.join-request.consumed")} {
			if n != rounds {
				t.Errorf("%d %s of %d approvals", n, what, rounds)
			}
		}
	})
}

// A token that is revoked while a machine asks, an operator approves and the
// machine collects leaves nothing that waits.
func TestJR_5_RevokingCancelsInTheSameTransaction(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		rounds := 20
		if !isPostgres(db) {
			rounds = 6
		}
		handles := replicas(t, db)
		for round := range rounds {
			id := tokenID(round)
			mint(t, db, id, func(token *store.JoinToken) { token.MaxUses = 1000 })
			one := deferred(t, db, newRequest(id, fmt.Sprint("one", round)))
			two := approved(t, db, newRequest(id, fmt.Sprint("two", round)))
			c := newClaim(id, fmt.Sprint("two", round))
			c.RequestID = two.ID
			var outcome store.ClaimOutcome
			together(4, func(i int) {
				var err error
				switch i {
				case 0:
					_, _, err = handles[0].DeferJoin(t.Context(), newRequest(id, fmt.Sprint("three", round)))
				case 1:
					if _, err = approve(t, handles[1], one); fault.Is(err, problem.InvalidState) {
						err = nil
					}
				case 2:
					outcome, err = handles[0].ClaimJoin(t.Context(), c)
				case 3:
					err = handles[1].Write(t.Context(), func(tx *store.Tx) error {
						_, _, err := tx.RevokeToken(t.Context(), "acme", "lab", id, "acme/ops")
						return err
					})
				}
				if err != nil {
					t.Error(err)
				}
			})
			if n := count(t, db, "join_requests WHERE ended_at IS NULL AND token_id = '"+id+"'"); n != 0 {
				t.Fatalf("round %d: %d requests of a revoked token wait", round, n)
			}
			if got, want := request(t, db, two.ID).Status, map[store.ClaimOutcome]string{store.Claimed: "consumed", store.TokenEnded: "canceled"}[outcome]; got != want {
				t.Fatalf("round %d: outcome %d, and the request is %s", round, outcome, got)
			}
		}
		ended := count(t, db, "join_requests WHERE status = 'canceled'")
		if n := published(t, db, "security.join-request.canceled"); n != ended {
			t.Errorf("%d events for %d canceled requests", n, ended)
		}
	})
}

func TestJR_5_TenThousandApprovalsNeverCollected(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		mint(t, db, tokenID(1), func(token *store.JoinToken) { token.MaxUses = 10_000 })
		first := approved(t, db, newRequest(tokenID(1), "first"))
		many := 10_000
		if !isPostgres(db) {
			many = 1500 // it is slow under the race detector, and more batches show no more
		}
		copyRequest(t, db, first, many-1, 0) // the queue itself never lets so many in
		clock.Advance(store.ApprovalLife - time.Microsecond)
		n, err := db.ExpireRequests(t.Context(), 10)
		if must(t, err); n != 0 {
			t.Errorf("%d expired too early", n)
		}
		clock.Advance(time.Microsecond)
		handles := replicas(t, db)
		var expired atomic.Int64
		together(2, func(i int) {
			for {
				n, err := handles[i].ExpireRequests(t.Context(), 500)
				if err != nil {
					t.Error(err)
				}
				if n > 500 {
					t.Errorf("a batch of %d", n)
				}
				if expired.Add(int64(n)); n == 0 {
					return
				}
			}
		})
		subjects := count(t, db, "(SELECT DISTINCT subject FROM events WHERE type = 'security.join-request.expired') AS subjects")
		if n := published(t, db, "security.join-request.expired"); expired.Load() != int64(many) || n != many || subjects != many {
			t.Errorf("%d expired, %d events about %d requests; want %d", expired.Load(), n, subjects, many)
		}
		if n := count(t, db, "join_requests WHERE status <> 'expired' OR ended_at IS NULL"); n != 0 {
			t.Errorf("%d are still there", n)
		}

		clock.Advance(30 * 24 * time.Hour)
		before := clock.Now().Add(-30 * 24 * time.Hour)
		if n, err := db.ForgetRequests(t.Context(), before, 500); n != 0 || err != nil {
			t.Errorf("%d forgotten too early, error %v", n, err)
		}
		var forgotten atomic.Int64
		together(2, func(i int) {
			for {
				n, err := handles[i].ForgetRequests(t.Context(), before.Add(time.Microsecond), 500)
				if err != nil {
					t.Error(err)
				}
				if forgotten.Add(int64(n)); n == 0 {
					return
				}
			}
		})
		if left := count(t, db, "join_requests"); forgotten.Load() != int64(many) || left != 0 {
			t.Errorf("%d forgotten, %d left", forgotten.Load(), left)
		}
	})
}
