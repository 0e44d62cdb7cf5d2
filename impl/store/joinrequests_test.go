package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/events"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// situations are how a join request comes to each of its states; some pass
// through others. The last two are over, and that is not noted yet.
var situations = map[string]func(*requestTrial){
	"pending":          func(*requestTrial) {},
	"approved":         func(r *requestTrial) { r.do("approve") },
	"denied":           func(r *requestTrial) { r.do("deny") },
	"consumed":         func(r *requestTrial) { r.do("approve"); r.do("claim") },
	"canceled":         func(r *requestTrial) { r.do("defer another csr") },
	"expired":          func(r *requestTrial) { r.clock.Advance(store.RequestLife); r.do("sweep") },
	"pending, is over": func(r *requestTrial) { r.clock.Advance(store.RequestLife) },
	"approved, is over": func(r *requestTrial) {
		r.do("approve")
		r.clock.Advance(store.ApprovalLife)
	},
}

// transitions says for every situation and every call what the call answers,
// what the request is then, and what was published about it.
var transitions = map[string]map[string]string{
	"approve": {
		"pending": "ok: approved +approved", "approved": "ok: approved", "denied": "INVALID_STATE: denied", "consumed": "INVALID_STATE: consumed",
		"canceled": "INVALID_STATE: canceled", "expired": "INVALID_STATE: expired", "pending, is over": "INVALID_STATE: expired", "approved, is over": "INVALID_STATE: expired",
	},
	"approve another csr": {
		"pending": "CONFLICT: pending", "approved": "CONFLICT: approved", "denied": "CONFLICT: denied", "consumed": "CONFLICT: consumed",
		"canceled": "CONFLICT: canceled", "expired": "CONFLICT: expired", "pending, is over": "CONFLICT: expired", "approved, is over": "CONFLICT: expired",
	},
	"deny": {
		"pending": "ok: denied +denied", "approved": "ok: denied +denied", "denied": "ok: denied", "consumed": "INVALID_STATE: consumed",
		"canceled": "INVALID_STATE: canceled", "expired": "INVALID_STATE: expired", "pending, is over": "INVALID_STATE: expired", "approved, is over": "INVALID_STATE: expired",
	},
	"claim": {
		"pending": "overtaken: pending", "approved": "claimed: consumed +consumed", "denied": "overtaken: denied", "consumed": "repeated: consumed",
		"canceled": "overtaken: canceled", "expired": "overtaken: expired", "pending, is over": "overtaken: expired", "approved, is over": "overtaken: expired",
	},
	"defer": {
		"pending": "was decided: pending", "approved": "was decided: approved", "denied": "was decided: denied", "consumed": "deferred: consumed",
		"canceled": "deferred: canceled", "expired": "deferred: expired", "pending, is over": "deferred: expired +expired", "approved, is over": "deferred: expired +expired",
	},
	"defer other claims": {
		"pending": "deferred: canceled +canceled", "approved": "deferred: canceled +canceled", "denied": "was decided: denied", "consumed": "deferred: consumed",
		"canceled": "deferred: canceled", "expired": "deferred: expired", "pending, is over": "deferred: expired +expired", "approved, is over": "deferred: expired +expired",
	},
	"defer another csr": {
		"pending": "deferred: canceled +canceled", "approved": "deferred: canceled +canceled", "denied": "deferred: denied", "consumed": "deferred: consumed",
		"canceled": "was decided: canceled", "expired": "deferred: expired", "pending, is over": "deferred: expired", "approved, is over": "deferred: expired",
	},
	"revoke the token": {
		"pending": "ok: canceled +canceled", "approved": "ok: canceled +canceled", "denied": "ok: denied", "consumed": "ok: consumed",
		"canceled": "ok: canceled", "expired": "ok: expired", "pending, is over": "ok: expired", "approved, is over": "ok: expired",
	},
	"sweep": {
		"pending": "ok: pending", "approved": "ok: approved", "denied": "ok: denied", "consumed": "ok: consumed",
		"canceled": "ok: canceled", "expired": "ok: expired", "pending, is over": "ok: expired +expired", "approved, is over": "ok: expired +expired",
	},
	"call again": {
		"pending": "seen 2: pending", "approved": "seen 2: approved", "denied": "seen 1: denied", "consumed": "seen 1: consumed",
		"canceled": "seen 1: canceled", "expired": "seen 1: expired", "pending, is over": "seen 1: expired", "approved, is over": "seen 1: expired",
	},
	"list": {
		"pending": "listed pending: pending", "approved": "listed approved: approved", "denied": "ended denied: denied", "consumed": "ended consumed: consumed",
		"canceled": "ended canceled: canceled", "expired": "ended expired: expired", "pending, is over": "ended expired: expired", "approved, is over": "ended expired: expired",
	},
}

// requestTrial is one request and what may happen to it.
type requestTrial struct {
	t       *testing.T
	db      *store.DB
	clock   *storetest.Clock
	request store.JoinRequest
	name    string
}

var (
	claimNames = map[store.ClaimOutcome]string{store.Claimed: "claimed", store.Repeated: "repeated", store.Overtaken: "overtaken"}
	deferNames = map[store.DeferOutcome]string{store.Deferred: "deferred", store.WasDecided: "was decided"}
)

// do makes a call and returns what it answers.
func (r *requestTrial) do(call string) string {
	ctx, again := r.t.Context(), newRequest(r.request.TokenID, r.name)
	var err error
	switch call {
	case "approve":
		_, err = approve(r.t, r.db, r.request)
	case "approve another csr":
		other := r.request
		other.CSRSHA256 = sum("another")
		_, err = approve(r.t, r.db, other)
	case "deny":
		_, err = deny(r.t, r.db, r.request)
	case "claim":
		c := newClaim(r.request.TokenID, r.name)
		c.RequestID = r.request.ID
		return claimNames[tryClaim(r.t, r.db, c)]
	case "defer other claims":
		again.ClaimsSHA256 = sum("other claims")
		fallthrough
	case "defer":
		_, outcome := tryDefer(r.t, r.db, again)
		return deferNames[outcome]
	case "defer another csr":
		again.CSRSHA256, again.KeySHA256 = sum("reinstalled "+r.name), sum("new key of "+r.name)
		_, outcome := tryDefer(r.t, r.db, again)
		return deferNames[outcome]
	case "revoke the token":
		revoke(r.t, r.db, r.request.TokenID)
	case "sweep":
		_, err = r.db.ExpireRequests(ctx, 1000)
	case "call again":
		must(r.t, r.db.RequestCalledAgain(ctx, r.request.ID, "192.0.2.8"))
		return fmt.Sprint("seen ", request(r.t, r.db, r.request.ID).Seen)
	case "list":
		return r.listed(false) + r.listed(true)
	}
	if err != nil {
		return string(fault.From(err).Code)
	}
	return "ok"
}

// listed says how the request is listed, if it is, among those that wait or, with ended, the others.
func (r *requestTrial) listed(ended bool) string {
	page, _, err := r.db.JoinRequests(r.t.Context(), store.JoinRequestQuery{TenantID: "acme", PoolID: "lab", Limit: 1000, IncludeEnded: ended})
	must(r.t, err)
	i := slices.IndexFunc(page, func(q store.JoinRequest) bool { return q.ID == r.request.ID })
	switch {
	case i < 0 || ended && r.listed(false) != "":
		return ""
	case ended:
		return "ended " + page[i].Status
	default:
		return "listed " + page[i].Status
	}
}

func (r *requestTrial) events() (kinds []string) {
	must(r.t, r.db.Query(r.t.Context(), "SELECT type FROM events WHERE subject = ? ORDER BY type", r.request.ID).Scan(&kinds))
	return kinds
}

func TestJR_EveryCallInEverySituation(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		tokens := 0
		mintLong := func() string {
			id := tokenID(tokens)
			tokens++
			mint(t, db, id, func(token *store.JoinToken) { token.MaxUses, token.ExpiresAt = 1000, noon.Add(48*time.Hour) })
			return id
		}
		shared := mintLong()
		for call, wants := range transitions {
			if len(wants) != len(situations) {
				t.Errorf("%s says something of %d situations, there are %d", call, len(wants), len(situations))
			}
			for situation, reach := range situations {
				clock.Set(noon)
				token := shared
				if call == "revoke the token" {
					token = mintLong()
				}
				name := call + " in " + situation
				r := &requestTrial{t, db, clock, deferred(t, db, newRequest(token, name)), name}
				reach(r)
				before := r.events()
				got := r.do(call) + ": "
				after := r.events()
				got += request(t, db, r.request.ID).Status
				for _, kind := range after {
					if !slices.Contains(before, kind) {
						got += " +" + strings.TrimPrefix(kind, "security.join-request.")
					}
				}
				if got != wants[situation] || len(after) > len(before)+1 {
					t.Errorf("%s: %s, want %s; events %v", name, got, wants[situation], after)
				}
			}
		}
	})
}

func TestJR_6_EveryEventSaysEnough(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		mint(t, db, tokenID(1), func(token *store.JoinToken) { token.MaxUses, token.ExpiresAt = 9, noon.Add(48*time.Hour) })
		eventsSince(t, db)
		check := func(id string, payload events.Payload) {
			t.Helper()
			data, err := json.Marshal(payload)
			must(t, err)
			want := payload.EventType() + " " + id + " " + canonical(t, data)
			if got := eventsSince(t, db); !slices.Contains(got, want) {
				t.Errorf("events %v\nwant %s", got, want)
			}
		}
		asked := newRequest(tokenID(1), "a")
		asked.ReclaimsNodeID = "nd_x"
		q := deferred(t, db, asked)
		node := "nd_x"
		check(q.ID, events.SecurityJoinRequestCreated{RequestID: q.ID, TokenID: tokenID(1), Reason: "unknown_machine", CSRSha256: q.CSRSHA256, ReclaimsNodeID: &node, SourceAddress: "192.0.2.7", ExpiresAt: noon.Add(24 * time.Hour)})
		clock.Advance(time.Minute)
		q, err := approve(t, db, q)
		must(t, err)
		check(q.ID, events.SecurityJoinRequestApproved{RequestID: q.ID, TokenID: tokenID(1), CSRSha256: q.CSRSHA256, ApprovedBy: "acme/ops", ExpiresAt: noon.Add(61 * time.Minute)})
		c := newClaim(tokenID(1), "a")
		c.RequestID = q.ID
		claim(t, db, c)
		check(q.ID, events.SecurityJoinRequestConsumed{RequestID: q.ID, TokenID: tokenID(1), NodeID: c.Node.ID})
		q, err = deny(t, db, deferred(t, db, newRequest(tokenID(1), "b")))
		must(t, err)
		check(q.ID, events.SecurityJoinRequestDenied{RequestID: q.ID, TokenID: tokenID(1), CSRSha256: q.CSRSHA256, DeniedBy: "acme/sec"})

		q = approved(t, db, newRequest(tokenID(1), "c"))
		changed := newRequest(tokenID(1), "c")
		changed.ClaimsSHA256 = sum("changed")
		next := deferred(t, db, changed)
		check(q.ID, events.SecurityJoinRequestCanceled{RequestID: q.ID, TokenID: tokenID(1), Cause: "claims_changed"})
		changed.Reason = "several_candidates"
		last := deferred(t, db, changed)
		check(next.ID, events.SecurityJoinRequestCanceled{RequestID: next.ID, TokenID: tokenID(1), Cause: "reason_changed"})
		changed.CSRSHA256 = sum("reinstalled")
		q = deferred(t, db, changed)
		check(last.ID, events.SecurityJoinRequestCanceled{RequestID: last.ID, TokenID: tokenID(1), Cause: "replaced"})
		clock.Advance(store.RequestLife)
		_, err = db.ExpireRequests(t.Context(), 10)
		must(t, err)
		check(q.ID, events.SecurityJoinRequestExpired{RequestID: q.ID, TokenID: tokenID(1)})
		q = approved(t, db, newRequest(tokenID(1), "d"))
		clock.Advance(store.ApprovalLife)
		_, err = db.ExpireRequests(t.Context(), 10)
		must(t, err)
		check(q.ID, events.SecurityJoinRequestExpired{RequestID: q.ID, TokenID: tokenID(1), Approved: true})
		q = deferred(t, db, newRequest(tokenID(1), "e"))
		revoke(t, db, tokenID(1))
		check(q.ID, events.SecurityJoinRequestCanceled{RequestID: q.ID, TokenID: tokenID(1), Cause: "token_revoked"})
	})
}

func TestJR_ElsewhereIsNotFound(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		mint(t, db, tokenID(1), nil)
		q := deferred(t, db, newRequest(tokenID(1), "a"))
		for _, at := range [][3]string{{"acme", "lab", "jr_none"}, {"acme", "other", q.ID}, {"umbrella", "lab", q.ID}} {
			unchanged(t, db, fmt.Sprint(at), func() {
				_, err := db.JoinRequest(t.Context(), at[0], at[1], at[2])
				wantCode(t, err, problem.NotFound)
				wantCode(t, db.Write(t.Context(), func(tx *store.Tx) error {
					_, err := tx.ApproveRequest(t.Context(), at[0], at[1], at[2], q.CSRSHA256, "acme/ops", "")
					return err
				}), problem.NotFound)
				wantCode(t, db.Write(t.Context(), func(tx *store.Tx) error {
					_, err := tx.DenyRequest(t.Context(), at[0], at[1], at[2], "acme/ops", "")
					return err
				}), problem.NotFound)
			})
		}
	})
}
