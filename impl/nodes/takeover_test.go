package nodes_test

import (
	"reflect"
	"slices"
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

// A rowSet is all that is stored of a node.
type rowSet struct {
	Node        store.Node
	Certificate store.NodeCertificate
	Caller      store.Caller
	Held        []store.Identifier
}

// rows reads all that is stored of a node that a machine has become.
func (p *process) rows(t testing.TB, a *api.Admission, m machine) (rows rowSet) {
	t.Helper()
	var err error
	rows.Node, err = p.db.Node(t.Context(), a.TenantID, a.PoolID, a.NodeID)
	must(t, err)
	rows.Certificate, err = p.db.NodeCertificate(t.Context(), a.Serial)
	must(t, err)
	rows.Caller, err = p.db.Caller(t.Context(), a.Serial)
	must(t, err)
	holdings, err := p.db.Holdings(t.Context(), a.TenantID, a.PoolID, m.tells())
	must(t, err)
	for _, h := range holdings {
		if h.Node.ID == a.NodeID {
			rows.Held = append(rows.Held, h.Identifier)
		}
	}
	return rows
}

func wantUndisturbed(t testing.TB, before, after rowSet) {
	t.Helper()
	if !reflect.DeepEqual(before, after) {
		t.Errorf("the node was\n%+v, and is\n%+v", before, after)
	}
}

// TestNJ_5_WithoutReclaim holds that a machine whose hardware is another node's
// is refused by a token that may not take over, whether that node is alive or not.
func TestNJ_5_WithoutReclaim(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		tok := p.mint(t, p.pool(t, nil), nil)
		m := newMachine(t, &claims{Serial: strictjson.Some("CZ2D1X0QTP"), Macs: []string{mac1, mac2}})
		a := p.admit(t, tok, m)
		p.confirm(t, a)
		before := p.rows(t, a, m)
		for name, c := range map[string]*claims{
			"all of it":    &m.claims,
			"one address":  {Macs: []string{mac2}},
			"its serial":   {Serial: strictjson.Some("cz2d1x0qtp"), Macs: []string{"3c:ec:ef:99:99:99"}},
			"and it again": {Macs: []string{"3C:EC:EF:12:34:56"}, Serial: strictjson.Some(unique("CZ2D"))},
		} {
			err := p.refused(t, tok, newMachine(t, c))
			if wantReason(t, err, problem.ReasonIdentityInUse); t.Failed() {
				t.Fatal(name)
			}
			p.advance(time.Hour / 8)
		}
		p.wantCauses(t, "identity_in_use", "identity_in_use", "identity_in_use", "identity_in_use")
		wantUndisturbed(t, before, p.rows(t, a, m))
		must(t, p.recognizes(t, a, false))
		if uses := p.uses(t, tok); uses != 1 {
			t.Errorf("%d uses, want 1", uses)
		}
	})
}

// TestNJ_5_Reclaim holds that a token that may take over hands a machine the
// node that it was: the same id and history, old certificates refused.
func TestNJ_5_Reclaim(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		tok, again := p.mint(t, pool, nil), p.mint(t, pool, reclaiming)
		m := newMachine(t, &claims{Serial: strictjson.Some("CZ2D1X0QTP"), Macs: []string{mac1, mac2}})
		first := p.admit(t, tok, m)
		p.confirm(t, first)
		renewed := p.renew(t, first, newMachine(t, nil))
		p.advance(time.Minute)
		m2 := newMachine(t, &claims{Serial: strictjson.Some("CZ2D1X0QTP"), Macs: []string{mac1, "3c:ec:ef:99:99:99"}, Hostname: strictjson.Some("rack7")})
		second := p.admit(t, again, m2)
		if second.NodeID != first.NodeID || second.Serial == first.Serial || second.Replayed {
			t.Errorf("%+v after %+v", second, first)
		}
		for _, old := range []*api.Admission{first, renewed} {
			for _, renewal := range []bool{false, true} {
				wantCode(t, p.recognizes(t, old, renewal), problem.Unauthenticated)
			}
		}
		n := p.node(t, second)
		if n.Status != wire.NodeStatusJoining || !n.CreatedAt.Equal(noon) || !n.JoinedAt.Equal(noon.Add(time.Minute)) || n.LastSeenAt != nil ||
			n.TokenID != again.ID || n.Claims.Hostname == nil || *n.CertificateSerial != second.Serial {
			t.Errorf("%+v", n)
		}
		p.confirm(t, second)
		if got := p.node(t, second); got.Status != wire.NodeStatusActive || p.count(t, pool) != 1 {
			t.Errorf("%+v, one of %d", got, p.count(t, pool))
		}
		// What it has no more is free, what it has is its own.
		held := p.rows(t, second, machine{claims: claims{Serial: m.claims.Serial, Macs: []string{mac1, mac2, "3c:ec:ef:99:99:99"}}}).Held
		if want := m2.tells(); !slices.Equal(held, want) {
			t.Errorf("it holds %v, want %v", held, want)
		}
		p.admit(t, tok, newMachine(t, &claims{Macs: []string{mac2}}))
		if got := p.eventsOf(t, "acme", "security.node.reclaimed"); len(got) != 1 || got[0].Data["serial"] != second.Serial || got[0].Subject != first.NodeID {
			t.Errorf("%v", got)
		}
	})
}

// TestNJ_5_AliveIsDeferred holds that a node that joined or reported within the
// last 60 seconds is handed over by an operator alone, and then exactly that one.
func TestNJ_5_AliveIsDeferred(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		for name, seen := range map[string]func(a *api.Admission){
			"joined":    func(*api.Admission) {},
			"confirmed": func(a *api.Admission) { p.advance(time.Hour / 4); p.confirm(t, a) },
			"reported":  func(a *api.Admission) { p.advance(time.Hour / 4); p.report(t, a) },
		} {
			tok := p.mint(t, pool, func(tok *store.JoinToken) { tok.AllowReclaim, tok.ExpiresAt = true, p.db.Now().Add(24*time.Hour) })
			m := newMachine(t, nil)
			a := p.admit(t, tok, m)
			seen(a)
			p.advance(time.Minute - time.Microsecond)
			before := p.rows(t, a, m)
			again := m.reinstalled(t)
			d := p.defers(t, tok, again, wire.DeferralReasonNodeActive)
			wantUndisturbed(t, before, p.rows(t, a, m))
			if q := p.request(t, tok, d.RequestID); q.ReclaimsNodeID == nil || *q.ReclaimsNodeID != a.NodeID {
				t.Fatalf("%s: the operator does not see which node it is about: %+v", name, q)
			}
			p.report(t, a) // it is still there
			p.approve(t, tok, d)
			must(t, p.recognizes(t, a, false))
			if got := p.admit(t, tok, again); got.NodeID != a.NodeID {
				t.Errorf("%s: the approval hands over %s, want %s", name, got.NodeID, a.NodeID)
			}
			wantCode(t, p.recognizes(t, a, false), problem.Unauthenticated)
		}
		tok, m := p.mint(t, pool, func(tok *store.JoinToken) { tok.AllowReclaim, tok.ExpiresAt = true, p.db.Now().Add(time.Hour) }), newMachine(t, nil)
		a := p.admit(t, tok, m)
		p.advance(time.Minute)
		if got := p.admit(t, tok, m.reinstalled(t)); got.NodeID != a.NodeID {
			t.Errorf("60 seconds later it is %s, want %s", got.NodeID, a.NodeID)
		}
	})
}

// TestNJ_5_ApprovalHandsOverWhatWasSeen holds that an approval is for the node
// that the operator saw: where another one has the hardware since, an operator is asked again.
func TestNJ_5_ApprovalHandsOverWhatWasSeen(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		tok := p.mint(t, p.pool(t, nil), reclaiming)
		m := newMachine(t, nil)
		a := p.admit(t, tok, m)
		again := m.reinstalled(t)
		d := p.defers(t, tok, again, wire.DeferralReasonNodeActive)
		p.approve(t, tok, d)
		p.remove(t, a)
		other := p.admit(t, tok, m.reinstalled(t)) // the hardware's owner now, and alive
		before := p.rows(t, other, m)
		second := p.defers(t, tok, again, wire.DeferralReasonNodeActive)
		wantUndisturbed(t, before, p.rows(t, other, m))
		if q := p.request(t, tok, second.RequestID); second.RequestID == d.RequestID || *q.ReclaimsNodeID != other.NodeID {
			t.Errorf("%+v", q)
		}
		if q := p.request(t, tok, d.RequestID); q.Status != wire.JoinRequestStatusCanceled {
			t.Errorf("the approval for the other node is still there: %+v", q)
		}
		p.approve(t, tok, second)
		if got := p.admit(t, tok, again); got.NodeID != other.NodeID {
			t.Errorf("the approval hands over %s, want %s", got.NodeID, other.NodeID)
		}
	})
}

// TestNJ_5_SeveralCandidates holds that a machine that could be either of two
// nodes is deferred, and that an approval makes it a third one and what they
// have in common nobody's.
func TestNJ_5_SeveralCandidates(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		tok := p.mint(t, pool, reclaiming)
		m1 := newMachine(t, &claims{Macs: []string{mac1}, Serial: strictjson.Some(unique("CZ2D"))})
		m2 := newMachine(t, &claims{Macs: []string{mac2}, Serial: strictjson.Some(unique("CZ2D"))})
		a1, a2 := p.admit(t, tok, m1), p.admit(t, tok, m2)
		p.advance(time.Hour / 2)
		both := newMachine(t, &claims{Macs: []string{mac1, mac2}, Serial: strictjson.Some(unique("CZ2D"))})
		d := p.defers(t, tok, both, wire.DeferralReasonSeveralCandidates)
		if q := p.request(t, tok, d.RequestID); q.ReclaimsNodeID != nil {
			t.Errorf("an approval would hand over %s", *q.ReclaimsNodeID)
		}
		p.approve(t, tok, d)
		a3 := p.admit(t, tok, both)
		if a3.NodeID == a1.NodeID || a3.NodeID == a2.NodeID || p.count(t, pool) != 3 {
			t.Errorf("it is %s, after %s and %s", a3.NodeID, a1.NodeID, a2.NodeID)
		}
		must(t, p.recognizes(t, a1, false))
		must(t, p.recognizes(t, a2, false))
		holdings, err := p.db.Holdings(t.Context(), "acme", "lab", both.tells())
		must(t, err)
		for _, h := range holdings {
			if shared := h.Kind == "mac"; h.Shared != shared {
				t.Errorf("%s of %s: shared is %v", h.Value, h.Node.ID, h.Shared)
			}
		}
		if len(holdings) != 5 { // either address of two nodes, and the serial of one
			t.Errorf("%v", holdings)
		}
		// A shared value counts for nobody any more, and is shown as such.
		p.defers(t, tok, newMachine(t, &claims{Macs: []string{mac1, mac2}}), wire.DeferralReasonPlaceholderHardware)
		p.advance(2 * time.Minute)
		if got := p.admit(t, tok, m1.reinstalled(t)); got.NodeID != a1.NodeID {
			t.Errorf("its serial tells %s, and it became %s", a1.NodeID, got.NodeID)
		}
	})
}

// TestNJ_5_Banned holds that a banned node's hardware never joins its pool
// again, not even by an approval, and joins another pool.
func TestNJ_5_Banned(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.poolCalled(t, "lab", "discovery")
		tok := p.mint(t, pool, reclaiming)
		m := newMachine(t, nil)
		d := p.defers(t, tok, m, wire.DeferralReasonUnknownMachine)
		p.approve(t, tok, d)
		a := p.admit(t, tok, m)
		p.ban(t, a)
		p.advance(time.Hour / 2)
		before := p.rows(t, a, m)
		again := m.reinstalled(t)
		p.approve(t, tok, p.defers(t, tok, again, wire.DeferralReasonUnknownMachine))
		for _, tok := range []token{tok, p.mint(t, pool, nil)} {
			if tok.AllowReclaim {
				wantReason(t, p.refused(t, tok, again), problem.ReasonNodeBanned)
			}
		}
		wantReason(t, p.refused(t, tok, m), problem.ReasonNodeBanned) // its own retry, too
		p.wantCauses(t, "node_banned", "node_banned")
		wantUndisturbed(t, before, p.rows(t, a, m))
		other := p.mint(t, p.poolCalled(t, "other", "token"), reclaiming)
		if got := p.admit(t, other, m.reinstalled(t)); got.NodeID == a.NodeID {
			t.Error("another pool hands over the banned node")
		}
		wantUndisturbed(t, before, p.rows(t, a, m))
	})
}

// TestNJ_5_OnlyItsOwnPool holds that nodes of other pools and tenants are no
// candidates and are not touched, and nor are nodes that were removed.
func TestNJ_5_OnlyItsOwnPool(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		m := newMachine(t, &claims{Serial: strictjson.Some("CZ2D1X0QTP"), Macs: []string{mac1}})
		var admissions []*api.Admission
		var before []rowSet
		for _, owner := range []struct{ tenant, pool string }{{"acme", "lab"}, {"acme", "other"}, {"globex", "lab"}} {
			pool := p.pool(t, func(pool *store.Pool, _ *store.Site) { pool.TenantID, pool.PoolID = owner.tenant, owner.pool })
			a := p.admit(t, p.mint(t, pool, reclaiming), m.reinstalled(t))
			if a.TenantID != owner.tenant || a.PoolID != owner.pool || slices.ContainsFunc(admissions, func(o *api.Admission) bool { return o.NodeID == a.NodeID }) {
				t.Errorf("%+v", a)
			}
			admissions, before = append(admissions, a), append(before, p.rows(t, a, m))
		}
		pool := store.Pool{TenantID: "acme", PoolID: "lab"}
		p.advance(2 * time.Minute)
		p.remove(t, admissions[0])
		removed := p.rows(t, admissions[0], m)
		a := p.admit(t, p.mint(t, pool, nil), m.reinstalled(t)) // needs no leave to take over
		if a.NodeID == admissions[0].NodeID {
			t.Error("a removed node comes back")
		}
		wantUndisturbed(t, removed, p.rows(t, admissions[0], m))
		p.advance(2 * time.Minute)
		if got := p.admit(t, p.mint(t, pool, reclaiming), m.reinstalled(t)); got.NodeID != a.NodeID {
			t.Errorf("%s takes the place of %s", got.NodeID, a.NodeID)
		}
		for i := 1; i < len(admissions); i++ {
			wantUndisturbed(t, before[i], p.rows(t, admissions[i], m))
			must(t, p.recognizes(t, admissions[i], false))
		}
	})
}

// TestNJ_5_TrustIsTheLeast holds that a node that is taken over is trusted with
// the least of pool, token and what it was trusted with before (JT-40).
func TestNJ_5_TrustIsTheLeast(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, func(pool *store.Pool, site *store.Site) { site.TenantID = "platform" })
		reclaim := func(hosted string) token {
			return p.mint(t, pool, func(tok *store.JoinToken) {
				tok.AllowReclaim, tok.Hosted, tok.ExpiresAt = true, hosted, p.db.Now().Add(time.Hour)
			})
		}
		m := newMachine(t, nil)
		for _, step := range []struct {
			hosted string
			want   wire.Trust
		}{{"", wire.TrustPlatform}, {"", wire.TrustPlatform}, {"kubernetes", wire.TrustTenantControlled}, {"", wire.TrustTenantControlled}} {
			a := p.admit(t, reclaim(step.hosted), m.reinstalled(t))
			if a.Trust != step.want || p.count(t, pool) != 1 {
				t.Errorf("by a token for %q it is trusted as %s, want %s", step.hosted, a.Trust, step.want)
			}
			p.advance(2 * time.Minute)
		}
		p.remove(t, &api.Admission{TenantID: "acme", PoolID: "lab", NodeID: p.nodesOf(t, pool)[0].ID})
		if a := p.admit(t, reclaim(""), m.reinstalled(t)); a.Trust != wire.TrustPlatform {
			t.Errorf("a new node is trusted as %s", a.Trust)
		}
	})
}

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
