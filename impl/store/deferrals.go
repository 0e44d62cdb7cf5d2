package store

import (
	"context"
	"errors"

	"github.com/bettercompute/bettercompute/gen/events"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
)

// The bounds of the approval queue (JR-4). Requests that have ended count for
// the token, too: a machine that changes its claims again and again makes many.
const (
	maxRequestsOfPool  = 1000
	minRequestsOfToken = 100
)

// DeferOutcome says what became of a join that is to wait.
type DeferOutcome int

// The outcomes of a deferral. Only Deferred has changed anything.
const (
	Deferred   DeferOutcome = iota
	NoUsesLeft              // the token has no use left, is over or revoked
	QueueFull               // too many requests of the token or the pool wait
	WasDecided              // the request was made, or decided, meanwhile: look again
)

var errNotDeferred = errors.New("store: nothing was deferred")

// DeferJoin puts a join into the approval queue. It takes the place of the
// request of the same token and CSR, whose claims or reason were others, and of
// those in the pool by the same machine (JR-4).
func (db *DB) DeferJoin(ctx context.Context, request JoinRequest) (made JoinRequest, outcome DeferOutcome, err error) {
	err = db.Write(ctx, func(tx *Tx) error {
		outcome, err = tx.deferJoin(ctx, &request)
		if err == nil && outcome != Deferred {
			return errNotDeferred
		}
		return err
	})
	if errors.Is(err, errNotDeferred) {
		return JoinRequest{}, outcome, nil
	}
	return request, outcome, err
}

func (tx *Tx) deferJoin(ctx context.Context, q *JoinRequest) (DeferOutcome, error) {
	token, err := tx.joinTokenForUpdate(ctx, q.TokenID)
	if err != nil {
		return Deferred, err
	}
	if !token.Live(tx.Now()) {
		return NoUsesLeft, nil
	}
	if _, err := tx.PoolForUpdate(ctx, q.TenantID, q.PoolID); err != nil { // so that its requests can be counted
		return Deferred, err
	}
	if _, err := tx.expireRequests(ctx, "token_id = ?1 AND csr_sha256 = ?2", q.TokenID, q.CSRSHA256); err != nil {
		return Deferred, err
	}
	if err := tx.cancelRequests(ctx, "claims_changed", "token_id = ?1 AND csr_sha256 = ?2 AND claims_sha256 <> ?3", q.TokenID, q.CSRSHA256, q.ClaimsSHA256); err != nil {
		return Deferred, err
	}
	if err := tx.cancelRequests(ctx, "reason_changed", "token_id = ?1 AND csr_sha256 = ?2 AND (reason <> ?3 OR coalesce(reclaims_node_id, '') <> ?4)",
		q.TokenID, q.CSRSHA256, q.Reason, q.ReclaimsNodeID); err != nil {
		return Deferred, err
	}
	if q.MachineSHA256 != "" {
		err := tx.cancelRequests(ctx, "replaced", "tenant_id = ?1 AND pool_id = ?2 AND machine_sha256 = ?3 AND NOT (token_id = ?4 AND csr_sha256 = ?5)",
			q.TenantID, q.PoolID, q.MachineSHA256, q.TokenID, q.CSRSHA256)
		if err != nil {
			return Deferred, err
		}
	}
	q.ID, q.Status, q.Seen = newRequestID(tx.Now()), pending, 1
	q.CreatedAt, q.LastSeenAt, q.ExpiresAt = tx.Now(), tx.Now(), tx.Now().Add(RequestLife)
	made, err := tx.insert(ctx, "join request", q)
	if err != nil || !made {
		return WasDecided, err
	}
	if full, err := tx.queueFull(ctx, token); err != nil || full {
		return QueueFull, err
	}
	return Deferred, tx.publish(ctx, q.subject(), events.SecurityJoinRequestCreated{
		RequestID: q.ID, TokenID: q.TokenID, Reason: q.Reason, CSRSha256: q.CSRSHA256,
		ReclaimsNodeID: Optional[string](q.ReclaimsNodeID), SourceAddress: q.SourceAddress, ExpiresAt: q.ExpiresAt,
	})
}

// queueFull reports whether the requests that there are now are too many.
func (tx *Tx) queueFull(ctx context.Context, token JoinToken) (bool, error) {
	var live, ever, ofPool int64
	err := tx.sql.NewRaw("SELECT count(CASE WHEN ended_at IS NULL AND expires_at > ?1 THEN 1 END), count(*) FROM join_requests WHERE token_id = ?0",
		token.ID, tx.Now()).Scan(ctx, &live, &ever)
	if err == nil {
		err = tx.sql.NewRaw("SELECT count(CASE WHEN expires_at > ?2 THEN 1 END) FROM join_requests WHERE tenant_id = ?0 AND pool_id = ?1 AND ended_at IS NULL",
			token.TenantID, token.PoolID, tx.Now()).Scan(ctx, &ofPool)
	}
	if err != nil {
		return false, tx.failed(ctx, "count join requests", err)
	}
	return live > token.MaxUses-token.Uses || ever > max(minRequestsOfToken, 2*token.MaxUses) || ofPool > maxRequestsOfPool, nil
}

// joinTokenForUpdate returns a token and keeps others from using or revoking it
// until the transaction ends.
func (tx *Tx) joinTokenForUpdate(ctx context.Context, id string) (JoinToken, error) {
	token, err := one[JoinToken](ctx, tx.Reader, "join token", tx.locking(tx.sql.NewSelect().Where("id = ?", id)))
	if fault.Is(err, problem.NotFound) {
		return token, nil // never live
	}
	return token, err
}
