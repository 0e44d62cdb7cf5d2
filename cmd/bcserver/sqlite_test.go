package main_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// TestSQLite_WhileAnotherProcessWritesCallsWait holds that calls wait for the
// write lock of another process, that reads do not, and that none is lost.
func TestSQLite_WhileAnotherProcessWritesCallsWait(t *testing.T) {
	t.Parallel()
	s := serve(t, storetest.EmptyURL(t, storetest.SQLite))
	ops := withLab(t, s, s.admin(t))
	db := connect(t, s.db)
	execute(t, db, "BEGIN IMMEDIATE")
	waiting := metric(t, s, "bc_db_waits_total")
	const calls = 8
	var all sync.WaitGroup
	answers := make([]answer, calls)
	for i := range calls {
		all.Go(func() {
			a, err := s.try(t.Context(), ops, "joinTokens.create", mint(fmt.Sprint("waits-", i)))
			if err != nil {
				t.Errorf("no answer: %v", err)
			}
			answers[i] = a
		})
	}
	eventually(t, "all calls but the first wait for the one writing connection", func() bool {
		return metric(t, s, "bc_db_waits_total") >= waiting+calls-1
	})
	ok[object](t, s.call(t, ops, "joinTokens.list", object{"tenantId": "acme", "poolId": "lab"}))
	if a := s.get(t, "/readyz"); a.status != 200 {
		t.Errorf("/readyz answers %d", a.status)
	}
	wantNumber(t, db, 0, "SELECT count(*) FROM join_tokens")
	execute(t, db, "COMMIT")
	all.Wait()
	for _, a := range answers {
		if ok[minted](t, a).Token == "" {
			t.Error("a call has no token")
		}
	}
	wantNumber(t, db, calls, "SELECT count(*) FROM join_tokens")
	wantNumber(t, db, 0, tokensWithoutOneEvent)
}

// TestSQLite_WhileAnotherProcessWritesForLongCallsAreUnavailable holds that a
// call does not wait for ever, and that the server works again afterwards.
func TestSQLite_WhileAnotherProcessWritesForLongCallsAreUnavailable(t *testing.T) {
	t.Parallel()
	s := serve(t, storetest.EmptyURL(t, storetest.SQLite))
	ops := withLab(t, s, s.admin(t))
	db := connect(t, s.db)
	execute(t, db, "BEGIN IMMEDIATE")
	began := time.Now()
	for i, a := range race(t, []*server{s}, ops, "joinTokens.create", mint("waits")) {
		if a.refused(t, "UNAVAILABLE"); a.header.Get("Retry-After") == "" {
			t.Errorf("answer %d has no Retry-After", i)
		}
	}
	if took := time.Since(began); took > callTime {
		t.Errorf("the answers took %v", took)
	}
	execute(t, db, "COMMIT")
	if ok[minted](t, s.call(t, ops, "joinTokens.create", mint("waits"))).Token == "" {
		t.Error("the call that works has no token")
	}
	wantNumber(t, db, 1, "SELECT count(*) FROM join_tokens")
}

// TestSQLite_TwoServersOnOneFile holds that two processes on one file both work,
// and that the rules hold across them.
func TestSQLite_TwoServersOnOneFile(t *testing.T) {
	t.Parallel()
	first := serve(t, storetest.EmptyURL(t, storetest.SQLite))
	servers := []*server{first, serve(t, first.db)}
	ops := withLab(t, first, first.admin(t))
	db := connect(t, first.db)
	const clients, each = 8, 10
	together(clients, func(client int) {
		for n := range each {
			a, err := servers[client%2].try(t.Context(), ops, "joinTokens.create", mint(fmt.Sprintf("client-%d-%d", client, n)))
			if err != nil || a.status != 200 {
				t.Errorf("status %d, %v: %s", a.status, err, a.body)
			}
		}
	})
	tokens := 0
	for _, a := range race(t, servers, ops, "joinTokens.create", mint("one-for-all")) {
		if ok[minted](t, a).Token != "" {
			tokens++
		}
	}
	if tokens != 1 {
		t.Errorf("%d answers have a token, want 1", tokens)
	}
	wantNumber(t, db, clients*each+1, "SELECT count(*) FROM join_tokens")
	wantNumber(t, db, 0, tokensWithoutOneEvent)
	positioned(t, db)
	wantNumber(t, db, number(t, db, "SELECT count(*) FROM events"), "SELECT max(position) FROM events")
}
