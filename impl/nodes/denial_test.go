package nodes_test

import (
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/fault"
)

// TestJR_3_Deny holds that a machine that was denied, before or after it was
// approved, never joins with that request, and may ask by another one.
func TestJR_3_Deny(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		tok := p.mint(t, p.pool(t, nil), nil)
		pending, approved := whiteBox(t), whiteBox(t)
		d := p.defers(t, tok, pending, bogus)
		p.deny(t, tok, d)
		p.deny(t, tok, d)
		wantReason(t, p.refused(t, tok, pending), problem.ReasonRequestDenied)
		d = p.defers(t, tok, approved, bogus)
		p.approve(t, tok, d)
		p.deny(t, tok, d)
		wantReason(t, p.refused(t, tok, approved), problem.ReasonRequestDenied)
		approved.claims = newMachine(t, nil).claims // by whatever it says of itself
		wantReason(t, p.refused(t, tok, approved), problem.ReasonRequestDenied)
		p.advance(29 * 24 * time.Hour)
		must(t, p.ExpireRequests(t.Context()))
		must(t, p.Forget(t.Context()))
		wantReason(t, p.refused(t, tok, approved), problem.ReasonRequestDenied)
		p.wantCauses(t, "request_denied", "request_denied", "request_denied", "request_denied")
		p.advance(-29 * 24 * time.Hour)
		p.defers(t, tok, pending.reinstalled(t), bogus)
		p.wantEvents(t, "created", "denied", "created", "approved", "denied", "created")
		if uses := p.uses(t, tok); uses != 0 {
			t.Errorf("%d uses", uses)
		}
	})
}

// TestJR_3_ApproveAndDenyAtOnce holds that when operators approve and deny a
// request at once it is denied in the end, each change is published once and
// answered to who made it, and the machine does not get in afterwards.
func TestJR_3_ApproveAndDenyAtOnce(t *testing.T) {
	t.Parallel()
	const rounds = 15
	eachRunning(t, func(t *testing.T, p *process) {
		processes := []*process{p, p.another(t)}
		tok := p.mint(t, p.pool(t, nil), usable(rounds))
		approvals, overruled := 0, 0
		for range rounds {
			m := whiteBox(t)
			d := p.defers(t, tok, m, bogus)
			var mu sync.Mutex
			approved, refused := 0, 0
			together(8, func(i int) {
				if i < 4 {
					_, err := processes[i%2].requests.Deny(ops(t.Context()), &wire.JoinRequestsDenyInput{TenantID: "acme", PoolID: "lab", RequestID: d.RequestID})
					if err != nil {
						t.Error(err)
					}
					return
				}
				out, err := processes[i%2].requests.Approve(ops(t.Context()), &wire.JoinRequestsApproveInput{
					TenantID: "acme", PoolID: "lab", RequestID: d.RequestID, CSRSha256: d.CSRSha256,
				})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && out.JoinRequest.Status == wire.JoinRequestStatusApproved:
					approved++
				case fault.Is(err, problem.InvalidState):
					refused++
				default:
					t.Errorf("%+v, %v", out, err)
				}
			})
			if approved+refused != 4 {
				t.Errorf("%d approved, %d refused", approved, refused)
			}
			if approved > 0 {
				approvals++
			} else {
				overruled++
			}
			if q := p.request(t, tok, d.RequestID); q.Status != wire.JoinRequestStatusDenied {
				t.Errorf("%+v", q)
			}
			wantReason(t, p.refused(t, tok, m), problem.ReasonRequestDenied)
		}
		if got := len(p.eventsOf(t, "acme", requestType+"denied")); got != rounds {
			t.Errorf("%d denials are published, want %d", got, rounds)
		}
		if got := len(p.eventsOf(t, "acme", requestType+"approved")); got != approvals {
			t.Errorf("%d approvals are published, and %d were answered", got, approvals)
		}
		t.Logf("approved before it was denied: %d, denied at once: %d", approvals, overruled)
	})
}

// TestJR_3_DenyAndJoinAtOnce holds that when a machine collects its approval
// while an operator denies it, one of the two holds, and the other is told.
func TestJR_3_DenyAndJoinAtOnce(t *testing.T) {
	t.Parallel()
	const rounds = 15
	eachRunning(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		processes := []*process{p, p.another(t)}
		tok := p.mint(t, pool, usable(rounds))
		joined := 0
		for range rounds {
			m := whiteBox(t)
			d := p.defers(t, tok, m, bogus)
			p.approve(t, tok, d)
			var denial, refusal error
			together(2, func(i int) {
				if i == 0 {
					_, denial = processes[0].requests.Deny(ops(t.Context()), &wire.JoinRequestsDenyInput{TenantID: "acme", PoolID: "lab", RequestID: d.RequestID})
					return
				}
				_, refusal = processes[1].join(t.Context(), tok.bearer, m)
			})
			switch {
			case refusal == nil && fault.Is(denial, problem.InvalidState):
				joined++
			case denial == nil && refusal != nil:
				wantReason(t, refusal, problem.ReasonRequestDenied)
			default:
				t.Errorf("denied: %v, joined: %v", denial, refusal)
			}
		}
		if n, uses := p.count(t, pool), p.uses(t, tok); n != joined || uses != int64(joined) {
			t.Errorf("%d nodes and %d uses, want %d", n, uses, joined)
		}
	})
}
