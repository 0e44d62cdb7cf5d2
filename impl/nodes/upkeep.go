package nodes

import (
	"context"
	"time"
)

// How long what has ended is kept, and how long a claim may stay unsigned.
const (
	keepEnded    = 30 * 24 * time.Hour
	keepUnsigned = 5 * time.Minute
	sweepBatch   = 500
)

// DropUnsigned undoes the claims of servers that died before they had signed (NJ-3).
func (n *Nodes) DropUnsigned(ctx context.Context) error {
	return inBatches(func() (int, error) { return n.db.DropUnsigned(ctx, n.db.Now().Add(-keepUnsigned), sweepBatch) })
}

// ExpireRequests ends the join requests whose time is over (JR-5).
func (n *Nodes) ExpireRequests(ctx context.Context) error {
	return inBatches(func() (int, error) { return n.db.ExpireRequests(ctx, sweepBatch) })
}

// Forget deletes what ended long ago: join requests, removed nodes, certificates.
func (n *Nodes) Forget(ctx context.Context) error {
	before := n.db.Now().Add(-keepEnded)
	for _, forget := range []func(context.Context, time.Time, int) (int, error){
		n.db.ForgetRequests, n.db.ForgetNodes, n.db.ForgetCertificates,
	} {
		if err := inBatches(func() (int, error) { return forget(ctx, before, sweepBatch) }); err != nil {
			return err
		}
	}
	return nil
}

func inBatches(work func() (int, error)) error {
	for {
		n, err := work()
		if err != nil || n < sweepBatch {
			return err
		}
	}
}
