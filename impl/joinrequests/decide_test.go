package joinrequests_test

import (
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/joinrequests"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

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
