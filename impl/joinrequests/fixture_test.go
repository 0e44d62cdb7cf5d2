package joinrequests_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/iam"
	"github.com/bettercompute/bettercompute/impl/joinrequests"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A desk is the group and its database.
type desk struct {
	*joinrequests.JoinRequests
	db *store.DB
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

// each runs fn at noon, with the pools lab and other of acme and lab of globex,
// each with a token.
func each(t *testing.T, fn func(t *testing.T, d *desk)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		storetest.ClockOf(db).Set(noon)
		storetest.Yard(t, db, "token")
		must(t, db.Write(t.Context(), func(tx *store.Tx) error {
			for _, of := range storetest.YardPools() {
				if _, err := tx.MintToken(t.Context(), store.JoinToken{
					ID: tokenOf(of[0], of[1]), TenantID: of[0], PoolID: of[1], SecretSHA256: []byte("x"), MaxUses: 100,
					CreatedAt: tx.Now(), CreatedBy: "acme/ops", ExpiresAt: tx.Now().Add(72 * time.Hour),
				}); err != nil {
					return err
				}
			}
			return nil
		}))
		fn(t, &desk{joinrequests.New(db), db})
	})
}

func tokenOf(tenant, pool string) string { return "jt_" + tenant + pool }

func csrOf(n int) string { return fmt.Sprintf("%064d", n) }

// waits leaves the request of a machine in the queue of a pool of acme.
func (d *desk) waits(t testing.TB, pool string, n int) store.JoinRequest {
	t.Helper()
	made, outcome, err := d.db.DeferJoin(t.Context(), store.JoinRequest{
		TenantID: "acme", PoolID: pool, TokenID: tokenOf("acme", pool), Reason: "placeholder_hardware", Attestor: "token",
		CSRSHA256: csrOf(n), KeySHA256: csrOf(n), Claims: store.Claims{Serial: "None", Hostname: fmt.Sprintf("rack%d", n)}, ClaimsSHA256: "x",
		Placeholders: []store.PlaceholderMatch{{Field: "serial", Value: "None", Rule: "serial-not-set"}}, SourceAddress: "192.0.2.7",
	})
	if err != nil || outcome != store.Deferred {
		t.Fatalf("the deferral ends as %d, %v", outcome, err)
	}
	storetest.ClockOf(d.db).Advance(time.Second)
	return made
}

func ops(ctx context.Context) context.Context {
	return iam.WithPrincipal(ctx, iam.Principal{Tenant: "acme", Name: "ops"})
}

func (d *desk) approve(ctx context.Context, id, csr, note string) (api.JoinRequest, error) {
	in := &wire.JoinRequestsApproveInput{TenantID: "acme", PoolID: "lab", RequestID: id, CSRSha256: csr}
	if note != "" {
		in.Note = strictjson.Some(note)
	}
	out, err := d.Approve(ops(ctx), in)
	if err != nil {
		return api.JoinRequest{}, err
	}
	return out.JoinRequest, nil
}

func (d *desk) deny(ctx context.Context, id, note string) (api.JoinRequest, error) {
	in := &wire.JoinRequestsDenyInput{TenantID: "acme", PoolID: "lab", RequestID: id}
	if note != "" {
		in.Note = strictjson.Some(note)
	}
	out, err := d.Deny(ops(ctx), in)
	if err != nil {
		return api.JoinRequest{}, err
	}
	return out.JoinRequest, nil
}

func (d *desk) get(t testing.TB, id string) api.JoinRequest {
	t.Helper()
	out, err := d.Get(t.Context(), &wire.JoinRequestsGetInput{TenantID: "acme", PoolID: "lab", RequestID: id})
	must(t, err)
	return out.JoinRequest
}

// published counts the events of a request.
func (d *desk) published(t testing.TB, id string) map[string]int {
	t.Helper()
	for n := -1; n != 0; {
		var err error
		n, err = d.db.PositionEvents(t.Context(), 1000)
		must(t, err)
	}
	page, err := d.db.Events(t.Context(), store.EventQuery{TenantID: "acme", Limit: 1000})
	must(t, err)
	counts := map[string]int{}
	for _, e := range page.Events {
		if kind, ok := strings.CutPrefix(e.Type, "security.join-request."); ok && e.Subject == id {
			counts[kind]++
		}
	}
	return counts
}

func (d *desk) wantPublished(t testing.TB, id string, want map[string]int) {
	t.Helper()
	if got := d.published(t, id); !reflect.DeepEqual(got, want) {
		t.Errorf("published are %v, want %v", got, want)
	}
}
