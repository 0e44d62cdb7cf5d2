package nodes_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/bearer"
	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/inventory"
	"github.com/bettercompute/bettercompute/impl/joinrequests"
	"github.com/bettercompute/bettercompute/impl/nodes"
	"github.com/bettercompute/bettercompute/impl/placeholder"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
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

// mint mints a token for ten uses and an hour, after change has had it.
func (p *process) mint(t testing.TB, pool store.Pool, change func(*store.JoinToken)) token {
	t.Helper()
	id := uniqueID()
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
