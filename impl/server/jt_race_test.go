package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"

	"github.com/bettercompute/bettercompute/gen/api"
)

// at sends one call from each of n callers at the same moment, in turns to s
// and to its replicas, and returns the answers.
func at(t *testing.T, n int, key, method string, body object, servers ...*running) []answer {
	t.Helper()
	requests, answers, errs := make([]*http.Request, n), make([]answer, n), make([]error, n)
	for i := range n {
		requests[i] = servers[i%len(servers)].request(t, key, method, body)
	}
	together(n, func(i int) { answers[i], errs[i] = servers[i%len(servers)].send(requests[i]) })
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return answers
}

// TestJT_23_ParallelCreates holds that of 32 calls with one key, on two
// replicas, one makes the token, and all return it.
func TestJT_23_ParallelCreates(t *testing.T) {
	t.Parallel()
	const callers, rounds = 32, 10
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		other := s.replica(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		for round := range rounds {
			body := lab().with(object{"idempotencyKey": fmt.Sprint("round-", round), "expect": object{"serial": fmt.Sprint("CN77-", round)}})
			told := 0
			answers := at(t, callers, ops, "joinTokens.create", body, s, other)
			for _, a := range answers {
				if got := as[api.JoinTokensCreateOutput](t, a); got.Token != nil {
					told++
				}
				if !bytes.Equal(record(t, a), record(t, answers[0])) {
					t.Errorf("round %d: records differ:\n%s\n%s", round, a.body, answers[0].body)
				}
			}
			if told != 1 {
				t.Errorf("round %d: %d callers were told the token", round, told)
			}
			decided, recorded := s.decisions(t)+other.decisions(t), s.count(t, "decisions")
			for _, a := range at(t, callers, ops, "joinTokens.create", body, s, other) {
				if got := as[api.JoinTokensCreateOutput](t, a); got.Token != nil || !bytes.Equal(record(t, a), record(t, answers[0])) {
					t.Errorf("round %d: a retry returned %s", round, a.body)
				}
			}
			if n := s.decisions(t) + other.decisions(t) - decided; n != 0 || s.count(t, "decisions") != recorded {
				t.Errorf("round %d: retries made %d decisions", round, n)
			}
		}
		if n := s.count(t, "join_tokens"); n != rounds {
			t.Errorf("%d rounds made %d tokens", rounds, n)
		}
		if n := len(s.published(t, "acme", "security.join-token.created")); n != rounds {
			t.Errorf("%d rounds published %d events", rounds, n)
		}
	})
}

// TestJT_23_ParallelConflicts holds that of calls that ask for different things
// under one key, one kind wins whole, and the others are CONFLICT.
func TestJT_23_ParallelConflicts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		for range 5 {
			body := lab()
			answers := make([]answer, 16)
			errs := make([]error, 16)
			requests := make([]*http.Request, 16)
			for i := range requests {
				requests[i] = s.request(t, ops, "joinTokens.create", body.with(object{"poolId": []string{"lab", "yard"}[i%2]}))
			}
			together(16, func(i int) { answers[i], errs[i] = s.send(requests[i]) })
			won := map[int]int{}
			for i, a := range answers {
				if errs[i] != nil {
					t.Fatal(errs[i])
				}
				won[i%2*1000+a.status]++
			}
			if !(won[200] == 8 && won[1409] == 8) && !(won[1200] == 8 && won[409] == 8) {
				t.Errorf("answers by kind and status: %v", won)
			}
		}
	})
}

// TestJT_31_ParallelRevokes holds that a first revocation is published once,
// however many ask for it.
func TestJT_31_ParallelRevokes(t *testing.T) {
	t.Parallel()
	const callers, rounds = 32, 5
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		other := s.replica(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		for round := range rounds {
			token := s.mint(t, ops, lab()).JoinToken
			answers := at(t, callers, ops, "joinTokens.revoke", object{"tenantId": "acme", "poolId": "lab", "tokenId": token.ID}, s, other)
			for _, a := range answers {
				if a.status != http.StatusOK || !bytes.Equal(a.body, answers[0].body) {
					t.Errorf("round %d: %d %s\n%s", round, a.status, a.body, answers[0].body)
				}
			}
		}
		if n := len(s.published(t, "acme", "security.join-token.revoked")); n != rounds {
			t.Errorf("%d revocations published %d events", rounds, n)
		}
	})
}
