package main_test

import (
	"os"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/client"
)

// TestJoin_AMachineIsANode holds the whole way, with the real server: exit
// codes, what is printed, what is stored, and what the server has.
func TestJoin_AMachineIsANode(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id, token := s.mint(t, client.JoinTokensCreateInput{})
	m := newMachine(t, s, 1, token)
	e := m.join()
	node := s.node(t)
	if e.code != 0 || !strings.HasPrefix(e.stdout, "joined: node "+node.ID+" of pool platform/lab, profile node-platform, trust platform, certificate until 2") {
		t.Fatalf("%+v", e)
	}
	if node.Status != client.NodeStatusActive || node.Claims.Serial == nil || *node.Claims.Serial != "CZ2D1X0001" || node.AgentVersion == nil || *node.AgentVersion == "" {
		t.Errorf("the server has %+v", node)
	}
	status, well := m.status()
	if !well || !status.Joined || !status.Confirmed || status.NodeID != node.ID || status.Serial != *node.CertificateSerial || status.Profile != "node-platform" || status.Server != s.url {
		t.Errorf("status %+v", status)
	}
	if text := runWith(t, setting{}, "status", "--state", m.state); text.code != 0 || !strings.Contains(text.stdout, node.ID) {
		t.Errorf("%+v", text)
	}
	if e := m.join(); e.code != 0 || !strings.HasPrefix(e.stdout, "joined before: node "+node.ID) || strings.Contains(e.stdout, "stays") {
		t.Errorf("%+v", e)
	}
	if e := m.join("--server", "https://other.example"); e.code != 0 || !strings.Contains(e.stdout, "it stays with "+s.url) {
		t.Errorf("%+v", e)
	}
	if uses := s.uses(t, id); uses != 1 {
		t.Errorf("%d uses", uses)
	}
}

// TestJoin_TheTokenFromStandardInput holds that it need not be on a disk at all.
func TestJoin_TheTokenFromStandardInput(t *testing.T) {
	t.Parallel()
	s := serve(t)
	_, token := s.mint(t, client.JoinTokensCreateInput{})
	m := newMachine(t, s, 1, token)
	e := runWith(t, setting{stdin: token + "\n"}, m.args("join", "--token-file", "-")...)
	if e.code != 0 {
		t.Fatalf("%+v", e)
	}
}

// TestJoin_PlaceholderHardwareWaitsForAnOperator holds exit code 3, that what
// the operator sees is what the machine says, and that the approved one gets in.
func TestJoin_PlaceholderHardwareWaitsForAnOperator(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id, token := s.mint(t, client.JoinTokensCreateInput{})
	m := newMachine(t, s, 1, token)
	m.claim(`{"serial": "To Be Filled By O.E.M.", "productUuid": "00000000-0000-0000-0000-000000000000", "hostname": "odd"}`)
	for range 2 {
		e := m.join()
		if e.code != 3 || !strings.HasPrefix(e.stdout, "pending: an operator must approve request jr_") || !strings.Contains(e.stdout, "placeholder_hardware") {
			t.Fatalf("%+v", e)
		}
	}
	status, well := m.status()
	if well || status.Joined || status.Pending == nil {
		t.Fatalf("status %+v", status)
	}
	r := s.approve(t)
	if r.ID != status.Pending.RequestID || r.CSRSha256 != status.Pending.CSRSHA256 || r.Seen < 2 {
		t.Errorf("the request is %+v, the machine says %+v", r, *status.Pending)
	}
	if s.uses(t, id) != 0 {
		t.Error("the token was used before the approval")
	}
	m.joins()
	if node := s.node(t); *node.Claims.Hostname != "odd" || s.uses(t, id) != 1 {
		t.Errorf("%+v", node)
	}
}

// TestJoin_ADeniedRequestIsRefused holds that it stays denied.
func TestJoin_ADeniedRequestIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t)
	_, token := s.mint(t, client.JoinTokensCreateInput{})
	m := newMachine(t, s, 1, token)
	m.claim(`{"serial": "Default string"}`)
	if e := m.join(); e.code != 3 {
		t.Fatalf("%+v", e)
	}
	status, _ := m.status()
	_, err := s.admin.JoinRequests.Deny(t.Context(), client.JoinRequestsDenyInput{TenantID: platform, PoolID: lab, RequestID: status.Pending.RequestID})
	must(t, err)
	for range 2 {
		m.join().refused(t, 1, "an operator denied this join", "reason request_denied")
	}
	m.says("not joined: refused (request_denied)", "join with a new token")
}

// TestJoin_RefusedByItsPin holds that another machine than the expected one is
// told so, and that the token is as good as before.
func TestJoin_RefusedByItsPin(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id, token := s.mint(t, client.JoinTokensCreateInput{Expect: &client.JoinTokensCreateInputExpect{Serial: ptr("CZ2D1X0001")}})
	other := newMachine(t, s, 2, token)
	other.join().refused(t, 1, "this machine is not the one that the token is pinned to", "reason hardware_mismatch")
	if status, well := other.status(); well || status.Joined || !strings.Contains(status.Next, "bcd join") {
		t.Errorf("status %+v", status)
	}
	newMachine(t, s, 1, token).joins()
	if uses := s.uses(t, id); uses != 1 {
		t.Errorf("%d uses", uses)
	}
}

// TestJoin_ATokenThatIsNoGood holds that the text is the same for all, and that
// a typo is known without the server.
func TestJoin_ATokenThatIsNoGood(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id, token := s.mint(t, client.JoinTokensCreateInput{})
	newMachine(t, s, 1, token).joins()
	const says = "the server refuses the token: wrong, expired, used up or revoked"
	newMachine(t, s, 2, token).join().refused(t, 1, says)
	id, token = s.mint(t, client.JoinTokensCreateInput{IdempotencyKey: "another"})
	_, err := s.admin.JoinTokens.Revoke(t.Context(), client.JoinTokensRevokeInput{TenantID: platform, PoolID: lab, TokenID: id})
	must(t, err)
	newMachine(t, s, 3, token).join().refused(t, 1, says)
	m := newMachine(t, s, 4, token)
	m.flags = append(m.flags, "--token-file", m.file("token", token[:len(token)-1]+"?\n"))
	m.url = "https://127.0.0.1:1" // nobody
	m.join().refused(t, 1, "typo", "token file")
}

// TestNJ_5_AMachineThatIsANodeAlready holds that it is not doubled, and taken
// over where the token allows it, with an operator's word while it is still seen.
func TestNJ_5_AMachineThatIsANodeAlready(t *testing.T) {
	t.Parallel()
	s := serve(t)
	_, token := s.mint(t, client.JoinTokensCreateInput{MaxUses: ptr(int64(10))})
	newMachine(t, s, 1, token).joins()
	node := s.node(t).ID
	again := newMachine(t, s, 1, token) // reinstalled: the same machine with an empty disk
	again.join().refused(t, 1, "another node of the pool has this machine's identity", "--allow-reclaim", "reason identity_in_use")
	_, token = s.mint(t, client.JoinTokensCreateInput{AllowReclaim: ptr(true), IdempotencyKey: "reclaim"})
	again = newMachine(t, s, 1, token)
	if e := again.join(); e.code != 3 || !strings.Contains(e.stdout, "reason node_active") {
		t.Fatalf("%+v", e)
	}
	if r := s.approve(t); r.ReclaimsNodeID == nil || *r.ReclaimsNodeID != node {
		t.Errorf("the request is %+v", r)
	}
	again.joins()
	if got := s.node(t).ID; got != node {
		t.Errorf("node %s became %s", node, got)
	}
}

// TestNJ_3_ALostAnswerCostsNothing holds that an answer which is lost on the
// wire is had again: the same node, and one use.
func TestNJ_3_ALostAnswerCostsNothing(t *testing.T) {
	t.Parallel()
	s := serve(t)
	id, token := s.mint(t, client.JoinTokensCreateInput{})
	m := newMachine(t, s, 1, token)
	w := newWire(t, s)
	w.cut.Store(true)
	m.url = w.url()
	m.join("--timeout", "0").refused(t, 1, "nodes.join: no answer")
	if lost := w.lost.Load(); lost != 1 || s.uses(t, id) != 1 || len(s.nodes(t)) != 1 {
		t.Fatalf("%d answers lost, %d uses", lost, s.uses(t, id))
	}
	node := s.node(t)
	w.cut.Store(false)
	m.joins()
	status, _ := m.status()
	if got := s.node(t); status.NodeID != node.ID || got.ID != node.ID || status.Serial != *got.CertificateSerial || got.Status != client.NodeStatusActive || s.uses(t, id) != 1 {
		t.Errorf("%+v became %+v, %d uses", node, got, s.uses(t, id))
	}
}

// TestNJ_3_AServerThatIsAwayIsWaitedFor holds that join does not give up at once.
func TestNJ_3_AServerThatIsAwayIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := serve(t)
	_, token := s.mint(t, client.JoinTokensCreateInput{})
	m := newMachine(t, s, 1, token)
	w := newWire(t, s)
	w.cut.Store(true)
	m.url = w.url()
	p := launch(t, bcd, setting{}, m.args("join")...)
	p.await(t, p.stderr, "join did not succeed yet")
	w.cut.Store(false)
	if code := p.exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestJoin_OfTheMachineItself holds that bcd reads the machine that it is on.
func TestJoin_OfTheMachineItself(t *testing.T) {
	t.Parallel()
	s := serve(t)
	_, token := s.mint(t, client.JoinTokensCreateInput{})
	m := newMachine(t, s, 1, token)
	m.flags = m.flags[:4] // without --claims
	if e := m.join(); e.code != 0 && e.code != 3 {
		t.Fatalf("%+v", e)
	}
	name, err := os.Hostname()
	must(t, err)
	if status, _ := m.status(); status.Joined {
		if claims := s.node(t).Claims; claims.Hostname == nil || *claims.Hostname != name {
			t.Errorf("claims %+v", claims)
		}
	}
}
