package server_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
)

// TestJT_24_CreatedIsPublished holds what the event says, with pinned always
// and hosted only when set, and that the record has role node.
func TestJT_24_CreatedIsPublished(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.clock.Set(noon)
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		for _, c := range []struct {
			with, data object
		}{
			{object{}, object{"pinned": false, "maxUses": 1.0, "allowReclaim": false}},
			{object{"hosted": "kubernetes", "maxUses": 5}, object{"pinned": false, "maxUses": 5.0, "allowReclaim": false, "hosted": "kubernetes"}},
			{object{"expect": object{"serial": "CN77"}, "allowReclaim": true}, object{"pinned": true, "maxUses": 1.0, "allowReclaim": true}},
		} {
			before := len(s.published(t, "acme"))
			token := s.mint(t, ops, lab().with(c.with)).JoinToken
			if token.Role != "node" {
				t.Errorf("the record says role %q", token.Role)
			}
			after := s.published(t, "acme")
			if len(after) != before+1 {
				t.Fatalf("%d events were published", len(after)-before)
			}
			event := after[before]
			var data object
			if err := json.Unmarshal(event.Data, &data); err != nil {
				t.Fatal(err)
			}
			want := c.data.with(object{"tokenId": token.ID, "createdBy": "acme/ops", "expiresAt": "2026-03-01T13:00:00Z"})
			if event.Type != "security.join-token.created" || event.PoolID != "lab" || event.Subject != token.ID || !event.Time.Equal(noon) || !reflect.DeepEqual(data, want) {
				t.Errorf("event %+v with %v, want data %v", event, data, want)
			}
		}
	})
}

// TestJT_24_NothingForARefusal holds that what is refused publishes nothing.
func TestJT_24_NothingForARefusal(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		before := len(s.published(t, "acme"))
		s.call(t, ops, "joinTokens.create", lab().with(object{"poolId": "bare"})).refused(t, problem.InvalidState)
		s.call(t, ops, "joinTokens.create", lab().with(object{"expect": object{"serial": "None"}})).refused(t, problem.InvalidInput)
		s.call(t, ops, "joinTokens.create", lab().with(object{"poolId": "missing"})).refused(t, problem.NotFound)
		if n := len(s.published(t, "acme")) - before; n != 0 {
			t.Errorf("refusals published %d events", n)
		}
	})
}

// TestJT_31_Revoke holds that a revocation is at once, once, and told in full.
func TestJT_31_Revoke(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.clock.Set(noon)
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		token := s.mint(t, ops, lab()).JoinToken
		body := object{"tenantId": "acme", "poolId": "lab", "tokenId": token.ID}
		s.clock.Advance(time.Minute)
		first := s.call(t, ops, "joinTokens.revoke", body)
		revoked := as[map[string]map[string]any](t, first)["joinToken"]
		if revoked["revokedAt"] != "2026-03-01T12:01:00Z" || revoked["id"] != token.ID || revoked["expiresAt"] != "2026-03-01T13:00:00Z" {
			t.Errorf("revoked: %v", revoked)
		}
		events := s.published(t, "acme", "security.join-token.revoked")
		if len(events) != 1 || events[0].Subject != token.ID || events[0].PoolID != "lab" {
			t.Fatalf("published %+v", events)
		}
		var data object
		if err := json.Unmarshal(events[0].Data, &data); err != nil || !reflect.DeepEqual(data, object{"tokenId": token.ID, "revokedBy": "acme/ops"}) {
			t.Errorf("the event says %v (error: %v)", data, err)
		}
		s.clock.Advance(time.Minute)
		for _, key := range []string{ops, s.key(t, "acme/bot", "pool-operator", "lab"), s.admin} {
			if again := s.call(t, key, "joinTokens.revoke", body); string(again.body) != string(first.body) {
				t.Errorf("again: %d %s", again.status, again.body)
			}
		}
		if n := len(s.published(t, "acme", "security.join-token.revoked")); n != 1 {
			t.Errorf("published %d times", n)
		}
		if a := s.call(t, ops, "joinTokens.list", object{"tenantId": "acme", "poolId": "lab"}); a.status != http.StatusOK || string(a.body) != `{"joinTokens":[]}`+"\n" {
			t.Errorf("the list still has it: %s", a.body)
		}
	})
}

// TestJT_31_NotHere holds that a token of another pool or tenant is no token.
func TestJT_31_NotHere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		acme, globex := s.key(t, "acme/ops", "tenant-admin"), s.key(t, "globex/ops", "tenant-admin")
		token := s.mint(t, acme, lab()).JoinToken
		missing := s.call(t, acme, "joinTokens.revoke", object{"tenantId": "acme", "poolId": "lab", "tokenId": "jt_" + x26})
		for _, c := range []struct {
			key  string
			with object
		}{
			{acme, object{"poolId": "yard"}},
			{globex, object{"tenantId": "globex"}},
			{s.admin, object{"tenantId": "globex"}},
			{s.admin, object{"tenantId": "platform"}},
			{acme, object{"tokenId": "jt_" + x26}},
		} {
			a := s.call(t, c.key, "joinTokens.revoke", object{"tenantId": "acme", "poolId": "lab", "tokenId": token.ID}.with(c.with))
			a.refused(t, problem.NotFound)
			sameAnswer(t, a, missing)
		}
		for tokenID, rule := range map[string]string{
			"jt_" + x26[1:]: "pattern", "jt_" + x26 + "i": "pattern", "ak_" + x26: "pattern", "": "pattern",
			"jt_" + x26 + x26 + "0": "pattern", "jt_" + x26 + x26 + x26[:10]: "length",
		} {
			s.call(t, acme, "joinTokens.revoke", object{"tenantId": "acme", "poolId": "lab", "tokenId": tokenID}).violates(t, "tokenId", rule)
		}
		if n := s.count(t, "join_tokens WHERE revoked_at IS NOT NULL"); n != 0 {
			t.Errorf("%d tokens were revoked", n)
		}
	})
}
