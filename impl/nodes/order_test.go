package nodes_test

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/bearer"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// A step is one reason not to make a machine a new node, in the order of NJ-1.
type step struct {
	name   string
	stage  string // no two of one stage at once
	answer string // code, code/reason, admitted or pending/reason
	cause  string // what the audit has; empty: nothing
}

var steps = []step{
	{"no bearer", "bearer", "UNAUTHENTICATED", "malformed"},
	{"a mistyped bearer", "bearer", "UNAUTHENTICATED", "malformed"},
	{"an unknown token", "bearer", "UNAUTHENTICATED", "unknown"},
	{"a wrong secret", "bearer", "UNAUTHENTICATED", "wrong_secret"},
	{"a revoked token", "revoked", "UNAUTHENTICATED", "revoked"},
	{"a bad CSR", "csr", "INVALID_INPUT", ""},
	{"joined and removed", "used", "UNAUTHENTICATED", "node_removed"},
	{"joined and banned", "used", "PERMISSION_DENIED/node_banned", "node_banned"},
	{"joined and confirmed", "used", "CONFLICT", "already_joined"},
	{"joined", "used", "admitted", ""},
	{"a key that is a node's", "key", "CONFLICT", "key_taken"},
	{"a key that waits elsewhere", "key", "CONFLICT", "key_taken"},
	{"denied", "request", "PERMISSION_DENIED/request_denied", "request_denied"},
	{"pending", "request", "pending/unlisted_ek", ""},
	{"used up", "exhausted", "UNAUTHENTICATED", "exhausted"},
	{"expired", "expired", "UNAUTHENTICATED", "expired"},
	{"another machine's pin", "pin", "PERMISSION_DENIED/hardware_mismatch", "hardware_mismatch"},
	{"a byte-swapped pin", "pin", "PERMISSION_DENIED/uuid_byte_order", "uuid_byte_order"},
	{"unknown to the inventory", "attestor", "pending/unknown_machine", ""},
	{"nothing but placeholders", "attestor", "pending/placeholder_hardware", ""},
	{"a banned node's hardware", "holder", "PERMISSION_DENIED/node_banned", "node_banned"},
	{"another node's hardware", "holder", "PERMISSION_DENIED/identity_in_use", "identity_in_use"},
	{"two nodes' hardware", "holder", "pending/several_candidates", ""},
	{"a live node's hardware", "holder", "pending/node_active", ""},
}

// impossible are pairs that cannot be, beside those of one stage.
func impossible(a, b step) bool {
	both := func(x, y string) bool { return a.name == x && b.name == y || a.name == y && b.name == x }
	switch {
	case a.stage == b.stage:
		return true
	case a.stage == "used" && b.name == "a key that is a node's": // it is this node's
		return true
	case a.name == "nothing but placeholders" && b.stage == "holder": // which are nobody's
		return true
	}
	return both("a byte-swapped pin", "nothing but placeholders") // which no pin matches in any order
}

// TestNJ_1_Order holds that of any two reasons the earlier one is answered, and
// heard by the audit, that 401 has one text, and that nothing is spent.
func TestNJ_1_Order(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *process) {
		unauthenticated := map[string]bool{}
		pairs := 0
		for i, first := range steps {
			alone := newScene(t, p, first)
			alone.holds(t, first, unauthenticated)
			for _, second := range steps[i+1:] {
				if !impossible(first, second) {
					pairs++
					newScene(t, p, first, second).holds(t, first, unauthenticated)
				}
			}
		}
		if pairs < 200 {
			t.Errorf("only %d pairs were tried", pairs)
		}
		if len(unauthenticated) != 1 {
			t.Errorf("401 has %d texts: %v", len(unauthenticated), unauthenticated)
		}
		if scene := newScene(t, p); scene.p.admit(t, scene.tok, scene.m).Replayed {
			t.Error("without any reason the machine is not a new node")
		}
	})
}

// A scene is a machine at the door of a pool of its own, with some reasons against it.
type scene struct {
	p      *process
	name   string
	pool   store.Pool
	tok    token
	bearer string
	m      machine
}

func newScene(t *testing.T, p *process, reasons ...step) *scene {
	t.Helper()
	has := func(name string) bool {
		return slices.ContainsFunc(reasons, func(r step) bool { return r.name == name })
	}
	of := func(stage string) bool {
		return slices.ContainsFunc(reasons, func(r step) bool { return r.stage == stage })
	}
	s := &scene{p: p}
	for _, r := range reasons {
		s.name += r.name + " × "
	}
	attestor := "token"
	if has("unknown to the inventory") {
		attestor = "discovery"
	}
	s.pool = p.poolCalled(t, unique("p"), attestor)
	s.m = newMachine(t, &claims{
		Serial:      strictjson.Some(unique("CZ2D")),
		ProductUUID: strictjson.Some("4c4c4544-0042-3510-8052-" + hex.EncodeToString([]byte(rand.Text()[:6]))),
	})
	if has("nothing but placeholders") {
		s.m.claims = claims{Serial: strictjson.Some("Default string")}
	}
	s.tok = p.mint(t, s.pool, func(tok *store.JoinToken) {
		tok.MaxUses = 2
		tok.AllowReclaim = !has("another node's hardware")
		if has("expired") {
			tok.ExpiresAt = p.db.Now().Add(time.Minute)
		}
		if has("another machine's pin") {
			tok.Expect.Serial = "another"
		}
		if has("a byte-swapped pin") {
			uuid := s.m.claims.ProductUUID.Value
			tok.Expect.ProductUUID = uuid[6:8] + uuid[4:6] + uuid[2:4] + uuid[0:2] + "-" + uuid[11:13] + uuid[9:11] + "-" + uuid[16:18] + uuid[14:16] + uuid[18:]
		}
	})
	s.bearer = s.tok.bearer
	request := s.m.parsed(t)

	var waiting store.JoinRequest
	if of("request") {
		waiting = p.waits(t, s.tok, request, s.m, wire.DeferralReasonUnlistedEk)
	}
	if has("denied") {
		must(t, p.db.Write(t.Context(), func(tx *store.Tx) error {
			_, err := tx.DenyRequest(t.Context(), waiting.TenantID, waiting.PoolID, waiting.ID, "acme/ops", "")
			return err
		}))
	}
	if of("used") {
		s.use(t, has)
	}
	if of("key") {
		other, elsewhere := s.m.asking(t, template("other")).parsed(t), p.mint(t, p.poolCalled(t, unique("p"), "token"), nil)
		if has("a key that is a node's") {
			p.claimed(t, elsewhere, other)
		} else {
			p.waits(t, elsewhere, other, s.m, wire.DeferralReasonUnlistedEk)
		}
	}
	for has("used up") && p.uses(t, s.tok) < s.tok.MaxUses {
		p.claimed(t, s.tok, newMachine(t, nil).parsed(t))
	}
	var holders []store.Node
	if of("holder") {
		holders = s.hold(t, has("two nodes' hardware"))
	}
	p.advance(2 * time.Minute)
	if has("a live node's hardware") {
		must(t, p.db.Seen(t.Context(), holders[0].ID, ""))
	}
	if has("a banned node's hardware") {
		s.ban(t, holders[0])
	}
	if has("a revoked token") {
		p.revoke(t, s.tok)
	}
	if has("a bad CSR") {
		s.m.csr = "please certify me"
	}
	s.spoil(has)
	return s
}

// use makes the machine a node by this very request, and does more to it.
func (s *scene) use(t *testing.T, has func(string) bool) {
	t.Helper()
	claim := s.p.claimed(t, s.tok, s.m.parsed(t))
	certificate, err := s.p.db.NodeCertificate(t.Context(), claim.Certificate.Serial)
	must(t, err)
	switch {
	case has("joined and confirmed"):
		must(t, s.p.db.ConfirmCertificate(t.Context(), certificate, ""))
	case has("joined and banned"):
		s.ban(t, claim.Node)
	case has("joined and removed"):
		must(t, s.p.db.Write(t.Context(), func(tx *store.Tx) error {
			_, err := tx.RemoveNode(t.Context(), claim.Node.TenantID, claim.Node.PoolID, claim.Node.ID, "acme/ops")
			return err
		}))
	}
}

// hold makes the nodes that hold what tells the machine.
func (s *scene) hold(t *testing.T, several bool) (holders []store.Node) {
	t.Helper()
	tok := s.p.mint(t, s.pool, nil)
	tells := [][]store.Identifier{s.m.tells()}
	if several {
		tells = [][]store.Identifier{s.m.tells()[:1], s.m.tells()[1:]}
	}
	for _, ids := range tells {
		holders = append(holders, s.p.claimed(t, tok, newMachine(t, nil).parsed(t), ids...).Node)
	}
	return holders
}

func (s *scene) ban(t *testing.T, node store.Node) {
	t.Helper()
	must(t, s.p.db.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.BanNode(t.Context(), node, "acme/ops", "")
		return err
	}))
}

func (s *scene) spoil(has func(string) bool) {
	switch {
	case has("no bearer"):
		s.bearer = ""
	case has("a mistyped bearer"):
		last := byte('x')
		if s.bearer[len(s.bearer)-1] == last {
			last = 'y'
		}
		s.bearer = s.bearer[:len(s.bearer)-1] + string(last)
	case has("an unknown token"):
		secret, _ := bearer.Mint(bearer.JoinToken, uniqueID())
		s.bearer = "Bearer " + secret.Reveal()
	case has("a wrong secret"):
		secret, _ := bearer.Mint(bearer.JoinToken, s.tok.ID)
		s.bearer = "Bearer " + secret.Reveal()
	}
}

// holds calls once and compares what comes of it.
func (s *scene) holds(t *testing.T, want step, unauthenticated map[string]bool) {
	t.Helper()
	before := s.p.uses(t, s.tok)
	s.p.causes()
	out, err := s.p.join(t.Context(), s.bearer, s.m)
	answer := ""
	switch {
	case err != nil:
		told := fault.From(err)
		answer = string(told.Code)
		if told.Reason != "" {
			answer += "/" + string(told.Reason)
		}
		if told.Code == problem.Unauthenticated {
			unauthenticated[err.Error()] = true
		}
	case out.Admitted != nil && out.Admitted.Replayed:
		answer = "admitted"
	case out.Pending != nil:
		answer = "pending/" + string(out.Pending.Reason)
	}
	if answer != want.answer {
		t.Errorf("%s: %s (%v), want %s", s.name, answer, err, want.answer)
	}
	s.p.mu.Lock()
	heard := slices.Clone(s.p.heard)
	s.p.mu.Unlock()
	switch {
	case want.cause == "" && len(heard) > 0, want.cause != "" && (len(heard) != 1 || heard[0].Cause != want.cause || heard[0].Address != address):
		t.Errorf("%s: the audit has %+v, want %q", s.name, heard, want.cause)
	case want.cause != "":
		known := want.cause != "malformed" && want.cause != "unknown"
		if got := heard[0].Token; known && (got.ID != s.tok.ID || got.PoolID != s.pool.PoolID || got.TenantID != "acme") || !known && got.ID != "" || got.SecretSHA256 != nil {
			t.Errorf("%s: the audit has the token %+v", s.name, got)
		}
	}
	if after := s.p.uses(t, s.tok); after != before {
		t.Errorf("%s: %d uses became %d", s.name, before, after)
	}
}
