package nodes_test

import (
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// TestNJ_5_Race holds that of two machines that race for one identity exactly
// one has it, round after round, and that the loser disturbs nothing.
func TestNJ_5_Race(t *testing.T) {
	t.Parallel()
	const rounds = 20
	eachRunning(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		processes := []*process{p, p.another(t)}
		for round := range rounds {
			change := func(tok *store.JoinToken) { tok.AllowReclaim = round%2 == 0 }
			toks := []token{p.mint(t, pool, change), p.mint(t, pool, change)}
			m := newMachine(t, &claims{Serial: strictjson.Some(unique("CZ2D")), Macs: []string{mac1[:9] + hexes(round) + ":01", mac1[:9] + hexes(round) + ":02"}})
			rivals := []machine{m, m.reinstalled(t)}
			rivals[1].claims.Macs = []string{m.claims.Macs[1], m.claims.Macs[0]}
			var mu sync.Mutex
			var winner *api.Admission
			together(2, func(i int) {
				out, err := processes[i].join(t.Context(), toks[i].bearer, rivals[i])
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && out.Admitted != nil && winner == nil:
					winner = out.Admitted
				case err == nil && out.Pending != nil && out.Pending.Reason == wire.DeferralReasonNodeActive && toks[i].AllowReclaim:
				case fault.Is(err, problem.PermissionDenied) && fault.From(err).Reason == problem.ReasonIdentityInUse && !toks[i].AllowReclaim:
				default:
					t.Errorf("%+v, %v, with %+v", out, err, winner)
				}
			})
			if winner == nil {
				t.Fatal("nobody has the identity")
			}
			if held := p.rows(t, winner, m).Held; len(held) != 3 {
				t.Errorf("the winner holds %v", held)
			}
			must(t, p.recognizes(t, winner, false))
			if n := p.count(t, pool); n != round+1 {
				t.Fatalf("%d nodes after %d rounds", n, round+1)
			}
			if uses := p.uses(t, toks[0]) + p.uses(t, toks[1]); uses != 1 {
				t.Errorf("%d uses", uses)
			}
		}
	})
}

// TestNJ_5_RaceForANodeThatIsThere holds that of machines that race for a node
// that is not alive one takes it over, or none without leave, and that it stays one node.
func TestNJ_5_RaceForANodeThatIsThere(t *testing.T) {
	t.Parallel()
	const rounds, rivals = 12, 4
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		processes := []*process{p, p.another(t)}
		for round := range rounds {
			leave := round%2 == 0
			tok := p.mint(t, pool, func(tok *store.JoinToken) { tok.AllowReclaim, tok.ExpiresAt = leave, p.db.Now().Add(time.Hour) })
			m := newMachine(t, nil)
			first := p.admit(t, tok, m)
			p.confirm(t, first)
			p.advance(2 * time.Minute)
			before := p.rows(t, first, m)
			var machines []machine
			for range rivals {
				machines = append(machines, m.reinstalled(t))
			}
			var mu sync.Mutex
			var winners []*api.Admission
			together(rivals, func(i int) {
				out, err := processes[i%2].join(t.Context(), tok.bearer, machines[i])
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && out.Admitted != nil && out.Admitted.NodeID == first.NodeID && leave:
					winners = append(winners, out.Admitted)
				case err == nil && out.Pending != nil && out.Pending.Reason == wire.DeferralReasonNodeActive && leave:
				case fault.Is(err, problem.PermissionDenied) && fault.From(err).Reason == problem.ReasonIdentityInUse && !leave:
				default:
					t.Errorf("%+v, %v", out, err)
				}
			})
			if p.count(t, pool) != round+1 {
				t.Fatalf("there are %d nodes after %d rounds", p.count(t, pool), round+1)
			}
			if !leave {
				wantUndisturbed(t, before, p.rows(t, first, m))
				must(t, p.recognizes(t, first, false))
				continue
			}
			if len(winners) != 1 {
				t.Fatalf("%d machines have the node", len(winners))
			}
			must(t, p.recognizes(t, winners[0], false))
			wantCode(t, p.recognizes(t, first, true), problem.Unauthenticated)
			if uses := p.uses(t, tok); uses != 2 {
				t.Errorf("%d uses, want 2", uses)
			}
		}
	})
}

func hexes(n int) string {
	return string([]byte{"0123456789abcdef"[n/16%16], "0123456789abcdef"[n%16]})
}
