package server_test

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/ids"
	"github.com/bettercompute/bettercompute/impl/store"
)

// pages walks a list to its end and returns the pages.
func (s *running) pages(t *testing.T, key string, body object) (pages [][]api.JoinToken) {
	t.Helper()
	for {
		out := as[api.JoinTokensListOutput](t, s.call(t, key, "joinTokens.list", body))
		pages = append(pages, out.JoinTokens)
		if out.Cursor == nil {
			return pages
		}
		if last := out.JoinTokens[len(out.JoinTokens)-1].ID; *out.Cursor != last {
			t.Errorf("the cursor is %s and the last id %s", *out.Cursor, last)
		}
		body = body.with(object{"cursor": *out.Cursor})
	}
}

func idsOf(pages ...[]api.JoinToken) (list []string) {
	for _, page := range pages {
		for _, token := range page {
			list = append(list, token.ID)
		}
	}
	return list
}

// fill mints n tokens in one transaction, past the API: many are needed, and
// what matters is how they are listed.
func (s *running) fill(t *testing.T, pool string, n int, lives time.Duration) (made []string) {
	t.Helper()
	err := s.db.Write(t.Context(), func(tx *store.Tx) error {
		for range n {
			id := ids.Derive("jt", rand.Text())
			made = append(made, id)
			created, err := tx.MintToken(t.Context(), store.JoinToken{
				ID: id, TenantID: "acme", PoolID: pool, SecretSHA256: make([]byte, 32), MaxUses: 1,
				CreatedAt: tx.Now(), CreatedBy: "acme/ops", ExpiresAt: tx.Now().Add(lives),
			})
			if err != nil || !created {
				return fmt.Errorf("created: %v, error: %w", created, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(made)
	return made
}

// TestJT_30_PagesOfLiveTokens holds the order, the cursor and the filter: pages
// of live tokens are full even where most tokens between them have ended.
func TestJT_30_PagesOfLiveTokens(t *testing.T) {
	t.Parallel()
	const n = 450
	each(t, func(t *testing.T, s *running) {
		s.clock.Set(noon)
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		short := append(s.fill(t, "lab", 299, time.Minute), s.mint(t, ops, lab().with(object{"ttlSeconds": 60})).JoinToken.ID)
		long := append(s.fill(t, "lab", n-301, time.Hour), s.mint(t, ops, lab()).JoinToken.ID)
		slices.Sort(long)
		yard := s.fill(t, "yard", 20, time.Hour)
		all := slices.Sorted(slices.Values(slices.Concat(short, long)))
		list := object{"tenantId": "acme", "poolId": "lab"}

		for limit, sizes := range map[any][]int{nil: {100, 100, 100, 100, 50}, 200: {200, 200, 50}, 150: {150, 150, 150}} {
			pages := s.pages(t, ops, list.with(object{"limit": limit}))
			var have []int
			for _, page := range pages {
				have = append(have, len(page))
			}
			if !slices.Equal(have, sizes) || !slices.Equal(idsOf(pages...), all) {
				t.Errorf("limit %v gave pages of %v, want %v, in the order of ids", limit, have, sizes)
			}
		}

		// 300 expire, 50 are revoked, 50 are used up: 50 live ones are left among 450.
		s.clock.Advance(time.Minute)
		for _, id := range long[:50] {
			as[api.JoinTokensRevokeOutput](t, s.call(t, ops, "joinTokens.revoke", list.with(object{"tokenId": id})))
		}
		s.exec(t, "UPDATE join_tokens SET uses = max_uses WHERE id IN ('"+strings.Join(long[50:100], "', '")+"')")
		live := long[100:]
		for range 2 {
			pages := s.pages(t, ops, list.with(object{"limit": 20}))
			if len(pages) != 3 || len(pages[0]) != 20 || len(pages[1]) != 20 || !slices.Equal(idsOf(pages...), live) {
				t.Errorf("%d pages, the first with %d, of %d live tokens", len(pages), len(pages[0]), len(idsOf(pages...)))
			}
			if ids := idsOf(s.pages(t, ops, list.with(object{"limit": 200, "includeInactive": true}))...); !slices.Equal(ids, all) {
				t.Errorf("with inactive ones there are %d", len(ids))
			}
			// The mark of the sweep changes nothing.
			if _, err := s.db.EndJoinTokens(t.Context(), 1000); err != nil {
				t.Fatal(err)
			}
		}
		if ended := s.count(t, "join_tokens WHERE ended_at IS NOT NULL"); ended != 400 {
			t.Errorf("%d tokens are marked as ended", ended)
		}
		// A cursor is a place, whatever stands there.
		for _, cursor := range []string{all[200], "jt_" + all[200][3:29], live[10], yard[7]} {
			want := slices.DeleteFunc(slices.Clone(live), func(id string) bool { return id <= cursor })
			if ids := idsOf(s.pages(t, ops, list.with(object{"cursor": cursor}))...); !slices.Equal(ids, want) {
				t.Errorf("behind %s there are %d, want %d", cursor, len(ids), len(want))
			}
		}
	})
}

// TestJT_30_Liveness holds the moment at which a token ends.
func TestJT_30_Liveness(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.clock.Set(noon)
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		s.mint(t, ops, lab().with(object{"ttlSeconds": 60, "maxUses": 2}))
		listed := func() int {
			return len(idsOf(s.pages(t, ops, object{"tenantId": "acme", "poolId": "lab"})...))
		}
		s.clock.Set(noon.Add(time.Minute - time.Microsecond))
		s.exec(t, "UPDATE join_tokens SET uses = 1")
		if n := listed(); n != 1 {
			t.Errorf("just before it expires and with a use left: %d listed", n)
		}
		s.exec(t, "UPDATE join_tokens SET uses = 2")
		if n := listed(); n != 0 {
			t.Errorf("used up: %d listed", n)
		}
		s.exec(t, "UPDATE join_tokens SET uses = 0")
		s.clock.Set(noon.Add(time.Minute))
		if n := listed(); n != 0 {
			t.Errorf("at the moment of expiry: %d listed", n)
		}
	})
}

// TestJT_30_Limits holds the bounds of the input, and that an empty page has no cursor.
func TestJT_30_Limits(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		list := object{"tenantId": "acme", "poolId": "lab"}
		if a := s.call(t, ops, "joinTokens.list", list); string(a.body) != `{"joinTokens":[]}`+"\n" {
			t.Errorf("nothing is listed as %s", a.body)
		}
		s.fill(t, "lab", 3, time.Hour)
		if pages := s.pages(t, ops, list.with(object{"limit": 3})); len(pages) != 1 {
			t.Errorf("a page that holds all has a cursor behind it")
		}
		if pages := s.pages(t, ops, list.with(object{"limit": 1})); len(pages) != 3 {
			t.Errorf("pages of one: %d", len(pages))
		}
		for _, c := range []struct {
			with        object
			field, rule string
		}{
			{object{"limit": 0}, "limit", "range"},
			{object{"limit": 201}, "limit", "range"},
			{object{"limit": 1.5}, "limit", "integer"},
			{object{"limit": "1"}, "limit", "type"},
			{object{"includeInactive": 1}, "includeInactive", "type"},
			{object{"cursor": "jt_" + x26[1:]}, "cursor", "pattern"},
			{object{"cursor": "jt_" + x26[:25] + "u"}, "cursor", "pattern"},
			{object{"cursor": "jt_" + x26 + x26 + x26}, "cursor", "length"},
			{object{"poolId": nil}, "poolId", "required"},
		} {
			s.call(t, ops, "joinTokens.list", list.with(c.with)).violates(t, c.field, c.rule)
		}
		s.call(t, ops, "joinTokens.list", list.with(object{"poolId": "missing"})).refused(t, problem.NotFound)
	})
}
