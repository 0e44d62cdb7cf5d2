package server_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
)

var keyForm = regexp.MustCompile(`^bck_(ak_[0-9a-hjkmnp-tv-z]{26,52})\.[0-9A-Za-z]{49}$`)

// TestAPIKeys_Create holds that a key is told once and works, and that a retry
// is the same record, after a decision.
func TestAPIKeys_Create(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		body := object{"tenantId": "acme", "identity": "ci/bot@x", "role": "pool-operator", "poolId": "lab", "idempotencyKey": "ci"}
		made := as[api.APIKeysCreateOutput](t, s.call(t, ops, "apiKeys.create", body))
		if parts := keyForm.FindStringSubmatch(*made.Key); parts == nil || parts[1] != made.APIKey.ID {
			t.Fatalf("the key of %s has another form", made.APIKey.ID)
		}
		s.mint(t, *made.Key, lab())
		decided := s.decisions(t)
		again := as[api.APIKeysCreateOutput](t, s.call(t, ops, "apiKeys.create", body))
		if again.Key != nil || again.APIKey.ID != made.APIKey.ID || s.decisions(t) != decided+1 {
			t.Errorf("a retry is %+v, told: %v, after %d decisions", again.APIKey, again.Key != nil, s.decisions(t)-decided)
		}
		for _, other := range []object{{"identity": "cd"}, {"role": "pool-auditor"}, {"poolId": "yard"}, {"poolId": nil}} {
			s.call(t, ops, "apiKeys.create", body.with(other)).refused(t, problem.Conflict)
		}
		s.call(t, s.key(t, "acme/ops", "pool-operator"), "apiKeys.create", body).refused(t, problem.PermissionDenied)
		if n := len(s.published(t, "acme", "security.api-key.created")); n != 3 { // ops twice, ci
			t.Errorf("%d events", n)
		}
	})
}

// TestAPIKeys_ListAndRevoke holds that a revoked key is refused at the next
// call, is listed only on demand, and is revoked once.
func TestAPIKeys_ListAndRevoke(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		made := s.apiKey(t, "acme/bot", "pool-operator")
		s.mint(t, *made.Key, lab())
		body := object{"tenantId": "acme", "keyId": made.APIKey.ID}
		s.call(t, s.key(t, "globex/ops", "tenant-admin"), "apiKeys.revoke", body).refused(t, problem.PermissionDenied)
		s.call(t, s.admin, "apiKeys.revoke", body.with(object{"tenantId": "globex"})).refused(t, problem.NotFound)
		first := s.call(t, ops, "apiKeys.revoke", body)
		as[api.APIKeysRevokeOutput](t, first)
		if again := s.call(t, ops, "apiKeys.revoke", body); string(again.body) != string(first.body) {
			t.Errorf("revoked again: %s\n%s", again.body, first.body)
		}
		s.call(t, *made.Key, "joinTokens.create", lab()).refused(t, problem.Unauthenticated)
		if n := len(s.published(t, "acme", "security.api-key.revoked")); n != 1 {
			t.Errorf("published %d times", n)
		}
		list := func(more object) (ids []string) {
			out := as[api.APIKeysListOutput](t, s.call(t, ops, "apiKeys.list", object{"tenantId": "acme"}.with(more)))
			for _, key := range out.APIKeys {
				ids = append(ids, key.ID)
			}
			return ids
		}
		if live, all := list(nil), list(object{"includeInactive": true}); len(live) != 1 || len(all) != 2 || strings.Contains(strings.Join(live, " "), made.APIKey.ID) {
			t.Errorf("listed %v of %v", live, all)
		}
	})
}

// TestAuthentication_OneAnswer holds that whatever is wrong with a bearer, the
// answer is the same.
func TestAuthentication_OneAnswer(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.apiKey(t, "acme/ops", "tenant-admin")
		key := *ops.Key
		revoked := s.apiKey(t, "acme/old", "tenant-admin")
		s.revokeKey(t, "acme", revoked.APIKey.ID)
		token := *s.mint(t, key, lab()).Token
		none := s.call(t, "", "joinTokens.create", lab())
		none.refused(t, problem.Unauthenticated)
		if challenge := none.header.Get("WWW-Authenticate"); !strings.HasPrefix(challenge, "Bearer ") {
			t.Errorf("WWW-Authenticate is %q", challenge)
		}
		typo := []byte(key)
		typo[len(typo)-20] ^= 1
		for what, header := range map[string]string{
			"no scheme":        key,
			"another scheme":   "Basic " + key,
			"a typo":           "Bearer " + string(typo),
			"cut off":          "Bearer " + key[:len(key)-1],
			"more":             "Bearer " + key + "0",
			"two":              "Bearer " + key + " " + key,
			"a comma":          "Bearer " + key + ", Bearer " + key,
			"revoked":          "Bearer " + *revoked.Key,
			"a join token":     "Bearer " + token,
			"unknown":          "Bearer " + forged("bck_", "ak_"+x26),
			"known, forged":    "Bearer " + forged("bck_", ops.APIKey.ID),
			"no id":            "Bearer " + forged("bck_", ""),
			"an id to inject":  "Bearer " + forged("bck_", "ak_' OR '1'='1"),
			"an id of bytes":   "Bearer " + forged("bck_", "ak_\xff\xfe"),
			"a long id":        "Bearer " + forged("bck_", "ak_"+strings.Repeat("0", 20_000)),
			"nothing":          "Bearer ",
			"the scheme alone": "Bearer",
		} {
			t.Run(what, func(t *testing.T) {
				request := s.request(t, "", "joinTokens.create", lab())
				request.Header.Set("Authorization", header)
				a := s.do(t, request)
				a.refused(t, problem.Unauthenticated)
				sameAnswer(t, a, none)
			})
		}
		for _, header := range []string{"bearer " + key, "BEARER   " + key} {
			request := s.request(t, "", "joinTokens.create", lab())
			request.Header.Set("Authorization", header)
			if a := s.do(t, request); a.status != http.StatusOK {
				t.Errorf("the scheme has no case: %d %s", a.status, a.body)
			}
		}
	})
}

// TestJT_03_ATypoCostsNoDatabase holds that a mistyped bearer is refused before
// anything is read.
func TestJT_03_ATypoCostsNoDatabase(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		key := s.key(t, "acme/ops", "tenant-admin")
		reads := func() int { return strings.Count(s.log.text(t), `FROM \"api_keys\"`) }
		s.call(t, forged("bck_", "ak_"+x26), "sites.list", object{"tenantId": "acme"}).refused(t, problem.Unauthenticated)
		before := reads()
		if before == 0 {
			t.Error("the log has no reads of keys")
		}
		for i := range len(key) {
			typo := []byte(key)
			typo[i] = 'q'
			if string(typo) != key {
				s.call(t, string(typo), "sites.list", object{"tenantId": "acme"}).refused(t, problem.Unauthenticated)
			}
		}
		if n := reads() - before; n != 0 {
			t.Errorf("typos cost %d reads", n)
		}
	})
}

// forged is a bearer with a right checksum and a secret that nobody gave out.
func forged(kind, id string) string {
	body := kind + id + "." + strings.Repeat("z", 43)
	return body + checksum(body)
}
