package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
)

// listed walks events.list from a position to its end, in pages of n.
func (s *running) listed(t *testing.T, key string, n int, body object) (all []api.Event) {
	t.Helper()
	s.position(t)
	for {
		out := as[api.EventsListOutput](t, s.call(t, key, "events.list", body.with(object{"limit": n})))
		if out.Cursor == body["after"] {
			if len(out.Events) > 0 {
				t.Errorf("at the end there are %d events", len(out.Events))
			}
			return all
		}
		if full := len(out.Events) == n; len(out.Events) > n || full && body["types"] == nil && out.Cursor != out.Events[n-1].Cursor {
			t.Errorf("%d events and cursor %s", len(out.Events), out.Cursor)
		}
		all = append(all, out.Events...)
		body = body.with(object{"after": out.Cursor})
	}
}

func typesOf(events []api.Event) (types []string) {
	for _, e := range events {
		types = append(types, e.Type)
	}
	return types
}

// TestEvents_CloudEvents holds the attributes of CloudEvents 1.0 on every kind
// of event: the required ones, ours in lower case, and times in UTC.
func TestEvents_CloudEvents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.clock.Set(noon)
		s.withPools(t)
		ops := s.apiKey(t, "acme/ops", "tenant-admin")
		token := s.mint(t, *ops.Key, lab()).JoinToken
		s.call(t, *ops.Key, "joinTokens.revoke", object{"tenantId": "acme", "poolId": "lab", "tokenId": token.ID})
		s.call(t, *ops.Key, "pools.update", object{"tenantId": "acme", "poolId": "lab", "policy": object{"erase": "waived"}})
		s.revokeKey(t, "acme", s.apiKey(t, "acme/bot", "pool-operator", "lab").APIKey.ID)
		s.position(t)
		out := as[struct {
			Events []map[string]any
			Cursor string
		}](t, s.call(t, s.admin, "events.list", object{"tenantId": "acme"}))
		seen := map[string]bool{}
		for _, e := range out.Events {
			kind := e["type"].(string)
			seen[kind] = true
			want := map[string]any{
				"specversion": "1.0", "datacontenttype": "application/json", "tenantid": "acme", "time": "2026-03-01T12:00:00Z",
				"type": kind, "id": e["id"], "cursor": e["cursor"], "data": e["data"], "subject": e["subject"],
			}
			switch {
			case regexp.MustCompile(`^security\.join-token\.|^compute\.pool\.`).MatchString(kind):
				want["poolid"] = e["poolid"]
				want["source"] = fmt.Sprint("/compute-pool/acme/", e["poolid"])
			case kind == "compute.site.created":
				want["source"] = "/compute-site/acme/berlin"
			default:
				want["source"] = "/tenant/acme"
			}
			if !reflect.DeepEqual(e, want) {
				t.Errorf("event %v, want %v", e, want)
			}
			if id := e["id"].(string); !regexp.MustCompile(`^evt_[0-9a-hjkmnp-tv-z]{26}$`).MatchString(id) {
				t.Errorf("id %s", id)
			}
			if data, ok := e["data"].(map[string]any); !ok || len(data) < 2 {
				t.Errorf("data %v", e["data"])
			}
		}
		if len(seen) != 7 {
			t.Errorf("seen are %v", seen)
		}
	})
}

// TestEvents_List holds order, pages and filters.
func TestEvents_List(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		for i := range 5 {
			s.mint(t, ops, lab().with(object{"poolId": []string{"lab", "yard"}[i%2]}))
		}
		s.mint(t, s.key(t, "globex/ops", "tenant-admin"), lab().with(object{"tenantId": "globex"}))
		acme := object{"tenantId": "acme"}
		all := s.listed(t, ops, 200, acme)
		want := []string{
			"compute.site.created", "compute.pool.created", "compute.pool.created", "compute.pool.created", "security.api-key.created",
			"security.join-token.created", "security.join-token.created", "security.join-token.created", "security.join-token.created", "security.join-token.created",
		}
		if got := typesOf(all); !slices.Equal(got, want) {
			t.Errorf("types %v", got)
		}
		for _, n := range []int{1, 3, 10} {
			if got := s.listed(t, ops, n, acme); !reflect.DeepEqual(got, all) {
				t.Errorf("in pages of %d there are %d", n, len(got))
			}
		}
		if got := s.listed(t, ops, 2, acme.with(object{"after": all[3].Cursor})); !reflect.DeepEqual(got, all[4:]) {
			t.Errorf("after the fourth there are %d", len(got))
		}
		count := func(with object, n int) {
			t.Helper()
			if got := s.listed(t, ops, 2, acme.with(with)); len(got) != n {
				t.Errorf("%v lists %d, want %d: %v", with, len(got), n, typesOf(got))
			}
		}
		count(object{"poolId": "yard"}, 3)
		count(object{"poolId": "lab"}, 4)
		count(object{"poolId": "bare"}, 1)
		count(object{"types": []string{"compute.pool.created"}}, 3)
		count(object{"types": []string{"compute.pool.created", "compute.site.created"}, "poolId": "lab"}, 1)
		count(object{"types": []string{"no.such.type"}}, 0)
		count(object{"after": "ev_999999999999999999"}, 0)
		if got := as[api.EventsListOutput](t, s.call(t, ops, "events.list", acme.with(object{"after": "ev_0", "types": []string{"x"}}))); got.Cursor != all[len(all)-1].Cursor {
			t.Errorf("with nothing to return the cursor is %s", got.Cursor)
		}
		for _, c := range []struct {
			with        object
			field, rule string
		}{
			{object{"after": "ev_"}, "after", "pattern"}, {object{"after": "0"}, "after", "pattern"}, {object{"after": "ev_1234567890123456789"}, "after", "pattern"},
			{object{"types": []string{}}, "types", "items"}, {object{"types": []string{"A"}}, "types[0]", "pattern"}, {object{"limit": 201}, "limit", "range"},
		} {
			s.call(t, ops, "events.list", acme.with(c.with)).violates(t, c.field, c.rule)
		}
	})
}

// TestEvents_OfAPoolByItsRight holds who reads what: a key for one pool reads
// that pool's, and learns nothing of the tenant's.
func TestEvents_OfAPoolByItsRight(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		bot := s.key(t, "acme/bot", "pool-auditor", "lab")
		if got := typesOf(s.listed(t, bot, 10, object{"tenantId": "acme", "poolId": "lab"})); !slices.Equal(got, []string{"compute.pool.created"}) {
			t.Errorf("of its pool: %v", got)
		}
		for _, method := range []string{"events.list", "events.watch"} {
			s.call(t, bot, method, object{"tenantId": "acme"}).refused(t, problem.PermissionDenied)
			s.call(t, bot, method, object{"tenantId": "acme", "poolId": "yard"}).refused(t, problem.PermissionDenied)
			s.call(t, bot, method, object{"tenantId": "acme", "poolId": "missing"}).refused(t, problem.NotFound)
			s.call(t, bot, method, object{"tenantId": "globex"}).refused(t, problem.NotFound)
			s.call(t, bot, method, object{"tenantId": "globex", "poolId": "lab"}).refused(t, problem.NotFound)
			s.call(t, bot, method, object{"tenantId": "nobody"}).refused(t, problem.NotFound)
		}
	})
}

// TestEvents_NothingChangedNothingTold holds that calls that change nothing
// publish nothing.
func TestEvents_NothingChangedNothingTold(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.clock.Set(noon)
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		before := len(s.published(t, "acme"))
		s.clock.Advance(time.Hour)
		for method, body := range map[string]object{
			"sites.create": {"tenantId": "acme", "siteId": "berlin"},
			"pools.create": {"tenantId": "acme", "poolId": "lab", "siteId": "berlin"},
			"pools.update": {"tenantId": "acme", "poolId": "lab", "policy": object{"erase": "required", "attestor": "token", "kubernetes": object{"platformOperated": false}}},
		} {
			a := s.call(t, ops, method, body)
			var out map[string]map[string]any
			if err := json.Unmarshal(a.body, &out); err != nil || a.status != http.StatusOK {
				t.Fatalf("%s: %d %s", method, a.status, a.body)
			}
			for _, record := range out {
				if record["createdAt"] != "2026-03-01T12:00:00Z" || record["updatedAt"] != nil && record["updatedAt"] != record["createdAt"] {
					t.Errorf("%s changed something: %v", method, record)
				}
			}
		}
		for method, body := range map[string]object{
			"sites.create": {"tenantId": "acme", "siteId": "berlin", "custom": true},
			"pools.create": {"tenantId": "acme", "poolId": "lab", "siteId": "berlin", "agent": "none"},
		} {
			s.call(t, ops, method, body).refused(t, problem.Conflict)
		}
		s.call(t, ops, "pools.update", object{"tenantId": "acme", "poolId": "lab", "policy": object{"attestor": "tpm"}}).violates(t, "policy.attestor", "unsupported")
		if n := len(s.published(t, "acme")) - before; n != 0 {
			t.Errorf("%d events were published", n)
		}
	})
}
