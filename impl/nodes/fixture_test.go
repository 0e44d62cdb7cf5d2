package nodes_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/bearer"
	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/csr"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/iam"
	"github.com/bettercompute/bettercompute/impl/inventory"
	"github.com/bettercompute/bettercompute/impl/joinrequests"
	"github.com/bettercompute/bettercompute/impl/nodes"
	"github.com/bettercompute/bettercompute/impl/placeholder"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// noon is when a test begins, unless it lets the clock run.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const address = "192.0.2.7"

// A process is what one server has: its own handle on the database, its own
// groups, and an audit that remembers.
type process struct {
	*nodes.Nodes
	db        *store.DB
	requests  *joinrequests.JoinRequests
	inventory *inventory.Inventory
	ca        *lab
	mu        sync.Mutex
	heard     []nodes.Refusal
}

// lab is a CA, whose keys the test has, too.
type lab struct {
	materials []ca.Material
	*ca.Authority
}

func newCA(t testing.TB, at time.Time) *lab {
	t.Helper()
	materials, err := ca.Generate(at)
	must(t, err)
	authority, err := ca.New(materials)
	must(t, err)
	return &lab{materials, authority}
}

func start(db *store.DB, authority *lab) *process {
	list := placeholder.Default()
	p := &process{db: db, ca: authority, requests: joinrequests.New(db), inventory: inventory.New(db, list)}
	p.Nodes = nodes.New(nodes.Config{
		DB: db, Placeholders: list, Authority: func() *ca.Authority { return authority.Authority },
		Audit: func(r nodes.Refusal) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.heard = append(p.heard, r)
		},
	})
	return p
}

// each runs fn with one process on a fresh database of each kind, at noon.
func each(t *testing.T, fn func(t *testing.T, p *process)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		storetest.ClockOf(db).Set(noon)
		fn(t, start(db, newCA(t, noon)))
	})
}

// eachRunning is each with a clock that runs.
func eachRunning(t *testing.T, fn func(t *testing.T, p *process)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) { fn(t, start(db, newCA(t, db.Now()))) })
}

// another is a second server on the same database, with the same CA.
func (p *process) another(t testing.TB) *process {
	t.Helper()
	return start(storetest.Replica(t, p.db), p.ca)
}

func (p *process) advance(by time.Duration) { storetest.ClockOf(p.db).Advance(by) }

// causes returns what the audit has heard since it was asked last, and forgets it.
func (p *process) causes() (causes []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.heard {
		causes = append(causes, r.Cause)
	}
	p.heard = nil
	return causes
}

func (p *process) wantCauses(t testing.TB, want ...string) {
	t.Helper()
	if got := p.causes(); !slices.Equal(got, want) {
		t.Errorf("the audit has %q, want %q", got, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, code problem.Code) {
	t.Helper()
	if !fault.Is(err, code) {
		t.Errorf("the error is %v, want %s", err, code)
	}
}

func wantReason(t testing.TB, err error, reason problem.Reason) {
	t.Helper()
	if !fault.Is(err, problem.PermissionDenied) || fault.From(err).Reason != reason {
		t.Errorf("the error is %v, want the reason %s", err, reason)
	}
}

// pool makes a pool of the tenant acme at its own site, after change has had it.
func (p *process) pool(t testing.TB, change func(*store.Pool, *store.Site)) store.Pool {
	t.Helper()
	site := store.Site{TenantID: "acme", SiteID: "berlin", CreatedBy: "acme/ops"}
	pool := store.Pool{TenantID: "acme", PoolID: "lab", SiteID: "berlin", Agent: "bcd", Attestor: "token", Erase: "required", CreatedBy: "acme/ops"}
	if change != nil {
		change(&pool, &site)
	}
	pool.SiteTenantID, pool.SiteID = site.TenantID, site.SiteID
	must(t, p.db.Write(t.Context(), func(tx *store.Tx) error {
		if _, _, err := tx.CreateSite(t.Context(), site); err != nil {
			return err
		}
		_, _, err := tx.CreatePool(t.Context(), pool)
		return err
	}))
	return pool
}

// poolCalled is pool with another id and attestor.
func (p *process) poolCalled(t testing.TB, id, attestor string) store.Pool {
	t.Helper()
	return p.pool(t, func(pool *store.Pool, _ *store.Site) { pool.PoolID, pool.Attestor = id, attestor })
}

// token is a join token with its secret.
type token struct {
	store.JoinToken
	bearer string
}

var serialNumbers atomic.Int64

// unique returns a text that stands for one thing of all tests.
func unique(prefix string) string { return fmt.Sprintf("%s%06d", prefix, serialNumbers.Add(1)+170_000) }

// mint mints a token for ten uses and an hour, after change has had it.
func (p *process) mint(t testing.TB, pool store.Pool, change func(*store.JoinToken)) token {
	t.Helper()
	id := "jt_" + fmt.Sprintf("%052d", serialNumbers.Add(1))
	secret, hash := bearer.Mint(bearer.JoinToken, id)
	made := token{bearer: "Bearer " + secret.Reveal()}
	must(t, p.db.Write(t.Context(), func(tx *store.Tx) error {
		made.JoinToken = store.JoinToken{
			ID: id, TenantID: pool.TenantID, PoolID: pool.PoolID, SecretSHA256: hash[:], MaxUses: 10,
			CreatedAt: tx.Now(), CreatedBy: "acme/ops", ExpiresAt: tx.Now().Add(time.Hour),
		}
		if change != nil {
			change(&made.JoinToken)
		}
		_, err := tx.MintToken(t.Context(), made.JoinToken)
		return err
	}))
	return made
}

func reclaiming(t *store.JoinToken) { t.AllowReclaim = true }

func usable(times int64) func(*store.JoinToken) {
	return func(t *store.JoinToken) { t.MaxUses = times }
}

func (p *process) uses(t testing.TB, tok token) int64 {
	t.Helper()
	row, err := p.db.JoinToken(t.Context(), tok.ID)
	must(t, err)
	return row.Uses
}

// machine is a machine at the door: its key, its request and what it says of itself.
type machine struct {
	key    crypto.Signer
	csr    string
	claims wire.NodesJoinInputClaims
}

type claims = wire.NodesJoinInputClaims

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

// newMachine has a fresh key, and a serial number of its own unless it says so.
func newMachine(t testing.TB, c *claims) machine {
	t.Helper()
	if c == nil {
		c = &claims{Serial: strictjson.Some(unique("CZ2D"))}
	}
	m := machine{key: newKey(t), claims: *c}
	var err error
	m.csr, err = csr.New(m.key)
	must(t, err)
	return m
}

// called is a machine of a serial number.
func called(t testing.TB, serial string) machine {
	t.Helper()
	return newMachine(t, &claims{Serial: strictjson.Some(serial)})
}

// reinstalled is the same hardware with a new key.
func (m machine) reinstalled(t testing.TB) machine {
	t.Helper()
	return newMachine(t, &m.claims)
}

// request is another request of the machine's key.
func (m machine) request(t testing.TB, template x509.CertificateRequest) machine {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, m.key)
	must(t, err)
	m.csr = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	return m
}

func (m machine) parsed(t testing.TB) *csr.Request {
	t.Helper()
	parsed, err := csr.Parse(m.csr)
	must(t, err)
	return parsed
}

// join calls as the pipeline does: the token first, then the body.
func (p *process) join(ctx context.Context, bearer string, m machine) (*api.NodesJoinOutput, error) {
	arrival, err := p.Arrive(ctx, bearer, address)
	if err != nil {
		return nil, err
	}
	return p.Join(nodes.WithArrival(ctx, arrival), &wire.NodesJoinInput{CSR: m.csr, Claims: m.claims})
}

func (p *process) refused(t testing.TB, tok token, m machine) error {
	t.Helper()
	out, err := p.join(t.Context(), tok.bearer, m)
	if err == nil {
		t.Errorf("the join is not refused: %+v", out)
	}
	return err
}

func (p *process) admit(t testing.TB, tok token, m machine) *api.Admission {
	t.Helper()
	out, err := p.join(t.Context(), tok.bearer, m)
	if err != nil || out.Admitted == nil || out.Pending != nil {
		t.Fatalf("the join is not admitted: %+v, %v", out, err)
	}
	return out.Admitted
}

func (p *process) defers(t testing.TB, tok token, m machine, reason wire.DeferralReason) *api.Deferral {
	t.Helper()
	out, err := p.join(t.Context(), tok.bearer, m)
	if err != nil || out.Pending == nil || out.Admitted != nil {
		t.Fatalf("the join is not deferred: %+v, %v", out, err)
	}
	if out.Pending.Reason != reason {
		t.Fatalf("the join is deferred for %s, want %s", out.Pending.Reason, reason)
	}
	return out.Pending
}

func ops(ctx context.Context) context.Context {
	return iam.WithPrincipal(ctx, iam.Principal{Tenant: "acme", Name: "ops"})
}

func (p *process) approve(t testing.TB, tok token, d *api.Deferral) api.JoinRequest {
	t.Helper()
	out, err := p.requests.Approve(ops(t.Context()), &wire.JoinRequestsApproveInput{
		TenantID: tok.TenantID, PoolID: tok.PoolID, RequestID: d.RequestID, CSRSha256: d.CSRSha256,
	})
	must(t, err)
	return out.JoinRequest
}

func (p *process) deny(t testing.TB, tok token, d *api.Deferral) {
	t.Helper()
	_, err := p.requests.Deny(ops(t.Context()), &wire.JoinRequestsDenyInput{TenantID: tok.TenantID, PoolID: tok.PoolID, RequestID: d.RequestID})
	must(t, err)
}

func (p *process) request(t testing.TB, tok token, id string) api.JoinRequest {
	t.Helper()
	out, err := p.requests.Get(t.Context(), &wire.JoinRequestsGetInput{TenantID: tok.TenantID, PoolID: tok.PoolID, RequestID: id})
	must(t, err)
	return out.JoinRequest
}

func (p *process) revoke(t testing.TB, tok token) {
	t.Helper()
	must(t, p.db.Write(t.Context(), func(tx *store.Tx) error {
		_, _, err := tx.RevokeToken(t.Context(), tok.TenantID, tok.PoolID, tok.ID, "acme/ops")
		return err
	}))
}

func (p *process) node(t testing.TB, a *api.Admission) api.Node {
	t.Helper()
	out, err := p.Get(t.Context(), &wire.NodesGetInput{TenantID: a.TenantID, PoolID: a.PoolID, NodeID: a.NodeID})
	must(t, err)
	return out.Node
}

func (p *process) ban(t testing.TB, a *api.Admission) {
	t.Helper()
	_, err := p.Ban(ops(t.Context()), &wire.NodesBanInput{TenantID: a.TenantID, PoolID: a.PoolID, NodeID: a.NodeID})
	must(t, err)
}

func (p *process) remove(t testing.TB, a *api.Admission) {
	t.Helper()
	_, err := p.Remove(ops(t.Context()), &wire.NodesRemoveInput{TenantID: a.TenantID, PoolID: a.PoolID, NodeID: a.NodeID})
	must(t, err)
}

// nodesOf lists all live nodes of a pool.
func (p *process) nodesOf(t testing.TB, pool store.Pool) (all []api.Node) {
	t.Helper()
	in := &wire.NodesListInput{TenantID: pool.TenantID, PoolID: pool.PoolID, Limit: 200}
	for {
		out, err := p.List(t.Context(), in)
		must(t, err)
		all = append(all, out.Nodes...)
		if out.Cursor == nil {
			return all
		}
		in.Cursor = strictjson.Some(*out.Cursor)
	}
}

func (p *process) count(t testing.TB, pool store.Pool) int {
	t.Helper()
	return len(p.nodesOf(t, pool))
}

// together runs fn n times, all of them at once from a barrier, and returns when all have ended.
func together(n int, fn func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(n)
	for i := range n {
		done.Go(func() {
			ready.Done()
			<-start
			fn(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}

// template asks for a certificate of a name, which nobody gives: it makes one
// request of a key differ from another.
func template(name string) x509.CertificateRequest {
	return x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}
}

// emptyTemplate is what the daemon asks for.
var emptyTemplate x509.CertificateRequest
