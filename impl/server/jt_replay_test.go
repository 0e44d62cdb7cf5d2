package server_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
)

// TestJT_22_IDFollowsFromWhoAndKey holds what the id derives from: the tenant,
// the identity with its own tenant, and the key; not the API key that was used.
func TestJT_22_IDFollowsFromWhoAndKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		s.pool(t, "platform", "core", "platform/core", nil)
		body := lab().with(object{"idempotencyKey": "same"})
		ops := s.key(t, "acme/ops", "tenant-admin")
		first := s.mint(t, ops, body)
		if !strings.HasPrefix(first.JoinToken.ID, "jt_") || len(first.JoinToken.ID) != 55 {
			t.Errorf("id %s", first.JoinToken.ID)
		}
		again := s.mint(t, s.key(t, "acme/ops", "pool-operator"), body)
		if again.JoinToken.ID != first.JoinToken.ID || again.Token != nil {
			t.Errorf("another key of the identity made %s, token told: %v", again.JoinToken.ID, again.Token != nil)
		}
		seen := map[string]string{first.JoinToken.ID: "acme/ops in acme"}
		for _, c := range []struct {
			who, tenant, key string
		}{
			{"acme/ops2", "acme", "same"},    // another name
			{"globex/ops", "globex", "same"}, // the same name, elsewhere
			{"platform/ops", "platform", "same"},
			{"acme/ops", "acme", "same2"}, // another key
			{"acme/op", "acme", "ssame"},  // the border between name and key moved
			{"acme/opss", "acme", "ame"},
			{"acme/ops/same", "acme", "same"},
			{"acme/acme", "acme", "opssame"}, // the border between tenant and name moved
		} {
			token := s.mint(t, s.key(t, c.who, "tenant-admin"), body.with(object{"tenantId": c.tenant, "idempotencyKey": c.key}))
			if other, taken := seen[token.JoinToken.ID]; taken || token.Token == nil {
				t.Errorf("%s with %s got the token of %s", c.who, c.key, other)
			}
			seen[token.JoinToken.ID] = c.who
		}
	})
}

// TestJT_22_NoForeignReplay holds that an identity of the same name in another
// tenant, though it may do everything, cannot replay.
func TestJT_22_NoForeignReplay(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		body := lab()
		s.mint(t, s.key(t, "acme/ops", "tenant-admin"), body)
		for _, foreign := range []string{s.key(t, "globex/ops", "tenant-admin"), s.key(t, "platform/ops", "platform-admin")} {
			a := s.call(t, foreign, "joinTokens.create", body)
			a.refused(t, problem.NotFound)
			sameAnswer(t, a, s.call(t, foreign, "joinTokens.create", body.with(object{"idempotencyKey": rand.Text()})))
			// Nor does a difference show that there is something to differ from.
			s.call(t, foreign, "joinTokens.create", body.with(object{"hosted": "kubernetes"})).refused(t, problem.NotFound)
		}
	})
}

// record is the record in an answer, byte by byte.
func record(t testing.TB, a answer) []byte {
	t.Helper()
	return as[struct {
		JoinToken json.RawMessage `json:"joinToken"`
		Token     string          `json:"token"`
	}](t, a).JoinToken
}

// TestJT_23_ReplayAsksNobody holds that a retry returns the stored record
// without the token, makes no decision and publishes nothing, whatever became
// of the caller's rights, the pool's tokens or the time meanwhile.
func TestJT_23_ReplayAsksNobody(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.clock.Set(noon)
		s.withPools(t)
		first := s.apiKey(t, "acme/ops", "tenant-admin")
		body := lab().with(object{"expect": object{"mac": aMAC}, "hosted": "kubernetes"})
		made := record(t, s.call(t, *first.Key, "joinTokens.create", body))
		auditor := s.key(t, "acme/ops", "pool-auditor")
		elsewhere := s.key(t, "acme/ops", "pool-operator", "yard")
		s.call(t, auditor, "joinTokens.create", lab()).refused(t, problem.PermissionDenied)
		s.call(t, elsewhere, "joinTokens.create", lab()).refused(t, problem.PermissionDenied)
		s.revokeKey(t, "acme", first.APIKey.ID)
		s.call(t, *first.Key, "joinTokens.create", body).refused(t, problem.Unauthenticated)

		decided, recorded := s.decisions(t), s.count(t, "decisions")
		events := len(s.published(t, "acme"))
		s.clock.Advance(30 * time.Minute)
		for _, key := range []string{auditor, elsewhere} {
			for _, variation := range []object{{}, {"ttlSeconds": 60}, {"maxUses": 9}, {"maxUses": 9, "ttlSeconds": 86400}} {
				a := s.call(t, key, "joinTokens.create", body.with(variation))
				if got := as[api.JoinTokensCreateOutput](t, a); got.Token != nil || !bytes.Equal(record(t, a), made) {
					t.Errorf("a retry with %v returned %s, stored is %s", variation, a.body, made)
				}
			}
			s.call(t, key, "joinTokens.create", body.with(object{"poolId": "yard"})).refused(t, problem.Conflict)
		}
		if n := s.decisions(t) - decided; n != 0 {
			t.Errorf("retries made %d decisions", n)
		}
		if n := s.count(t, "decisions") - recorded; n != 0 {
			t.Errorf("retries recorded %d decisions", n)
		}
		if n := len(s.published(t, "acme")) - events; n != 0 {
			t.Errorf("retries published %d events", n)
		}

		// An expired or revoked token is still what the key stands for.
		s.clock.Advance(time.Hour)
		if got := record(t, s.call(t, auditor, "joinTokens.create", body)); !bytes.Equal(got, made) {
			t.Errorf("once expired, a retry returned %s", got)
		}
		id := as[api.JoinTokensCreateOutput](t, s.call(t, auditor, "joinTokens.create", body)).JoinToken.ID
		s.call(t, s.admin, "joinTokens.revoke", object{"tenantId": "acme", "poolId": "lab", "tokenId": id})
		if got := s.mint(t, auditor, body); got.Token != nil || got.JoinToken.RevokedAt == nil {
			t.Errorf("once revoked, a retry returned %+v", got.JoinToken)
		}
	})
}

// TestJT_23_Conflict holds which fields a key stands for.
func TestJT_23_Conflict(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		plain := lab()
		full := lab().with(object{"expect": object{"mac": aMAC, "productUuid": aUUID, "gpuUuid": aGPU, "serial": "CN77a"}, "hosted": "kubernetes", "allowReclaim": true})
		s.mint(t, ops, plain)
		s.mint(t, ops, full)
		decided := s.decisions(t)
		pinned := func(e object) object { return object{"expect": full["expect"].(object).with(e)} }
		for _, change := range []struct {
			of    object
			with  object
			field string
		}{
			{plain, object{"poolId": "yard"}, "poolId"},
			{plain, object{"poolId": "missing"}, "poolId"},
			{plain, object{"poolId": "bare"}, "poolId"},
			{plain, object{"expect": object{"mac": aMAC}}, "expect"},
			{plain, object{"allowReclaim": true}, "allowReclaim"},
			{plain, object{"hosted": "kubernetes"}, "hosted"},
			{full, object{"expect": nil}, "expect"},
			{full, pinned(object{"mac": "a0:36:9f:12:34:57"}), "expect"},
			{full, pinned(object{"mac": nil}), "expect"},
			{full, pinned(object{"productUuid": "4c4c4544-0042-3510-8054-b7c04f4e3734"}), "expect"},
			{full, pinned(object{"gpuUuid": nil}), "expect"},
			{full, pinned(object{"serial": "CN77A"}), "expect"}, // a serial has a case
			{full, object{"allowReclaim": nil}, "allowReclaim"},
			{full, object{"allowReclaim": false}, "allowReclaim"},
			{full, object{"hosted": nil}, "hosted"},
		} {
			r := s.call(t, ops, "joinTokens.create", change.of.with(change.with)).refused(t, problem.Conflict)
			if !strings.Contains(r.Detail, change.field) {
				t.Errorf("with %v the conflict says %q", change.with, r.Detail)
			}
		}
		for _, same := range []object{
			plain.with(object{"allowReclaim": false, "maxUses": 10000, "ttlSeconds": 86400}),
			full.with(object{"maxUses": 3}),
			full.with(pinned(object{"mac": strings.ToUpper(aMAC)})),
			full.with(pinned(object{"productUuid": strings.ToUpper(aUUID), "gpuUuid": "GPU-" + strings.ToUpper(aGPU[4:])})),
		} {
			if got := s.mint(t, ops, same); got.Token != nil {
				t.Errorf("%v made another token", same)
			}
		}
		if n := s.decisions(t) - decided; n != 0 {
			t.Errorf("conflicts and retries made %d decisions", n)
		}
		if n := s.count(t, "join_tokens"); n != 2 {
			t.Errorf("there are %d tokens", n)
		}
	})
}
