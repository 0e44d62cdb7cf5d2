package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/bettercompute/bettercompute/gen/events"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/ids"
)

// How long a join request waits for an operator, and an approval for its machine (JR-5).
const (
	RequestLife  = 24 * time.Hour
	ApprovalLife = time.Hour
)

// JoinRequest is a row of join_requests; see JoinRequest in spec/types.md.
type JoinRequest struct {
	ID             string `bun:",pk"`
	TenantID       string
	PoolID         string
	TokenID        string
	Status         string
	Reason         string
	Attestor       string
	CSRSHA256      string `bun:"csr_sha256"`
	KeySHA256      string `bun:"key_sha256"`
	Claims         Claims
	ClaimsSHA256   string `bun:"claims_sha256"`  // an approval holds for these claims alone
	MachineSHA256  string `bun:"machine_sha256"` // of what tells the machine; empty: nothing does
	Placeholders   []PlaceholderMatch
	Waived         []Waiver // what operators have waived before, for the same CSR and claims
	Hosted         string   `bun:",nullzero"`
	ReclaimsNodeID string   `bun:",nullzero"`
	SourceAddress  string
	Seen           int64
	CreatedAt      time.Time
	LastSeenAt     time.Time
	ExpiresAt      time.Time
	DecidedAt      *time.Time
	DecidedBy      string     `bun:",nullzero"`
	Note           string     `bun:",nullzero"`
	NodeID         string     `bun:",nullzero"`
	EndedAt        *time.Time // set with every status but pending and approved
}

// Waiver is a reason to defer that an operator has waived, as tenant/name.
type Waiver struct {
	Reason string `json:"reason"`
	By     string `json:"by"`
}

// PlaceholderMatch is a claim that tells no machine, and the rule that says so.
type PlaceholderMatch struct {
	Field string `json:"field"`
	Value string `json:"value"`
	Rule  string `json:"rule"`
}

func (q *JoinRequest) times() []*time.Time {
	return []*time.Time{&q.CreatedAt, &q.LastSeenAt, &q.ExpiresAt, q.DecidedAt, q.EndedAt}
}

func (q *JoinRequest) subject() subject { return poolSubject(q.TenantID, q.PoolID, q.ID) }

// The values of Status that a change is about.
const (
	pending  = string(wire.JoinRequestStatusPending)
	approved = string(wire.JoinRequestStatusApproved)
	denied   = string(wire.JoinRequestStatusDenied)
	expired  = string(wire.JoinRequestStatusExpired)
)

// JoinRequest returns one request of a pool. One whose time is over is expired,
// also where that is not yet noted.
func (r Reader) JoinRequest(ctx context.Context, tenantID, poolID, id string) (JoinRequest, error) {
	q, err := one[JoinRequest](ctx, r, "join request", r.sql.NewSelect().
		Where("id = ? AND tenant_id = ? AND pool_id = ?", id, tenantID, poolID))
	q.judge(r.now())
	return q, err
}

// judge makes a request that is over what it will be when that is noted.
func (q *JoinRequest) judge(now time.Time) {
	if q.EndedAt == nil && !now.Before(q.ExpiresAt) {
		q.Status = expired
	}
}

// JoinRequestQuery selects a page of a pool's requests.
type JoinRequestQuery struct {
	TenantID, PoolID string
	After            string // the last id of the page before
	Limit            int
	IncludeEnded     bool
}

// JoinRequests returns up to Limit requests in the order of their ids, and whether there are more.
func (r Reader) JoinRequests(ctx context.Context, q JoinRequestQuery) ([]JoinRequest, bool, error) {
	query := r.sql.NewSelect().Where("tenant_id = ? AND pool_id = ? AND id > ?", q.TenantID, q.PoolID, q.After).Order("id")
	if !q.IncludeEnded {
		query.Where("ended_at IS NULL AND expires_at > ?", r.now())
	}
	requests, more, err := page[JoinRequest](ctx, r, "join requests", q.Limit, query)
	for i := range requests {
		requests[i].judge(r.now())
	}
	return requests, more, err
}

// ApproveRequest approves a pending request and publishes
// security.join-request.approved. One that is approved already comes back
// unchanged; another csrSHA256 is CONFLICT; one that has ended is INVALID_STATE (JR-2).
func (tx *Tx) ApproveRequest(ctx context.Context, tenantID, poolID, id, csrSHA256, by, note string) (JoinRequest, error) {
	expires := tx.Now().Add(ApprovalLife)
	q, changed, err := update[JoinRequest](ctx, tx, "join request", `UPDATE join_requests
		SET status = 'approved', decided_at = ?3, decided_by = ?5, note = ?6, expires_at = ?7
		WHERE id = ?0 AND tenant_id = ?1 AND pool_id = ?2 AND csr_sha256 = ?4 AND status = 'pending' AND expires_at > ?3`,
		id, tenantID, poolID, tx.Now(), csrSHA256, by, nullable(note), expires)
	if err != nil {
		return JoinRequest{}, err
	}
	if changed {
		return q, tx.publish(ctx, q.subject(), events.SecurityJoinRequestApproved{
			RequestID: q.ID, TokenID: q.TokenID, CSRSha256: q.CSRSHA256, ApprovedBy: by, ExpiresAt: q.ExpiresAt,
		})
	}
	q, err = tx.JoinRequest(ctx, tenantID, poolID, id)
	switch {
	case err != nil:
		return JoinRequest{}, err
	case q.CSRSHA256 != csrSHA256:
		return JoinRequest{}, fault.Conflict("the request is for another certificate request than csrSha256 says")
	case q.Status != approved:
		return JoinRequest{}, fault.InvalidState("the join request is " + q.Status)
	}
	return q, nil
}

// DenyRequest denies a pending or approved request and publishes
// security.join-request.denied. One that is denied already comes back
// unchanged; one that has ended otherwise is INVALID_STATE (JR-3).
func (tx *Tx) DenyRequest(ctx context.Context, tenantID, poolID, id, by, note string) (JoinRequest, error) {
	q, changed, err := update[JoinRequest](ctx, tx, "join request", `UPDATE join_requests
		SET status = 'denied', decided_at = ?3, decided_by = ?4, note = coalesce(?5, note), ended_at = ?3
		WHERE id = ?0 AND tenant_id = ?1 AND pool_id = ?2 AND status IN ('pending', 'approved') AND expires_at > ?3`,
		id, tenantID, poolID, tx.Now(), by, nullable(note))
	if err != nil {
		return JoinRequest{}, err
	}
	if changed {
		return q, tx.publish(ctx, q.subject(), events.SecurityJoinRequestDenied{
			RequestID: q.ID, TokenID: q.TokenID, CSRSha256: q.CSRSHA256, DeniedBy: by,
		})
	}
	if q, err = tx.JoinRequest(ctx, tenantID, poolID, id); err == nil && q.Status != denied {
		err = fault.InvalidState("the join request is " + q.Status)
	}
	return q, err
}

// RequestCalledAgain notes that the machine of a request has called again.
func (db *DB) RequestCalledAgain(ctx context.Context, id, sourceAddress string) error {
	_, err := db.exec(ctx, "note that a machine waits", `UPDATE join_requests SET seen = seen + 1, last_seen_at = ?, source_address = ?
		WHERE id = ? AND ended_at IS NULL AND expires_at > ?`, db.timestamp(), sourceAddress, id, db.timestamp())
	return err
}

// consumeRequest ends the approval that a claim uses up (JR-1), if it needs one.
func (tx *Tx) consumeRequest(ctx context.Context, c *Claim) (ClaimOutcome, error) {
	if c.RequestID == "" {
		return claimOpen, nil
	}
	n, err := tx.exec(ctx, "consume join request", `UPDATE join_requests SET status = 'consumed', node_id = ?1, ended_at = ?2
		WHERE id = ?0 AND token_id = ?3 AND csr_sha256 = ?4 AND status = 'approved' AND expires_at > ?2`,
		c.RequestID, c.Node.ID, tx.Now(), c.Node.TokenID, c.Certificate.CSRSHA256)
	if err != nil || n != 1 {
		return Overtaken, err
	}
	return claimOpen, tx.publish(ctx, poolSubject(c.Node.TenantID, c.Node.PoolID, c.RequestID), events.SecurityJoinRequestConsumed{
		RequestID: c.RequestID, TokenID: c.Node.TokenID, NodeID: c.Node.ID,
	})
}

// cancelRequests ends live requests and publishes
// security.join-request.canceled for each. One whose time is over has expired.
func (tx *Tx) cancelRequests(ctx context.Context, cause, where string, args ...any) error {
	var ended []JoinRequest
	err := tx.sql.NewRaw("UPDATE join_requests SET status = 'canceled', ended_at = ?0 WHERE ended_at IS NULL AND expires_at > ?0 AND "+where+" RETURNING *",
		append([]any{tx.Now()}, args...)...).Scan(ctx, &ended)
	if err != nil {
		return tx.failed(ctx, "cancel join requests", err)
	}
	var all []news
	for _, q := range ended {
		all = append(all, news{q.subject(), events.SecurityJoinRequestCanceled{RequestID: q.ID, TokenID: q.TokenID, Cause: cause}})
	}
	return tx.publishAll(ctx, all)
}

// ExpireRequests ends up to limit requests whose time is over, publishes
// security.join-request.expired for each, and returns how many there were (JR-5).
func (db *DB) ExpireRequests(ctx context.Context, limit int) (n int, err error) {
	err = db.Write(ctx, func(tx *Tx) error {
		n, err = tx.expireRequests(ctx, "TRUE ORDER BY expires_at LIMIT ?1", limit)
		return err
	})
	return n, err
}

// expireRequests ends those of the requests whose time is over that which selects.
func (tx *Tx) expireRequests(ctx context.Context, which string, args ...any) (int, error) {
	var over []JoinRequest
	err := tx.sql.NewRaw("SELECT * FROM join_requests WHERE ended_at IS NULL AND expires_at <= ?0 AND seen > 0 AND "+which+tx.dialect.skipLocked,
		append([]any{tx.Now()}, args...)...).Scan(ctx, &over)
	if err != nil {
		return 0, tx.failed(ctx, "look for expired join requests", err)
	}
	if len(over) == 0 {
		return 0, nil
	}
	var ids []string
	var all []news
	for _, q := range over {
		ids = append(ids, q.ID)
		all = append(all, news{q.subject(), events.SecurityJoinRequestExpired{RequestID: q.ID, TokenID: q.TokenID, Approved: q.Status == approved}})
	}
	_, err = tx.exec(ctx, "expire join requests", "UPDATE join_requests SET status = 'expired', ended_at = ? WHERE id IN (?)", tx.Now(), bun.List(ids))
	if err != nil {
		return 0, err
	}
	return len(over), tx.publishAll(ctx, all)
}

// ForgetRequests deletes up to limit requests that ended before a time, and
// returns how many there were.
func (db *DB) ForgetRequests(ctx context.Context, before time.Time, limit int) (n int, err error) {
	err = db.Write(ctx, func(tx *Tx) error {
		n, err = tx.exec(ctx, "forget join requests", `WITH batch AS MATERIALIZED (
				SELECT id FROM join_requests WHERE ended_at < ? ORDER BY ended_at LIMIT ?`+tx.dialect.skipLocked+`)
			DELETE FROM join_requests WHERE id IN (SELECT id FROM batch)`, before, limit)
		return err
	})
	return n, err
}

func newRequestID(at time.Time) string { return ids.New("jr", at) }
