package main_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/client"
)

// TestNJ_3_KilledAtAnyMoment holds that a machine whose daemon is killed again
// and again becomes one node, with one use of its token.
func TestNJ_3_KilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const machines = 8
	id, token := s.mint(t, client.JoinTokensCreateInput{MaxUses: ptr(int64(machines))})
	kills := 0
	var whole time.Duration // that a join takes which is left alone
	for n := range machines {
		m := newMachine(t, s, n, token)
		for tries, done := 0, false; !done; tries++ {
			begun := time.Now()
			p := launch(t, bcd, setting{}, m.args("join")...)
			if n > 0 && tries < 10 {
				timer := time.NewTimer(rand.N(whole))
				select {
				case <-p.ended:
				case <-timer.C:
					if p.cmd.Process.Kill() == nil { // else it ended at the same moment
						kills++
					}
				}
				timer.Stop()
			}
			switch code := p.exit(t); code {
			case 0:
				done = true
			case -1:
			default:
				t.Fatalf("exit code %d: %s", code, p.stderr)
			}
			if n == 0 {
				whole = time.Since(begun)
			}
		}
		if status, well := m.status(); !well || !m.active(status.NodeID) {
			t.Errorf("status %+v", status)
		}
	}
	if uses, nodes := s.uses(t, id), len(s.nodes(t)); uses != machines || nodes != machines {
		t.Errorf("%d uses and %d nodes of %d machines", uses, nodes, machines)
	}
	t.Logf("%d kills; a join takes %v", kills, whole)
}
