package main_test

import (
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

const (
	rounds  = 50
	callers = 32
)

// replicas starts the servers of a deployment: two on one Postgres, or one on
// SQLite.
func replicas(t testing.TB, kind storetest.Kind) []*server {
	t.Helper()
	servers := []*server{serve(t, storetest.EmptyURL(t, kind))}
	if kind == storetest.Postgres {
		servers = append(servers, serve(t, servers[0].db))
	}
	return servers
}

// together calls fn from n goroutines that are let go at the same time, and
// returns when all are done.
func together(n int, fn func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-start
			fn(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}

// race makes one call from all callers at once, spread over the servers.
func race(t testing.TB, servers []*server, key, method string, in object) []answer {
	t.Helper()
	answers := make([]answer, callers)
	together(callers, func(i int) {
		a, err := servers[i%len(servers)].try(t.Context(), key, method, in)
		if err != nil {
			t.Errorf("no answer: %v", err)
		}
		answers[i] = a
	})
	return answers
}

// TestJT_23_ParallelCreatesWithOneKeyMakeOneToken holds that of calls with one
// idempotency key, on any replica, exactly one makes the token and has its
// bearer, and that all have the same record.
func TestJT_23_ParallelCreatesWithOneKeyMakeOneToken(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		servers := replicas(t, kind)
		admin := servers[0].admin(t)
		ops := withLab(t, servers[0], admin)
		db := connect(t, servers[0].db)
		records := make([]string, rounds)
		for round := range rounds {
			tokens := 0
			for _, a := range race(t, servers, ops, "joinTokens.create", mint(fmt.Sprint("round-", round))) {
				m := ok[minted](t, a)
				if m.Token != "" {
					tokens++
				}
				if records[round] == "" {
					records[round] = string(m.JoinToken)
				}
				if string(m.JoinToken) != records[round] {
					t.Errorf("round %d: two records:\n%s\n%s", round, records[round], m.JoinToken)
				}
			}
			if tokens != 1 {
				t.Errorf("round %d: %d answers have a token", round, tokens)
			}
		}
		wantNumber(t, db, rounds, "SELECT count(*) FROM join_tokens")
		wantNumber(t, db, rounds, "SELECT count(*) FROM events WHERE type = 'security.join-token.created'")
		wantNumber(t, db, 0, tokensWithoutOneEvent)

		replays := func(t *testing.T, key string) {
			before, recorded := decisions(t, servers), number(t, db, allDecisions)
			for round := range rounds {
				m := ok[minted](t, servers[round%len(servers)].call(t, key, "joinTokens.create", mint(fmt.Sprint("round-", round))))
				if m.Token != "" || string(m.JoinToken) != records[round] {
					t.Errorf("round %d: the repeated call has token %t and the record\n%s\nwant none and\n%s", round, m.Token != "", m.JoinToken, records[round])
				}
			}
			if after := decisions(t, servers); after != before {
				t.Errorf("repeated calls made %v decisions", after-before)
			}
			wantNumber(t, db, recorded, allDecisions)
		}
		t.Run("a repeated call asks nobody", func(t *testing.T) { replays(t, ops) })
		auditor := demote(t, servers[0], admin, ops)
		t.Run("nor when the right is gone", func(t *testing.T) {
			replays(t, auditor)
			servers[0].call(t, auditor, "joinTokens.create", mint("another")).refused(t, "PERMISSION_DENIED")
			unauthenticated(t, servers[len(servers)-1], ops)
		})
		wantNumber(t, db, rounds, "SELECT count(*) FROM join_tokens")
		wantNumber(t, db, rounds, "SELECT count(*) FROM events WHERE type = 'security.join-token.created'")
	})
}

const allDecisions = "SELECT count(*) FROM decisions"

// demote takes the key of acme/ops away, and gives the same identity one that
// may not mint.
func demote(t testing.TB, s *server, admin, ops string) (auditor string) {
	t.Helper()
	id := regexp.MustCompile(`^bck_(ak_\w+)\.`).FindStringSubmatch(ops)[1]
	ok[object](t, s.call(t, admin, "apiKeys.revoke", object{"tenantId": "acme", "keyId": id}))
	return newKey(t, s, admin, "ops", "pool-auditor")
}

// decisions adds up what IAM was asked on all servers, as /metrics has it.
func decisions(t testing.TB, servers []*server) (sum float64) {
	t.Helper()
	for _, s := range servers {
		sum += metric(t, s, "bc_decisions_total")
	}
	return sum
}

// metric adds up the samples of one name in /metrics.
func metric(t testing.TB, s *server, name string) (sum float64) {
	t.Helper()
	samples := regexp.MustCompile(`(?m)^`+name+`(?:\{.*\})? (\S+)$`).FindAllStringSubmatch(string(s.get(t, "/metrics").body), -1)
	if len(samples) == 0 {
		t.Fatalf("/metrics has no %s", name)
	}
	for _, sample := range samples {
		value, err := strconv.ParseFloat(sample[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += value
	}
	return sum
}

// TestJT_31_ParallelRevokesPublishOnce holds that of calls that revoke one token,
// on any replica, one does it, and that all have the same record.
func TestJT_31_ParallelRevokesPublishOnce(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		servers := replicas(t, kind)
		ops := withLab(t, servers[0], servers[0].admin(t))
		rounds := rounds
		if kind == storetest.SQLite {
			rounds /= 5 // each loser's commit reaches the disk, one after the other
		}
		for round := range rounds {
			id := ok[minted](t, servers[0].call(t, ops, "joinTokens.create", mint(fmt.Sprint("round-", round)))).id(t)
			record := ""
			for _, a := range race(t, servers, ops, "joinTokens.revoke", object{"tenantId": "acme", "poolId": "lab", "tokenId": id}) {
				m := ok[minted](t, a)
				if record == "" {
					record = string(m.JoinToken)
				}
				if string(m.JoinToken) != record {
					t.Errorf("round %d: two records:\n%s\n%s", round, record, m.JoinToken)
				}
			}
		}
		db := connect(t, servers[0].db)
		wantNumber(t, db, rounds, "SELECT count(*) FROM join_tokens WHERE revoked_at IS NOT NULL")
		wantNumber(t, db, rounds, "SELECT count(*) FROM events WHERE type = 'security.join-token.revoked'")
		wantNumber(t, db, rounds, "SELECT count(DISTINCT subject) FROM events WHERE type = 'security.join-token.revoked'")
	})
}
