package server_test

import (
	"crypto/sha256"
	"hash/crc32"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
)

// TestJT_01_ThreeMethods holds that the group has create, list and revoke, as
// the reference page has them, and nothing else.
func TestJT_01_ThreeMethods(t *testing.T) {
	t.Parallel()
	want := []api.Method{
		{Operation: "JoinTokensCreate", ID: "joinTokens.create", Mutation: true},
		{Operation: "JoinTokensList", ID: "joinTokens.list"},
		{Operation: "JoinTokensRevoke", ID: "joinTokens.revoke", Mutation: true},
	}
	var have []*api.Method
	for _, m := range api.Methods {
		if strings.HasPrefix(m.ID, "joinTokens.") {
			have = append(have, m)
		}
	}
	if len(have) != len(want) {
		t.Fatalf("the group has %d methods", len(have))
	}
	for i, m := range have {
		if m.ID != want[i].ID || m.Mutation != want[i].Mutation || m.Module != "server" || m.Phase != "v0.1" || m.Path != pathOf(m.ID) {
			t.Errorf("method %+v", m)
		}
	}
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		token := s.mint(t, ops, lab()).JoinToken
		for method, body := range map[string]object{
			"create": lab(), "list": {"tenantId": "acme", "poolId": "lab"},
			"revoke": {"tenantId": "acme", "poolId": "lab", "tokenId": token.ID},
		} {
			if a := s.call(t, ops, "joinTokens."+method, body); a.status != http.StatusOK {
				t.Errorf("%s: %d %s", method, a.status, a.body)
			}
		}
		for _, method := range []string{"get", "delete", "update", "Create", "create/", "list.json", ""} {
			s.call(t, ops, "joinTokens."+method, lab()).refused(t, problem.NotFound)
		}
	})
}

// TestJT_02_DecidedOnThePool holds what each method asks IAM: its own action,
// on the pool that the input names.
func TestJT_02_DecidedOnThePool(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		nobody := s.key(t, "acme/bot", "pool-operator", "yard")
		token := s.mint(t, ops, lab()).JoinToken
		for _, c := range []struct {
			method, action string
			body           object
			recorded       int // a decision that allows a mutation
		}{
			{"joinTokens.create", "compute:join-tokens:create", lab(), 1},
			{"joinTokens.list", "compute:join-tokens:read", object{"tenantId": "acme", "poolId": "lab"}, 0},
			{"joinTokens.revoke", "compute:join-tokens:revoke", object{"tenantId": "acme", "poolId": "lab", "tokenId": token.ID}, 1},
		} {
			allowed := `bc_decisions_total{action="` + c.action + `",outcome="allow"}`
			where := "decisions WHERE action = '" + c.action + "' AND resource = 'compute-pool/acme/lab' AND principal = 'acme/ops'"
			before, all, rows := s.metric(t, allowed), s.decisions(t), s.count(t, where)
			if a := s.call(t, ops, c.method, c.body); a.status != http.StatusOK {
				t.Fatalf("%s: %s", c.method, a.body)
			}
			if s.metric(t, allowed) != before+1 || s.decisions(t) != all+1 {
				t.Errorf("%s did not make one decision, on %s", c.method, c.action)
			}
			if n := s.count(t, where) - rows; n != c.recorded {
				t.Errorf("%s recorded %d decisions on %s, want %d", c.method, n, c.action, c.recorded)
			}
			r := s.call(t, nobody, c.method, c.body).refused(t, problem.PermissionDenied)
			if !strings.Contains(r.Detail, c.action) {
				t.Errorf("the refusal of %s says %q", c.method, r.Detail)
			}
		}
	})
}

var bearerForm = regexp.MustCompile(`^bcjt_(jt_[0-9a-hjkmnp-tv-z]{52})\.([0-9A-Za-z]{43})([0-9A-Za-z]{6})$`)

// TestJT_03_Bearer holds the bearer's form and checksum, that it is told once,
// and that its hash alone is stored.
func TestJT_03_Bearer(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		body := lab()
		made := s.mint(t, ops, body)
		if made.Token == nil {
			t.Fatal("the call that made the token does not tell it")
		}
		parts := bearerForm.FindStringSubmatch(*made.Token)
		if parts == nil || parts[1] != made.JoinToken.ID {
			t.Fatalf("the bearer of %s has another form", made.JoinToken.ID)
		}
		before := strings.TrimSuffix(*made.Token, parts[3])
		if sum := checksum(before); sum != parts[3] {
			t.Errorf("the bearer ends in %s and its checksum is %s", parts[3], sum)
		}
		stored, err := s.db.JoinToken(t.Context(), made.JoinToken.ID)
		if want := sha256.Sum256([]byte(parts[2] + parts[3])); err != nil || !slices.Equal(stored.SecretSHA256, want[:]) {
			t.Errorf("what is stored is not the SHA-256 of the 49 characters (error: %v)", err)
		}

		_, secret, _ := strings.Cut(*made.Token, ".")
		ref := object{"tenantId": "acme", "poolId": "lab", "tokenId": made.JoinToken.ID}
		for _, again := range []answer{
			s.call(t, ops, "joinTokens.create", body),
			s.call(t, ops, "joinTokens.create", body.with(object{"poolId": "yard"})), // CONFLICT
			s.call(t, ops, "joinTokens.list", object{"tenantId": "acme", "poolId": "lab", "includeInactive": true}),
			s.call(t, ops, "joinTokens.revoke", ref),
			s.call(t, ops, "joinTokens.revoke", ref),
			s.call(t, ops, "joinTokens.create", body),                                              // of the revoked one
			s.call(t, *made.Token, "joinTokens.list", object{"tenantId": "acme", "poolId": "lab"}), // as API key: refused
		} {
			if strings.Contains(string(again.body), secret) || strings.Contains(string(again.body), `"token"`) {
				t.Errorf("told again: %s", again.body)
			}
		}
		if other := s.mint(t, ops, lab()); strings.HasSuffix(*other.Token, secret) {
			t.Error("two tokens have one secret")
		}
	})
}

// checksum is the end of a bearer that begins so.
func checksum(text string) string { return base62(uint64(crc32.ChecksumIEEE([]byte(text))), 6) }

// base62 is n in base 62, digits before upper case before lower, left-padded.
func base62(n uint64, width int) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	out := []byte(strings.Repeat("0", width))
	for i := width - 1; n > 0; i, n = i-1, n/62 {
		out[i] = digits[n%62]
	}
	return string(out)
}
