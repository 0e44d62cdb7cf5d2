package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/bettercompute/bettercompute/gen/api"
)

// TestLists_Pages holds, for every list that goes by id, the order of bytes,
// whole pages, and a cursor that is the last id and absent at the end.
func TestLists_Pages(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		names := []string{"a", "B", "c", "Z", "0", "a.1", "a-1", "a_1", "a:1", "aa"}
		for _, name := range names {
			s.site(t, "acme", name, false)
			s.pool(t, "acme", name, "acme/a", nil)
		}
		slices.Sort(names)
		var keys []string
		for range 7 {
			keys = append(keys, s.apiKey(t, "acme/ops", "pool-operator").APIKey.ID)
		}
		slices.Sort(keys)
		s.site(t, "globex", "other", false)
		for _, c := range []struct {
			method, list, id string
			want             []string
		}{
			{"sites.list", "sites", "siteId", names},
			{"pools.list", "pools", "poolId", names},
			{"apiKeys.list", "apiKeys", "id", keys},
		} {
			for _, limit := range []int{1, 3, len(c.want) - 1, len(c.want), 200} {
				var got []string
				body, pages := object{"tenantId": "acme", "limit": limit}, 0
				for {
					page := as[map[string]json.RawMessage](t, s.call(t, s.admin, c.method, body))
					var records []map[string]any
					if err := json.Unmarshal(page[c.list], &records); err != nil || len(records) > limit {
						t.Fatalf("%s: %d records (error: %v)", c.method, len(records), err)
					}
					for _, r := range records {
						got = append(got, r[c.id].(string))
					}
					pages++
					cursor, more := page["cursor"]
					if !more {
						break
					}
					if want := fmt.Sprintf("%q", got[len(got)-1]); string(cursor) != want || len(records) != limit {
						t.Errorf("%s: a page of %d with cursor %s behind %s", c.method, len(records), cursor, want)
					}
					body["cursor"] = cursor
				}
				if want := (len(c.want) + limit - 1) / limit; !slices.Equal(got, c.want) || pages != want {
					t.Errorf("%s in pages of %d: %d pages with %v, want %d with %v", c.method, limit, pages, got, want, c.want)
				}
			}
		}
	})
}

// TestAPIKeys_ParallelCreates holds that of many calls with one key, one is told.
func TestAPIKeys_ParallelCreates(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		other := s.replica(t)
		for round := range 3 {
			body := object{"tenantId": "acme", "identity": "ci", "role": "pool-operator", "idempotencyKey": fmt.Sprint("round-", round)}
			told, ids := 0, map[string]bool{}
			for _, a := range at(t, 16, s.admin, "apiKeys.create", body, s, other) {
				made := as[api.APIKeysCreateOutput](t, a)
				ids[made.APIKey.ID] = true
				if made.Key != nil {
					told++
				}
			}
			if told != 1 || len(ids) != 1 {
				t.Errorf("round %d: %d callers were told, of %d keys", round, told, len(ids))
			}
		}
		if n := len(s.published(t, "acme", "security.api-key.created")); n != 3 {
			t.Errorf("published %d times", n)
		}
	})
}

// TestCreates_Parallel holds that a site or pool that many create at once is
// made once, and the same for all.
func TestCreates_Parallel(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		other := s.replica(t)
		for _, c := range []struct {
			method, event string
			body          object
		}{
			{"sites.create", "compute.site.created", object{"tenantId": "acme", "siteId": "berlin"}},
			{"pools.create", "compute.pool.created", object{"tenantId": "acme", "siteId": "berlin", "poolId": "lab"}},
		} {
			answers := at(t, 16, s.admin, c.method, c.body, s, other)
			for _, a := range answers {
				if a.status != 200 || string(a.body) != string(answers[0].body) {
					t.Errorf("%s: %d %s", c.method, a.status, a.body)
				}
			}
			if n := len(s.published(t, "acme", c.event)); n != 1 {
				t.Errorf("%s published %d times", c.method, n)
			}
		}
		// Changes of different fields at the same moment all hold.
		at(t, 1, s.admin, "pools.update", object{"tenantId": "acme", "poolId": "lab", "policy": object{"erase": "required"}}, s)
		changes := []object{{"erase": "waived"}, {"attestor": "discovery"}, {"allowVirtualMachines": true}, vouched}
		together(len(changes), func(i int) {
			server := []*running{s, other}[i%2]
			a, err := server.send(server.request(t, s.admin, "pools.update", object{"tenantId": "acme", "poolId": "lab", "policy": changes[i]}))
			if err != nil || a.status != 200 {
				t.Errorf("update: %d %s (error: %v)", a.status, a.body, err)
			}
		})
		p := as[api.PoolsGetOutput](t, s.call(t, s.admin, "pools.get", object{"tenantId": "acme", "poolId": "lab"})).Pool.Policy
		if p.Erase != "waived" || p.Attestor != "discovery" || !p.AllowVirtualMachines || !p.Kubernetes.PlatformOperated {
			t.Errorf("a change was lost: %+v", p)
		}
		if n := len(s.published(t, "acme", "compute.pool.updated")); n != len(changes) {
			t.Errorf("%d changes published %d events", len(changes), n)
		}
	})
}
