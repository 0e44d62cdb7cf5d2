package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// joinableReplicas are two servers on one Postgres, or one on SQLite, to which
// machines may come as fast as they like, and a key of acme/ops.
func joinableReplicas(t testing.TB, kind storetest.Kind) (servers []*server, ops string) {
	t.Helper()
	servers = []*server{joinable(t, t.TempDir(), storetest.EmptyURL(t, kind))}
	if kind == storetest.Postgres {
		servers = append(servers, joinable(t, t.TempDir(), servers[0].db))
	}
	return servers, withLab(t, servers[0], servers[0].admin(t))
}

// TestNJ_2_JoinsOfCrowds holds that of 64 machines that join at once, over
// all processes of a deployment, a token admits as many as it may and not one
// more, that it counts them, and that each of the others is audited as
// exhausted, once the processes have stopped.
func TestNJ_2_JoinsOfCrowds(t *testing.T) {
	t.Parallel()
	const crowd = 64
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		rounds := rounds
		if testing.Short() || kind == storetest.SQLite && len(raceFlag) > 0 { // which is SQLite in Go, watched
			rounds /= 5
		}
		limits := append([]int{1, crowd, 100}, slices.Repeat([]int{5}, rounds)...)
		servers, ops := joinableReplicas(t, kind)
		db := connect(t, servers[0].db)
		machines := make([]newcomer, crowd)
		var all, refused int
		for round, limit := range limits {
			for i, m := range machines {
				if m.key == nil { // there is none yet, or it has joined
					machines[i] = newNewcomer(t)
				}
			}
			token, id := servers[0].joinToken(t, ops, limit)
			in := crowdJoins(t, servers, token, machines)
			if want := min(limit, crowd); len(in) != want {
				t.Fatalf("round %d: a token for %d machines has admitted %d", round, limit, len(in))
			}
			for query, want := range map[string]int{
				"SELECT uses FROM join_tokens WHERE id = '%s'":                                                                               len(in),
				"SELECT count(*) FROM join_uses WHERE token_id = '%s'":                                                                       len(in),
				"SELECT count(DISTINCT csr_sha256) FROM join_uses WHERE token_id = '%s'":                                                     len(in),
				"SELECT count(*) FROM nodes WHERE token_id = '%s'":                                                                           len(in),
				"SELECT count(*) FROM node_certificates AS c JOIN join_uses AS u USING (serial) WHERE chain IS NOT NULL AND token_id = '%s'": len(in),
			} {
				wantNumber(t, db, want, fmt.Sprintf(query, id))
			}
			all += len(in)
			refused += crowd - len(in)
			for _, i := range in {
				machines[i] = newcomer{}
			}
		}
		wantNumber(t, db, all, "SELECT count(*) FROM nodes")
		wantNumber(t, db, all, "SELECT count(*) FROM node_certificates")
		wantNumber(t, db, all, "SELECT count(*) FROM events WHERE type = 'security.node.joined'")
		for _, s := range servers {
			s.stops(t, syscall.SIGTERM)
		}
		wantNumber(t, db, refused, "SELECT sum(count) FROM denials WHERE reason = 'exhausted' AND action = 'nodes.join'")
		wantNumber(t, db, 0, "SELECT count(*) FROM denials WHERE reason <> 'exhausted'")
		wantNumber(t, db, 0, `SELECT count(*) FROM join_tokens AS t WHERE CASE WHEN t.max_uses < 64 THEN 64 - t.max_uses ELSE 0 END <> (
			SELECT coalesce(sum(d.count), 0) FROM denials AS d WHERE d.principal = 'join-token/' || t.id)`)
	})
}

// crowdJoins lets all machines join at once, spread over the servers, and
// returns which of them were admitted. The others are told that the token is no
// good. Where the database does not keep up, a machine calls again.
func crowdJoins(t *testing.T, servers []*server, token string, machines []newcomer) (admitted []int) {
	t.Helper()
	var mu sync.Mutex
	serials, nodes := map[string]bool{}, map[string]bool{}
	together(len(machines), func(i int) {
		s, again := servers[i%len(servers)], false
		a, err := s.tryJoin(t.Context(), token, machines[i])
		for began := time.Now(); a.status == http.StatusServiceUnavailable && time.Since(began) < patience; again = true {
			a, err = s.tryJoin(t.Context(), token, machines[i])
		}
		if err != nil {
			t.Errorf("no answer: %v", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if a.status != 200 {
			a.refused(t, "UNAUTHENTICATED")
			return
		}
		var out api.NodesJoinOutput
		if err := json.Unmarshal(a.body, &out); err != nil || out.Admitted == nil || out.Admitted.Replayed && !again {
			t.Errorf("the answer is %s (error: %v)", a.body, err)
			return
		}
		admitted = append(admitted, i)
		serials[out.Admitted.Serial], nodes[out.Admitted.NodeID] = true, true
		if leaf, err := parseLeaf(out.Admitted.Certificate); err != nil || !machines[i].key.PublicKey.Equal(leaf.PublicKey) {
			t.Errorf("a machine has the certificate of another (error: %v)", err)
		}
	})
	if len(serials) != len(admitted) || len(nodes) != len(admitted) {
		t.Errorf("%d machines are %d nodes with %d certificates", len(admitted), len(nodes), len(serials))
	}
	return admitted
}
