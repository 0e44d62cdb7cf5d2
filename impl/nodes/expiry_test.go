package nodes_test

import (
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// requestsOf lists the join requests of a pool.
func (p *process) requestsOf(t testing.TB, pool store.Pool, ended bool) (all []api.JoinRequest) {
	t.Helper()
	in := &wire.JoinRequestsListInput{TenantID: pool.TenantID, PoolID: pool.PoolID, IncludeEnded: ended, Limit: 200}
	for {
		out, err := p.requests.List(t.Context(), in)
		must(t, err)
		all = append(all, out.JoinRequests...)
		if out.Cursor == nil {
			return all
		}
		in.Cursor = strictjson.Some(*out.Cursor)
	}
}

// TestJR_5_Lives holds that a request waits 24 hours for an operator and an
// approval one for its machine, judged at once and noted by a sweep.
func TestJR_5_Lives(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		tok := p.mint(t, pool, func(tok *store.JoinToken) { tok.ExpiresAt = noon.Add(72 * time.Hour) })
		pending, approved, retried := whiteBox(t), whiteBox(t), whiteBox(t)
		of := map[string]*api.Deferral{"pending": p.defers(t, tok, pending, bogus), "approved": p.defers(t, tok, approved, bogus), "retried": p.defers(t, tok, retried, bogus)}
		p.advance(24*time.Hour - time.Microsecond)
		p.defers(t, tok, pending, bogus)
		p.approve(t, tok, of["approved"])
		p.advance(time.Microsecond)
		p.advance(time.Hour - time.Microsecond)
		for name, d := range of {
			if q := p.request(t, tok, d.RequestID); q.Status != wire.JoinRequestStatusExpired {
				t.Errorf("%s: %+v", name, q)
			}
		}
		if live := p.requestsOf(t, pool, false); len(live) != 0 {
			t.Errorf("these seem to wait: %+v", live)
		}
		if got := p.defers(t, tok, retried, bogus); got.RequestID == of["retried"].RequestID { // before any sweep
			t.Errorf("%+v", got)
		}
		must(t, p.ExpireRequests(t.Context()))
		must(t, p.another(t).ExpireRequests(t.Context()))
		var approvals []any
		for _, e := range p.eventsOf(t, "acme", requestType+"expired") {
			approvals = append(approvals, e.Data["approved"])
		}
		if len(approvals) != 3 {
			t.Errorf("%v", approvals)
		}
		if got := p.defers(t, tok, approved, bogus); got.RequestID == of["approved"].RequestID {
			t.Errorf("an approval that has expired admits: %+v", got)
		}
		if all := p.requestsOf(t, pool, true); len(all) != 5 {
			t.Errorf("%d requests, want 5", len(all))
		}
		p.advance(30*24*time.Hour - time.Microsecond) // since they have ended
		must(t, p.Forget(t.Context()))
		if all := p.requestsOf(t, pool, true); len(all) != 5 {
			t.Errorf("%d requests after less than 30 days, want 5", len(all))
		}
		p.advance(2 * time.Microsecond)
		must(t, p.Forget(t.Context()))
		if all := p.requestsOf(t, pool, true); len(all) != 2 {
			t.Errorf("%d requests after 30 days, want those 2 that have not ended: %+v", len(all), all)
		}
	})
}

// TestJR_5_TableIsBounded holds that 10,000 approvals that are never collected
// expire, each with one event, and are gone after 30 days.
func TestJR_5_TableIsBounded(t *testing.T) {
	t.Parallel()
	const pools, perPool = 10, 1000
	each(t, func(t *testing.T, p *process) {
		processes := []*process{p, p.another(t)}
		all := p.poolsWith(t, pools, perPool, "approved", time.Hour)
		rows := func() (n int) {
			for _, pool := range all {
				n += len(p.requestsOf(t, pool, true))
			}
			return n
		}
		if n := rows(); n != pools*perPool {
			t.Fatalf("%d rows", n)
		}
		p.advance(time.Hour)
		together(2, func(i int) { // as two servers would
			if err := processes[i].ExpireRequests(t.Context()); err != nil {
				t.Error(err)
			}
		})
		must(t, p.ExpireRequests(t.Context())) // what one of them had locked
		expired := map[string]int{}
		for _, e := range p.eventsOf(t, "acme", requestType+"expired") {
			expired[e.Subject]++
			if e.Data["approved"] != true {
				t.Fatalf("%v", e)
			}
		}
		if len(expired) != pools*perPool {
			t.Errorf("%d have expired", len(expired))
		}
		for id, n := range expired {
			if n != 1 {
				t.Fatalf("%s has expired %d times", id, n)
			}
		}
		p.advance(30*24*time.Hour + time.Second)
		together(2, func(i int) {
			if err := processes[i].Forget(t.Context()); err != nil {
				t.Error(err)
			}
		})
		must(t, p.Forget(t.Context()))
		if n := rows(); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}

// TestJR_1_SweptApproval holds that an approval whose join was claimed and never
// signed is spent: when the claim is swept, an operator is asked again.
func TestJR_1_SweptApproval(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		tok, m := p.mint(t, p.pool(t, nil), usable(1)), whiteBox(t)
		d := p.defers(t, tok, m, bogus)
		p.approve(t, tok, d)
		claim := p.claim(tok, m.parsed(t))
		claim.RequestID = d.RequestID
		outcome, err := p.db.ClaimJoin(t.Context(), claim)
		if err != nil || outcome != store.Claimed {
			t.Fatalf("the claim ends as %d, %v", outcome, err)
		}
		p.advance(6 * time.Minute)
		must(t, p.DropUnsigned(t.Context()))
		again := p.defers(t, tok, m, bogus)
		if again.RequestID == d.RequestID || p.uses(t, tok) != 0 {
			t.Errorf("%+v, and %d uses", again, p.uses(t, tok))
		}
		p.approve(t, tok, again)
		p.admit(t, tok, m)
	})
}
