package nodes_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

const (
	unknown     = wire.DeferralReasonUnknownMachine
	bogus       = wire.DeferralReasonPlaceholderHardware
	active      = wire.DeferralReasonNodeActive
	requestType = "security.join-request."
)

// whiteBox is a machine that nothing tells from others.
func whiteBox(t testing.TB) machine { return called(t, "To Be Filled By O.E.M.") }

// wantEvents holds what was published of the join requests of the tenant acme;
// while the clock stands they have no order.
func (p *process) wantEvents(t testing.TB, want ...string) {
	t.Helper()
	var got []string
	for _, e := range p.eventsOf(t, "acme") {
		if kind, ok := strings.CutPrefix(e.Type, requestType); ok {
			if cause, ok := e.Data["cause"].(string); ok {
				kind += " " + cause
			}
			got = append(got, kind)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the events are %q, want %q", got, want)
	}
}

// TestJR_1_ApprovalAdmitsOnce holds the whole way of a machine that an operator
// lets in: deferred, approved, admitted by its retry, once.
func TestJR_1_ApprovalAdmitsOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		tok, m := p.mint(t, pool, usable(2)), whiteBox(t)
		d := p.defers(t, tok, m, bogus)
		if d.CSRSha256 != m.parsed(t).Fingerprint || d.RetryAfterSeconds != 15 || !d.ServerTime.Equal(noon) {
			t.Errorf("%+v", d)
		}
		if p.count(t, pool) != 0 || p.uses(t, tok) != 0 {
			t.Error("a deferred machine is a node, or has used the token")
		}
		q := p.approve(t, tok, d)
		if q.Status != wire.JoinRequestStatusApproved || *q.DecidedBy != "acme/ops" || !q.DecidedAt.Equal(noon) || !q.ExpiresAt.Equal(noon.Add(time.Hour)) {
			t.Errorf("%+v", q)
		}
		p.advance(59 * time.Minute)
		a := p.another(t).admit(t, tok, m)
		if a.Replayed || p.uses(t, tok) != 1 {
			t.Errorf("%+v, %d uses", a, p.uses(t, tok))
		}
		if q = p.request(t, tok, d.RequestID); q.Status != wire.JoinRequestStatusConsumed || q.NodeID == nil || *q.NodeID != a.NodeID {
			t.Errorf("%+v", q)
		}
		wantSame(t, p.admit(t, tok, m), a)
		next := p.defers(t, tok, m.reinstalled(t), bogus) // the approval was for one
		if next.RequestID == d.RequestID {
			t.Error("another request of the same hardware is the same one")
		}
		p.wantEvents(t, "created", "approved", "consumed", "created")
		p.wantCauses(t)
	})
}

// TestJR_1_ConsumedOnceUnderRaces holds that 16 retries at once, over two
// processes, consume an approval once: one node, one certificate, one use.
func TestJR_1_ConsumedOnceUnderRaces(t *testing.T) {
	t.Parallel()
	const rounds = 10
	eachRunning(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		processes := []*process{p, p.another(t)}
		for range rounds {
			tok, m := p.mint(t, pool, usable(3)), whiteBox(t)
			d := p.defers(t, tok, m, bogus)
			p.approve(t, tok, d)
			var mu sync.Mutex
			serials, fresh := map[string]int{}, 0
			together(16, func(i int) {
				out, err := processes[i%2].join(t.Context(), tok.bearer, m)
				if err != nil || out.Admitted == nil {
					t.Errorf("%+v, %v", out, err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				serials[out.Admitted.Serial]++
				if !out.Admitted.Replayed {
					fresh++
				}
			})
			if uses := p.uses(t, tok); len(serials) != 1 || fresh != 1 || uses != 1 {
				t.Fatalf("certificates %v, %d of them fresh, %d uses", serials, fresh, uses)
			}
		}
		if n := p.count(t, pool); n != rounds {
			t.Errorf("%d nodes, want %d", n, rounds)
		}
		if got := p.eventsOf(t, "acme", requestType+"consumed", requestType+"created"); len(got) != 2*rounds {
			t.Errorf("%d requests were made and consumed, want %d", len(got), rounds)
		}
	})
}

// TestJR_2_Approve holds what an operator must have seen to approve, and that
// only what waits can be approved.
func TestJR_2_Approve(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		tok, m := p.mint(t, p.pool(t, nil), nil), whiteBox(t)
		d := p.defers(t, tok, m, bogus)
		stale := *d
		stale.CSRSha256 = whiteBox(t).parsed(t).Fingerprint
		try := func(request string, csr string) error {
			_, err := p.requests.Approve(ops(t.Context()), &wire.JoinRequestsApproveInput{TenantID: "acme", PoolID: "lab", RequestID: request, CSRSha256: csr})
			return err
		}
		wantCode(t, try(d.RequestID, stale.CSRSha256), problem.Conflict)
		if got := p.defers(t, tok, m, bogus); got.RequestID != d.RequestID {
			t.Errorf("%+v", got)
		}
		first := p.approve(t, tok, d)
		p.advance(time.Minute)
		again := p.approve(t, tok, d)
		if !again.DecidedAt.Equal(*first.DecidedAt) || !again.ExpiresAt.Equal(first.ExpiresAt) {
			t.Errorf("approving again changes %+v to %+v", first, again)
		}
		wantCode(t, try(d.RequestID, stale.CSRSha256), problem.Conflict)
		p.admit(t, tok, m)
		wantCode(t, try(d.RequestID, d.CSRSha256), problem.InvalidState)

		denied := p.defers(t, tok, whiteBox(t), bogus)
		p.deny(t, tok, denied)
		wantCode(t, try(denied.RequestID, denied.CSRSha256), problem.InvalidState)
		canceled := p.defers(t, tok, whiteBox(t), bogus)
		expired := p.defers(t, p.mint(t, store.Pool{TenantID: "acme", PoolID: "lab"}, nil), whiteBox(t), bogus)
		p.revoke(t, tok)
		wantCode(t, try(canceled.RequestID, canceled.CSRSha256), problem.InvalidState)
		p.advance(24 * time.Hour)
		wantCode(t, try(expired.RequestID, expired.CSRSha256), problem.InvalidState)
		p.wantEvents(t, "created", "approved", "consumed", "created", "denied", "created", "created", "canceled token_revoked")
	})
}

// TestJR_2_WaivesItsReasonAlone holds that an approval lets nobody past the pin,
// an identity in use, or another reason to ask.
func TestJR_2_WaivesItsReasonAlone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.poolCalled(t, "lab", "discovery")
		pinned := newMachine(t, &claims{Macs: []string{"02:00:00:00:00:07"}, Serial: strictjson.Some(unique("CZ2D"))})
		pool = p.policy(t, pool, func(pool *store.Pool) { pool.AllowVirtualMachines = true })
		tok := p.mint(t, pool, func(tok *store.JoinToken) { tok.Expect.MAC = "02:00:00:00:00:07" })
		p.approve(t, tok, p.defers(t, tok, pinned, unknown))
		pool = p.policy(t, pool, func(pool *store.Pool) { pool.AllowVirtualMachines = false })
		wantReason(t, p.refused(t, tok, pinned), problem.ReasonHardwareMismatch)

		node := newMachine(t, nil)
		tok = p.mint(t, pool, nil)
		p.approve(t, tok, p.defers(t, tok, node, unknown))
		a := p.admit(t, tok, node)
		before := p.rows(t, a, node)
		thief := node.reinstalled(t)
		p.approve(t, tok, p.defers(t, tok, thief, unknown))
		wantReason(t, p.refused(t, tok, thief), problem.ReasonIdentityInUse)
		wantUndisturbed(t, before, p.rows(t, a, node))

		tok = p.mint(t, pool, reclaiming)
		d := p.defers(t, tok, thief.reinstalled(t), unknown)
		p.deny(t, tok, d)
		own := node.reinstalled(t)
		d = p.defers(t, tok, own, unknown)
		if q := p.request(t, tok, d.RequestID); q.ReclaimsNodeID == nil || *q.ReclaimsNodeID != a.NodeID {
			t.Errorf("%+v", q)
		}
		p.approve(t, tok, d)
		p.report(t, a)
		before = p.rows(t, a, node)
		second := p.defers(t, tok, own, active)
		if second.RequestID == d.RequestID {
			t.Error("an approval for another reason is approved already")
		}
		if q := p.request(t, tok, d.RequestID); q.Status != wire.JoinRequestStatusCanceled {
			t.Errorf("%+v", q)
		}
		wantUndisturbed(t, before, p.rows(t, a, node))
		must(t, p.recognizes(t, a, false))
		p.approve(t, tok, second) // what was waived before stays so: there may be several reasons
		if got := p.admit(t, tok, own); got.NodeID != a.NodeID {
			t.Errorf("it is %s, want %s", got.NodeID, a.NodeID)
		}
	})
}

// TestJR_2_TokenMayExpire holds that an approval outlives the token's time, not
// its uses and not its revocation.
func TestJR_2_TokenMayExpire(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		short := func(uses int64) token {
			return p.mint(t, pool, func(tok *store.JoinToken) { tok.MaxUses, tok.ExpiresAt = uses, p.db.Now().Add(time.Minute) })
		}
		expired, m := short(1), whiteBox(t)
		p.approve(t, expired, p.defers(t, expired, m, bogus))
		pendingToken, pending := short(1), whiteBox(t)
		waits := p.defers(t, pendingToken, pending, bogus)
		p.advance(59 * time.Minute)
		if p.admit(t, expired, m); p.uses(t, expired) != 1 {
			t.Errorf("%d uses", p.uses(t, expired))
		}
		p.defers(t, pendingToken, pending, bogus) // who waits is not turned away either
		p.approve(t, pendingToken, waits)
		p.admit(t, pendingToken, pending)

		usedUp, m := short(1), whiteBox(t)
		p.approve(t, usedUp, p.defers(t, usedUp, m, bogus))
		p.admit(t, usedUp, newMachine(t, nil))
		wantCode(t, p.refused(t, usedUp, m), problem.Unauthenticated)
		if uses := p.uses(t, usedUp); uses != 1 {
			t.Errorf("%d uses of 1", uses)
		}

		revoked, m := short(2), whiteBox(t)
		d := p.defers(t, revoked, m, bogus)
		waiting := p.defers(t, revoked, whiteBox(t), bogus)
		p.approve(t, revoked, d)
		p.revoke(t, revoked)
		wantCode(t, p.refused(t, revoked, m), problem.Unauthenticated)
		for _, d := range []string{d.RequestID, waiting.RequestID} {
			if q := p.request(t, revoked, d); q.Status != wire.JoinRequestStatusCanceled {
				t.Errorf("%+v", q)
			}
		}
		p.wantCauses(t, "exhausted", "revoked")
		if uses := p.uses(t, revoked); uses != 0 {
			t.Errorf("%d uses of a revoked token", uses)
		}
	})
}
