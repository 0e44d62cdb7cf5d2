// Package joinrequests serves the group joinRequests: the approval queue for joins that were deferred (spec/joinRequests.md).
package joinrequests

import (
	"context"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/attest"
	"github.com/bettercompute/bettercompute/impl/iam"
	"github.com/bettercompute/bettercompute/impl/store"
)

// JoinRequests implements [api.JoinRequests].
type JoinRequests struct{ db *store.DB }

// New returns the group.
func New(db *store.DB) *JoinRequests { return &JoinRequests{db} }

// List returns a page of a pool's requests.
func (j *JoinRequests) List(ctx context.Context, in *wire.JoinRequestsListInput) (*api.JoinRequestsListOutput, error) {
	requests, more, err := j.db.JoinRequests(ctx, store.JoinRequestQuery{
		TenantID:     in.TenantID,
		PoolID:       in.PoolID,
		After:        in.Cursor.Value,
		Limit:        int(in.Limit),
		IncludeEnded: in.IncludeEnded,
	})
	if err != nil {
		return nil, err
	}
	out := &api.JoinRequestsListOutput{JoinRequests: make([]api.JoinRequest, len(requests))}
	for i, request := range requests {
		out.JoinRequests[i] = view(request)
	}
	if more {
		out.Cursor = &requests[len(requests)-1].ID
	}
	return out, nil
}

// Get returns one request.
func (j *JoinRequests) Get(ctx context.Context, in *wire.JoinRequestsGetInput) (*api.JoinRequestsGetOutput, error) {
	request, err := j.db.JoinRequest(ctx, in.TenantID, in.PoolID, in.RequestID)
	if err != nil {
		return nil, err
	}
	return &api.JoinRequestsGetOutput{JoinRequest: view(request)}, nil
}

// Approve lets the machine of a request in, once (JR-1, JR-2).
func (j *JoinRequests) Approve(ctx context.Context, in *wire.JoinRequestsApproveInput) (*api.JoinRequestsApproveOutput, error) {
	request, err := j.change(ctx, func(tx *store.Tx, by string) (store.JoinRequest, error) {
		return tx.ApproveRequest(ctx, in.TenantID, in.PoolID, in.RequestID, in.CSRSha256, by, in.Note.Value)
	})
	if err != nil {
		return nil, err
	}
	return &api.JoinRequestsApproveOutput{JoinRequest: view(request)}, nil
}

// Deny refuses the machine of a request (JR-3).
func (j *JoinRequests) Deny(ctx context.Context, in *wire.JoinRequestsDenyInput) (*api.JoinRequestsDenyOutput, error) {
	request, err := j.change(ctx, func(tx *store.Tx, by string) (store.JoinRequest, error) {
		return tx.DenyRequest(ctx, in.TenantID, in.PoolID, in.RequestID, by, in.Note.Value)
	})
	if err != nil {
		return nil, err
	}
	return &api.JoinRequestsDenyOutput{JoinRequest: view(request)}, nil
}

func (j *JoinRequests) change(ctx context.Context, change func(tx *store.Tx, by string) (store.JoinRequest, error)) (request store.JoinRequest, err error) {
	err = j.db.Write(ctx, func(tx *store.Tx) error {
		request, err = change(tx, iam.PrincipalFrom(ctx).String())
		return err
	})
	return request, err
}

// view is a request as callers see it.
func view(q store.JoinRequest) api.JoinRequest {
	out := api.JoinRequest{
		ID:             q.ID,
		TenantID:       q.TenantID,
		PoolID:         q.PoolID,
		TokenID:        q.TokenID,
		Status:         wire.JoinRequestStatus(q.Status),
		Reason:         wire.DeferralReason(q.Reason),
		Attestor:       wire.Attestor(q.Attestor),
		CSRSha256:      q.CSRSHA256,
		Claims:         attest.ClaimsView(q.Claims),
		Placeholders:   make([]api.PlaceholderMatch, len(q.Placeholders)),
		Hosted:         store.Optional[wire.Hosted](q.Hosted),
		ReclaimsNodeID: store.Optional[string](q.ReclaimsNodeID),
		SourceAddress:  q.SourceAddress,
		Seen:           q.Seen,
		CreatedAt:      q.CreatedAt,
		LastSeenAt:     q.LastSeenAt,
		ExpiresAt:      q.ExpiresAt,
		DecidedAt:      q.DecidedAt,
		DecidedBy:      store.Optional[string](q.DecidedBy),
		Note:           store.Optional[string](q.Note),
		NodeID:         store.Optional[string](q.NodeID),
	}
	for i, p := range q.Placeholders {
		out.Placeholders[i] = api.PlaceholderMatch{Field: wire.IdentifierField(p.Field), Value: p.Value, Rule: p.Rule}
	}
	return out
}
