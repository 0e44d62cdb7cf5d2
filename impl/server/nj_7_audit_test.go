package server_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
)

// denied is how many calls of a principal are recorded as refused, after what
// was counted is written.
func (s *running) denied(t testing.TB, principal, method, resource, reason string) (n int64) {
	t.Helper()
	if err := s.server.FlushDenials(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows, more, err := s.db.Denials(t.Context(), 1000)
	if err != nil || more {
		t.Fatalf("more: %v, error: %v", more, err)
	}
	for _, row := range rows {
		if row.Principal == principal && row.Action == method && row.Resource == resource && row.Reason == reason {
			n += row.Count
		}
	}
	return n
}

// A cause of refusals, and a join that is refused for it.
type cause struct {
	name    string
	tokenID string // empty: of none that there is
	token   string
	machine machine
	code    problem.Code
}

// causes makes a case of every cause that a join is refused for.
func (s *running) causes(t *testing.T, ops string) []cause {
	t.Helper()
	const no, denied, conflict = problem.Unauthenticated, problem.PermissionDenied, problem.Conflict
	var all []cause
	add := func(name, token string, m machine, code problem.Code) {
		id, _, _ := strings.Cut(strings.TrimPrefix(token, "bcjt_"), ".")
		if name == "malformed" || name == "unknown" {
			id = ""
		}
		all = append(all, cause{name, id, token, m, code})
	}
	mint := func(more object) string {
		token, _ := s.bearerOf(t, ops, more)
		return token
	}
	operate := func(method string, body object) {
		if a := s.call(t, ops, method, body); a.status != http.StatusOK {
			t.Fatalf("%s: %d %s", method, a.status, a.body)
		}
	}
	any := newMachine(t, nil)
	add("malformed", "x", any, no)
	add("unknown", forged("bcjt_", "jt_"+x26), any, no)
	add("wrong_secret", wrongAt(mint(nil), 7), any, no)

	revoked, id := s.bearerOf(t, ops, nil)
	operate("joinTokens.revoke", object{"tenantId": "acme", "poolId": "lab", "tokenId": id})
	add("revoked", revoked, any, no)
	add("expired", mint(object{"ttlSeconds": 60}), any, no) // in a minute

	once := mint(object{"maxUses": 1})
	s.admitted(t, once, newMachine(t, nil))
	add("exhausted", once, any, no)

	token := mint(nil)
	removed, banned, confirmed := s.admitted(t, token, newMachine(t, nil)), s.admitted(t, token, newMachine(t, nil)), s.confirmed(t, token, newMachine(t, nil))
	operate("nodes.remove", removed.id())
	operate("nodes.ban", banned.id())
	add("node_removed", token, removed.machine, no)
	add("node_banned", token, banned.reinstalled(t), denied)
	add("identity_in_use", token, confirmed.reinstalled(t), denied)
	add("already_joined", token, confirmed.machine, conflict)
	add("key_taken", mint(nil), confirmed.machine, conflict)

	add("hardware_mismatch", mint(object{"expect": object{"serial": "CZ2DANOTHER"}}), any, denied)
	const read, swapped = "4c4c4544-0051-3510-8052-b4c04f4e3732", "44454c4c-5100-1035-8052-b4c04f4e3732"
	add("uuid_byte_order", mint(object{"expect": object{"productUuid": read}}), newMachine(t, object{"productUuid": swapped}), denied)

	waits, full := nobody(t), mint(object{"maxUses": 1})
	request := s.deferred(t, full, waits)
	add("queue_full", full, nobody(t), problem.RateLimited)
	other := nobody(t)
	request = s.deferred(t, token, other)
	operate("joinRequests.deny", object{"tenantId": "acme", "poolId": "lab", "requestId": request.RequestID})
	add("request_denied", token, other, denied)
	return all
}

// rejection is an event security.join.rejected.
type rejection struct {
	TokenID, Cause, SourceAddress string
	Count                         int64
}

// rejections are those that were published so far.
func (s *running) rejections(t testing.TB) (list []rejection) {
	t.Helper()
	for _, e := range s.published(t, "acme", "security.join.rejected") {
		var r rejection
		decoder := json.NewDecoder(bytes.NewReader(e.Data))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if e.Subject != r.TokenID || e.PoolID != "lab" {
			t.Errorf("an event is about %s of %s: %s", e.Subject, e.PoolID, e.Data)
		}
		list = append(list, r)
	}
	return list
}

// TestNJ_7_EveryRefusalIsAudited holds that each refused join is counted with
// its true cause, whatever the machine was told; and that those of a token that
// there is are published, once for all that are alike each time that the counts
// are written, with where the last of them came from.
func TestNJ_7_EveryRefusalIsAudited(t *testing.T) {
	t.Parallel()
	eachTLS(t, func(t *testing.T, s *running) {
		s.withPools(t)
		all := s.causes(t, s.key(t, "acme/ops", "tenant-admin"))
		s.clock.Advance(time.Minute)
		quiet := s.bench(t) // which writes its counts only when it is told to
		refuse := func(c cause, address string) {
			t.Helper()
			a, _ := quiet.serve(t, address, s.request(t, c.token, "nodes.join", c.machine.body()))
			if r := a.refused(t, c.code); r.Reason != "" && string(r.Reason) != c.name || (r.Reason == "") == (c.code == problem.PermissionDenied) {
				t.Errorf("%s: the reason is %q", c.name, r.Reason)
			}
			if c.name == "queue_full" && a.header.Get("Retry-After") != "60" {
				t.Errorf("%s: Retry-After is %q", c.name, a.header.Get("Retry-After"))
			}
		}
		audited := func(calls int64, last string, total int64) {
			t.Helper()
			before := s.rejections(t)
			if err := quiet.FlushDenials(t.Context()); err != nil {
				t.Fatal(err)
			}
			var want []rejection
			for _, c := range all {
				principal, resource := "join-token/*", "compute-pool/*"
				if c.tokenID != "" {
					principal, resource = "join-token/"+c.tokenID, "compute-pool/acme/lab"
					want = append(want, rejection{c.tokenID, c.name, last, calls})
				}
				if n := s.denied(t, principal, "nodes.join", resource, c.name); n != total {
					t.Errorf("%s: %d are recorded, want %d", c.name, n, total)
				}
			}
			got := s.rejections(t)[len(before):]
			if calls == 0 {
				want = nil
			}
			order := func(a, b rejection) int { return cmp.Compare(a.TokenID+a.Cause, b.TokenID+b.Cause) }
			slices.SortFunc(got, order)
			slices.SortFunc(want, order)
			if !slices.Equal(got, want) {
				t.Errorf("published are\n%+v, want\n%+v", got, want)
			}
		}
		for _, c := range all {
			for _, address := range []string{"192.0.2.1", "192.0.2.2", "2001:db8::3"} {
				refuse(c, address)
			}
		}
		audited(3, "2001:db8::3", 3)
		audited(0, "", 3)
		for _, c := range all {
			refuse(c, "192.0.2.4")
		}
		audited(1, "192.0.2.4", 4)
	})
}
