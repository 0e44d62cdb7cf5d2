package nodes_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// TestNodes_BanUnbanRemove holds what each of them does to a node, that doing it
// again changes nothing, and what is published.
func TestNodes_BanUnbanRemove(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		a := p.admit(t, p.mint(t, p.pool(t, nil), nil), newMachine(t, nil))
		ctx := ops(t.Context())
		ban := &wire.NodesBanInput{TenantID: "acme", PoolID: "lab", NodeID: a.NodeID, Note: strictjson.Some("seen in another rack")}
		unban := &wire.NodesUnbanInput{TenantID: "acme", PoolID: "lab", NodeID: a.NodeID}
		remove := &wire.NodesRemoveInput{TenantID: "acme", PoolID: "lab", NodeID: a.NodeID}
		for range 2 {
			out, err := p.Ban(ctx, ban)
			must(t, err)
			if n := out.Node; n.Status != wire.NodeStatusBanned || !n.BannedAt.Equal(noon) || *n.BannedBy != "acme/ops" || *n.Note != "seen in another rack" {
				t.Errorf("%+v", n)
			}
			p.advance(time.Minute)
			ban.Note = strictjson.Some("again")
		}
		for range 2 {
			out, err := p.Unban(ctx, unban)
			must(t, err)
			if n := out.Node; n.Status != wire.NodeStatusJoining || n.BannedAt != nil || n.BannedBy != nil || n.Note != nil {
				t.Errorf("%+v", n)
			}
		}
		removedAt := p.db.Now()
		for range 2 {
			out, err := p.Remove(ctx, remove)
			must(t, err)
			if n := out.Node; n.Status != wire.NodeStatusRemoved || !n.RemovedAt.Equal(removedAt) {
				t.Errorf("%+v", n)
			}
			p.advance(time.Minute)
		}
		_, err := p.Ban(ctx, ban)
		wantCode(t, err, problem.InvalidState)
		_, err = p.Unban(ctx, unban)
		wantCode(t, err, problem.InvalidState)
		var got []string
		for _, e := range p.eventsOf(t, "acme") {
			if strings.HasPrefix(e.Type, "security.node.") && e.Subject == a.NodeID {
				got = append(got, strings.TrimPrefix(e.Type, "security.node."))
			}
		}
		slices.Sort(got)
		if want := []string{"banned", "joined", "removed", "unbanned"}; !slices.Equal(got, want) {
			t.Errorf("published are %q, want %q", got, want)
		}
	})
}

// TestNodes_OnlyInTheirPool holds that a node is not there for another pool or
// tenant, nor one that never was.
func TestNodes_OnlyInTheirPool(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		a := p.admit(t, p.mint(t, p.pool(t, nil), nil), newMachine(t, nil))
		p.poolCalled(t, "other", "token")
		p.pool(t, func(pool *store.Pool, _ *store.Site) { pool.TenantID = "globex" })
		ctx := ops(t.Context())
		for _, of := range []struct{ tenant, pool, node string }{
			{"acme", "other", a.NodeID}, {"globex", "lab", a.NodeID}, {"acme", "nowhere", a.NodeID}, {"acme", "lab", "nd_00000000000000000000000000"},
		} {
			for name, try := range map[string]func() error{
				"get": func() error {
					_, err := p.Get(ctx, &wire.NodesGetInput{TenantID: of.tenant, PoolID: of.pool, NodeID: of.node})
					return err
				},
				"ban": func() error {
					_, err := p.Ban(ctx, &wire.NodesBanInput{TenantID: of.tenant, PoolID: of.pool, NodeID: of.node})
					return err
				},
				"unban": func() error {
					_, err := p.Unban(ctx, &wire.NodesUnbanInput{TenantID: of.tenant, PoolID: of.pool, NodeID: of.node})
					return err
				},
				"remove": func() error {
					_, err := p.Remove(ctx, &wire.NodesRemoveInput{TenantID: of.tenant, PoolID: of.pool, NodeID: of.node})
					return err
				},
			} {
				if err := try(); !fault.Is(err, problem.NotFound) {
					t.Errorf("%s of %v: %v", name, of, err)
				}
			}
		}
		must(t, p.recognizes(t, a, false))
	})
}

// TestNodes_List holds that nodes are listed page by page in the order in which
// they joined first, and removed ones when asked for.
func TestNodes_List(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		tok := p.mint(t, pool, nil)
		var ids []string
		for range 5 {
			ids = append(ids, p.admit(t, tok, newMachine(t, nil)).NodeID)
			p.advance(time.Second)
		}
		p.admit(t, p.mint(t, p.poolCalled(t, "other", "token"), nil), newMachine(t, nil))
		p.remove(t, &api.Admission{TenantID: "acme", PoolID: "lab", NodeID: ids[1]})
		in := &wire.NodesListInput{TenantID: "acme", PoolID: "lab", Limit: 2}
		for _, want := range [][]string{{ids[0], ids[2]}, {ids[3], ids[4]}} {
			out, err := p.List(t.Context(), in)
			must(t, err)
			var got []string
			for _, n := range out.Nodes {
				got = append(got, n.ID)
			}
			if !slices.Equal(got, want) || (out.Cursor == nil) != (want[1] == ids[4]) {
				t.Errorf("%q, cursor %v; want %q", got, out.Cursor, want)
			}
			if out.Cursor != nil {
				in.Cursor = strictjson.Some(*out.Cursor)
			}
		}
		out, err := p.List(t.Context(), &wire.NodesListInput{TenantID: "acme", PoolID: "lab", Limit: 200, IncludeRemoved: true})
		must(t, err)
		if len(out.Nodes) != 5 || out.Nodes[1].Status != wire.NodeStatusRemoved || out.Nodes[1].CertificateSerial != nil {
			t.Errorf("%+v", out.Nodes)
		}
	})
}

// TestNodes_View holds that a node is shown with what its machine said, and
// what its token has.
func TestNodes_View(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		tok := p.mint(t, p.pool(t, nil), func(tok *store.JoinToken) { tok.Hosted = "kubernetes" })
		m := newMachine(t, &claims{
			ProductUUID: strictjson.Some("4C4C4544-0042-3510-8052-B3C04F4B4E32"), Serial: strictjson.Some("CZ2D1X0QTP "), Macs: []string{"3C:EC:EF:12:34:56"},
			GPUUuids: []string{gpu1}, Hostname: strictjson.Some("rack7-u12"), Environment: strictjson.Some(wire.ClaimedEnvironmentHost),
		})
		n := p.node(t, p.admit(t, tok, m))
		c := n.Claims
		if *c.ProductUUID != m.claims.ProductUUID.Value || *c.Serial != "CZ2D1X0QTP " || !slices.Equal(c.Macs, m.claims.Macs) || !slices.Equal(c.GPUUuids, m.claims.GPUUuids) ||
			*c.Hostname != "rack7-u12" || *c.Environment != wire.ClaimedEnvironmentHost {
			t.Errorf("%+v", c)
		}
		if n.Hosted == nil || *n.Hosted != wire.HostedKubernetes || n.TokenID != tok.ID || n.TenantID != "acme" || n.PoolID != "lab" || !n.CreatedAt.Equal(noon) || !n.JoinedAt.Equal(noon) {
			t.Errorf("%+v", n)
		}
		bare := p.node(t, p.admit(t, tok, newMachine(t, &claims{Macs: []string{mac2}}))).Claims
		if len(bare.Macs) != 1 || len(bare.GPUUuids) != 0 || bare.Serial != nil || bare.Hostname != nil || bare.Environment != nil {
			t.Errorf("%+v", bare)
		}
	})
}

// TestNodes_Forget holds that a removed node goes after 30 days, and a live one
// with its key never.
func TestNodes_Forget(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		pool := p.pool(t, nil)
		tok := p.mint(t, pool, nil)
		removed, m := p.admit(t, tok, newMachine(t, nil)), newMachine(t, nil)
		alive := p.admit(t, tok, m)
		renewed := p.renew(t, alive, m.asking(t, template("next")))
		p.confirm(t, renewed)
		p.remove(t, removed)
		all := func() int {
			out, err := p.List(t.Context(), &wire.NodesListInput{TenantID: "acme", PoolID: "lab", Limit: 200, IncludeRemoved: true})
			must(t, err)
			return len(out.Nodes)
		}
		p.advance(30*24*time.Hour - time.Second)
		must(t, p.Forget(t.Context()))
		if n := all(); n != 2 {
			t.Errorf("%d nodes before 30 days", n)
		}
		p.advance(2 * time.Second)
		must(t, p.Forget(t.Context()))
		if n := all(); n != 1 {
			t.Errorf("%d nodes after 30 days", n)
		}
		p.advance(2 * 24 * time.Hour)
		must(t, p.Forget(t.Context()))
		if _, err := p.db.NodeCertificate(t.Context(), renewed.Serial); !fault.Is(err, problem.NotFound) {
			t.Errorf("a certificate that ended 30 days ago is still there: %v", err)
		}
		other := p.mint(t, pool, func(tok *store.JoinToken) { tok.ExpiresAt = p.db.Now().Add(time.Hour) })
		wantCode(t, p.refused(t, other, m.asking(t, template("join"))), problem.Conflict) // the key is still the node's
	})
}

// TestNJ_1_Bearer holds how a join token is written in a header, and that
// nothing of a refused one is in the answer or the audit.
func TestNJ_1_Bearer(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		tok := p.mint(t, p.pool(t, nil), nil)
		text := strings.TrimPrefix(tok.bearer, "Bearer ")
		for _, good := range []string{tok.bearer, "bearer " + text, "BEARER   " + text} {
			arrival, err := p.Arrive(t.Context(), good, address)
			if err != nil || arrival.Token.ID != tok.ID || arrival.Address != address {
				t.Errorf("%+v, %v", arrival, err)
			}
		}
		for _, bad := range []string{"", text, "Bearer", "Bearer ", "Basic " + text, "Bearer" + text, tok.bearer + " ", tok.bearer + "\n", tok.bearer + "x", tok.bearer[:len(tok.bearer)-1], "Bearer " + strings.Replace(text, "bcjt_", "bck_", 1), "Bearer bcjt_jt_1." + strings.Repeat("0", 49)} {
			_, err := p.Arrive(t.Context(), bad, address)
			wantCode(t, err, problem.Unauthenticated)
			if secret := text[strings.Index(text, ".")+1:]; err != nil && strings.Contains(err.Error(), secret[:20]) {
				t.Errorf("the answer tells the token: %v", err)
			}
		}
		for _, cause := range p.causes() {
			if cause != "malformed" {
				t.Errorf("the audit has %s", cause)
			}
		}
	})
}

// TestNJ_1_DatabaseGone holds that a machine is not refused for a fault of ours,
// and that nothing is audited.
func TestNJ_1_DatabaseGone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		tok, m := p.mint(t, p.pool(t, nil), nil), newMachine(t, nil)
		a := p.admit(t, tok, m)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.join(ctx, tok.bearer, m); err == nil || fault.From(err).Code != problem.Unavailable {
			t.Errorf("%v", err)
		}
		if _, err := p.Recognize(ctx, chainOf(t, a.Certificate), false); err == nil || fault.From(err).Code != problem.Unavailable {
			t.Errorf("%v", err)
		}
		p.wantCauses(t)
	})
}
