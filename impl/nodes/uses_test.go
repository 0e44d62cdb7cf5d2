package nodes_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/csr"
	"github.com/bettercompute/bettercompute/impl/fault"
)

// TestNJ_2_UsesUnderRaces holds that 64 machines that join at once, through two
// processes, never use a token once too often: uses are admissions, and every
// refusal is audited as exhausted.
func TestNJ_2_UsesUnderRaces(t *testing.T) {
	t.Parallel()
	const crowd = 64
	eachRunning(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		processes := []*process{p, p.another(t)}
		waiting := make([]machine, crowd) // keys that no node has yet
		for i := range waiting {
			waiting[i] = newMachine(t, nil)
		}
		for _, c := range []struct{ maxUses, rounds, waves int }{{1, 10, 1}, {5, 50, 1}, {100, 1, 2}} {
			for range c.rounds {
				tok := p.mint(t, pool, usable(int64(c.maxUses)))
				admitted, refused := 0, 0
				for range c.waves {
					var in []int
					in, refused = crowdJoins(t, processes, tok, waiting, refused)
					admitted += len(in)
					for _, i := range in {
						waiting[i] = newMachine(t, nil)
					}
				}
				want := min(c.maxUses, crowd*c.waves)
				if uses := p.uses(t, tok); admitted != want || uses != int64(want) || refused != crowd*c.waves-want {
					t.Fatalf("of %d uses %d were admitted, %d refused, and %d are counted", c.maxUses, admitted, refused, uses)
				}
			}
		}
		if nodes, want := p.count(t, pool), 10*1+50*5+100; nodes != want {
			t.Errorf("there are %d nodes, want %d", nodes, want)
		}
	})
}

// crowdJoins lets all machines join at once, every other one by another
// process. It returns who was admitted and adds up who was refused.
func crowdJoins(t *testing.T, processes []*process, tok token, crowd []machine, refused int) (admitted []int, all int) {
	t.Helper()
	var mu sync.Mutex
	serials := map[string]bool{}
	together(len(crowd), func(i int) {
		out, err := processes[i%len(processes)].join(t.Context(), tok.bearer, crowd[i])
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil && out.Admitted != nil && !out.Admitted.Replayed:
			admitted = append(admitted, i)
			serials[out.Admitted.Serial] = true
		case fault.Is(err, problem.Unauthenticated):
			refused++
		default:
			t.Errorf("neither admitted nor refused: %+v, %v", out, err)
		}
	})
	if len(serials) != len(admitted) {
		t.Errorf("%d machines have %d certificates", len(admitted), len(serials))
	}
	var causes []string
	for _, p := range processes {
		causes = append(causes, p.causes()...)
	}
	if len(causes) != len(crowd)-len(admitted) || slices.ContainsFunc(causes, func(c string) bool { return c != "exhausted" }) {
		t.Errorf("%d were refused, and the audit has %q", len(crowd)-len(admitted), causes)
	}
	return admitted, refused
}

// TestNJ_2_NothingIsSpentByARefusal holds that whatever refuses or defers a
// machine leaves the token as it was, and that no node is made.
func TestNJ_2_NothingIsSpentByARefusal(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		tok := p.mint(t, pool, usable(1))
		p.defers(t, tok, called(t, "Default string"), "placeholder_hardware")
		bad := newMachine(t, nil)
		bad.csr = bad.csr[:100]
		wantCode(t, p.refused(t, tok, bad), problem.InvalidInput)
		if uses, count := p.uses(t, tok), p.count(t, pool); uses != 0 || count != 0 {
			t.Errorf("%d uses and %d nodes", uses, count)
		}
		p.admit(t, tok, newMachine(t, nil))
		wantCode(t, p.refused(t, tok, newMachine(t, nil)), problem.Unauthenticated)
		if uses, count := p.uses(t, tok), p.count(t, pool); uses != 1 || count != 1 {
			t.Errorf("%d uses and %d nodes", uses, count)
		}
	})
}

// TestNJ_3_BadCSR holds that every text that is no request which can be signed
// is told as such, for a join and a renewal, and spends nothing.
func TestNJ_3_BadCSR(t *testing.T) {
	t.Parallel()
	bad := badCSRs(t)
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		tok := p.mint(t, pool, nil)
		a := p.admit(t, tok, newMachine(t, nil))
		for name, text := range bad {
			if _, err := csr.Parse(text); err == nil {
				t.Fatalf("%s: is a good request", name)
			}
			m := newMachine(t, nil)
			m.csr = text
			wantBadCSR(t, name, p.refused(t, tok, m))
			_, err := p.Renew(p.as(t, a), renewal(m))
			wantBadCSR(t, name, err)
		}
		if uses := p.uses(t, tok); uses != 1 {
			t.Errorf("%d uses, want 1", uses)
		}
		p.wantCauses(t)
	})
}

func wantBadCSR(t *testing.T, name string, err error) {
	t.Helper()
	told := fault.From(err)
	if err == nil || told.Code != problem.InvalidInput || len(told.Violations) != 1 {
		t.Errorf("%s: %v", name, err)
		return
	}
	if v := told.Violations[0]; v.Field != "csr" || v.Rule != problem.RuleCSR || v.Message == "" {
		t.Errorf("%s: %+v", name, v)
	}
}
