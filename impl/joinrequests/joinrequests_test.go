package joinrequests_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

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
