package joinrequests_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
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
		must(t, db.Write(t.Context(), func(tx *store.Tx) error {
			if _, _, err := tx.CreateSite(t.Context(), store.Site{TenantID: "acme", SiteID: "berlin", CreatedBy: "acme/ops"}); err != nil {
				return err
			}
			for _, of := range [][2]string{{"acme", "lab"}, {"acme", "other"}, {"globex", "lab"}} {
				if _, _, err := tx.CreatePool(t.Context(), store.Pool{
					TenantID: of[0], PoolID: of[1], SiteTenantID: "acme", SiteID: "berlin", Agent: "bcd", Attestor: "token", Erase: "required", CreatedBy: "acme/ops",
				}); err != nil {
					return err
				}
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

// TestJoinRequests_View holds all that an operator sees of a request.
func TestJoinRequests_View(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *desk) {
		q := d.waits(t, "lab", 1)
		got := d.get(t, q.ID)
		if got.ID != q.ID || got.TenantID != "acme" || got.PoolID != "lab" || got.TokenID != tokenOf("acme", "lab") || got.Status != wire.JoinRequestStatusPending ||
			got.Reason != wire.DeferralReasonPlaceholderHardware || got.Attestor != wire.AttestorToken || got.CSRSha256 != csrOf(1) || got.SourceAddress != "192.0.2.7" || got.Seen != 1 {
			t.Errorf("%+v", got)
		}
		if !got.CreatedAt.Equal(noon) || !got.LastSeenAt.Equal(noon) || !got.ExpiresAt.Equal(noon.Add(24*time.Hour)) || got.DecidedAt != nil || got.DecidedBy != nil || got.Note != nil || got.NodeID != nil || got.Hosted != nil || got.ReclaimsNodeID != nil {
			t.Errorf("%+v", got)
		}
		want := api.PlaceholderMatch{Field: wire.IdentifierFieldSerial, Value: "None", Rule: "serial-not-set"}
		if *got.Claims.Serial != "None" || *got.Claims.Hostname != "rack1" || len(got.Placeholders) != 1 || got.Placeholders[0] != want {
			t.Errorf("%+v", got)
		}
		approved, err := d.approve(t.Context(), q.ID, q.CSRSHA256, "the white box in rack 7")
		must(t, err)
		if approved.Status != wire.JoinRequestStatusApproved || *approved.DecidedBy != "acme/ops" || *approved.Note != "the white box in rack 7" || !approved.DecidedAt.Equal(noon.Add(time.Second)) {
			t.Errorf("%+v", approved)
		}
		if got := d.get(t, q.ID); !reflect.DeepEqual(got, approved) {
			t.Errorf("%+v, want %+v", got, approved)
		}
		denied, err := d.deny(t.Context(), q.ID, "") // keeps the note of the approval
		must(t, err)
		if denied.Status != wire.JoinRequestStatusDenied || *denied.Note != "the white box in rack 7" {
			t.Errorf("%+v", denied)
		}
	})
}

// TestJoinRequests_List holds that live requests of a pool are listed page by
// page in the order in which they were made, and ended ones when asked for.
func TestJoinRequests_List(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *desk) {
		var ids []string
		for n := range 6 {
			ids = append(ids, d.waits(t, "lab", n).ID)
		}
		d.waits(t, "other", 6)
		_, err := d.deny(t.Context(), ids[1], "")
		must(t, err)
		_, err = d.approve(t.Context(), ids[2], csrOf(2), "")
		must(t, err)
		list := func(limit int64, ended bool) (pages [][]string) {
			in := &wire.JoinRequestsListInput{TenantID: "acme", PoolID: "lab", Limit: limit, IncludeEnded: ended}
			for {
				out, err := d.List(t.Context(), in)
				must(t, err)
				var page []string
				for _, q := range out.JoinRequests {
					page = append(page, q.ID)
				}
				pages = append(pages, page)
				if out.Cursor == nil {
					return pages
				}
				in.Cursor = strictjson.Some(*out.Cursor)
			}
		}
		if got, want := list(2, false), [][]string{{ids[0], ids[2]}, {ids[3], ids[4]}, {ids[5]}}; !reflect.DeepEqual(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if got, want := list(4, true), [][]string{ids[:4], ids[4:]}; !reflect.DeepEqual(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		storetest.ClockOf(d.db).Set(noon.Add(24*time.Hour + 3*time.Second)) // no sweep has seen it yet
		if got, want := list(10, false), [][]string{{ids[4], ids[5]}}; !reflect.DeepEqual(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if got := d.get(t, ids[0]).Status; got != wire.JoinRequestStatusExpired {
			t.Errorf("%s", got)
		}
		if !slices.Equal(list(200, true)[0], ids) {
			t.Error("an expired request is not listed with the ended ones")
		}
	})
}

// TestJoinRequests_OnlyInTheirPool holds that a request is not there for another
// pool or tenant, whatever is done with it.
func TestJoinRequests_OnlyInTheirPool(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *desk) {
		q := d.waits(t, "lab", 1)
		for _, of := range [][3]string{{"acme", "other", q.ID}, {"globex", "lab", q.ID}, {"acme", "nowhere", q.ID}, {"acme", "lab", "jr_00000000000000000000000000"}} {
			_, err := d.Get(t.Context(), &wire.JoinRequestsGetInput{TenantID: of[0], PoolID: of[1], RequestID: of[2]})
			wantCode(t, err, problem.NotFound)
			_, err = d.Approve(ops(t.Context()), &wire.JoinRequestsApproveInput{TenantID: of[0], PoolID: of[1], RequestID: of[2], CSRSha256: q.CSRSHA256})
			wantCode(t, err, problem.NotFound)
			_, err = d.Deny(ops(t.Context()), &wire.JoinRequestsDenyInput{TenantID: of[0], PoolID: of[1], RequestID: of[2]})
			wantCode(t, err, problem.NotFound)
		}
		if got := d.get(t, q.ID); got.Status != wire.JoinRequestStatusPending {
			t.Errorf("%+v", got)
		}
		d.wantPublished(t, q.ID, map[string]int{"created": 1})
	})
}

// TestJR_2_StaleCSR holds that an approval of another request than the operator
// saw is CONFLICT, before and after it was approved, and changes nothing.
func TestJR_2_StaleCSR(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *desk) {
		q := d.waits(t, "lab", 1)
		_, err := d.approve(t.Context(), q.ID, csrOf(2), "")
		wantCode(t, err, problem.Conflict)
		first, err := d.approve(t.Context(), q.ID, csrOf(1), "")
		must(t, err)
		storetest.ClockOf(d.db).Advance(time.Minute)
		_, err = d.approve(t.Context(), q.ID, csrOf(2), "")
		wantCode(t, err, problem.Conflict)
		again, err := d.approve(t.Context(), q.ID, csrOf(1), "another note")
		must(t, err)
		if !reflect.DeepEqual(again, first) {
			t.Errorf("%+v, want %+v", again, first)
		}
		d.wantPublished(t, q.ID, map[string]int{"created": 1, "approved": 1})
	})
}

// TestJR_2_OnlyWhatWaits holds that nothing but a pending request is approved,
// and nothing but a live one denied; what is denied stays so, silently.
func TestJR_2_OnlyWhatWaits(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *desk) {
		denied, expired, approvedLong := d.waits(t, "lab", 1), d.waits(t, "lab", 2), d.waits(t, "lab", 3)
		first, err := d.deny(t.Context(), denied.ID, "not ours")
		must(t, err)
		again, err := d.deny(t.Context(), denied.ID, "another note")
		must(t, err)
		if !reflect.DeepEqual(again, first) || *first.Note != "not ours" || *first.DecidedBy != "acme/ops" {
			t.Errorf("%+v, want %+v", again, first)
		}
		_, err = d.approve(t.Context(), denied.ID, csrOf(1), "")
		wantCode(t, err, problem.InvalidState)
		_, err = d.approve(t.Context(), approvedLong.ID, csrOf(3), "")
		must(t, err)
		storetest.ClockOf(d.db).Advance(24 * time.Hour)
		for _, q := range []store.JoinRequest{expired, approvedLong} { // judged at once, and so when it is noted
			_, err = d.approve(t.Context(), q.ID, q.CSRSHA256, "")
			wantCode(t, err, problem.InvalidState)
			_, err = d.deny(t.Context(), q.ID, "")
			wantCode(t, err, problem.InvalidState)
		}
		if _, err := d.db.ExpireRequests(t.Context(), 100); err != nil {
			t.Error(err)
		}
		_, err = d.approve(t.Context(), expired.ID, csrOf(2), "")
		wantCode(t, err, problem.InvalidState)
		d.wantPublished(t, denied.ID, map[string]int{"created": 1, "denied": 1})
		d.wantPublished(t, expired.ID, map[string]int{"created": 1, "expired": 1})
		d.wantPublished(t, approvedLong.ID, map[string]int{"created": 1, "approved": 1, "expired": 1})
	})
}

// TestJR_2_DecidedAtOnce holds that of operators who approve a request at once
// one does, and that a denial holds against any number of approvals.
func TestJR_2_DecidedAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *desk) {
		desks := []*desk{d, {joinrequests.New(storetest.Replica(t, d.db)), nil}}
		for round := range 10 {
			q := d.waits(t, "lab", round)
			denies := round%2 == 0
			var wg sync.WaitGroup
			var mu sync.Mutex
			var approvals int
			start := make(chan struct{})
			for i := range 8 {
				wg.Go(func() {
					<-start
					if i == 0 && denies {
						if _, err := desks[0].deny(t.Context(), q.ID, ""); err != nil {
							t.Error(err)
						}
						return
					}
					_, err := desks[i%2].approve(t.Context(), q.ID, q.CSRSHA256, "")
					if err != nil && !(denies && fault.Is(err, problem.InvalidState)) {
						t.Error(err)
					}
					if err == nil {
						mu.Lock()
						defer mu.Unlock()
						approvals++
					}
				})
			}
			close(start)
			wg.Wait()
			got, want, published := d.get(t, q.ID).Status, wire.JoinRequestStatusApproved, map[string]int{"created": 1, "approved": 1}
			if denies {
				want, published = wire.JoinRequestStatusDenied, map[string]int{"created": 1, "denied": 1}
				if approvals > 0 {
					published["approved"] = 1
				}
			}
			if got != want || !denies && approvals != 8 {
				t.Errorf("it is %s after %d approvals, want %s", got, approvals, want)
			}
			d.wantPublished(t, q.ID, published)
		}
	})
}
