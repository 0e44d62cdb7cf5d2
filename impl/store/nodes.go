package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/bettercompute/bettercompute/gen/events"
	"github.com/bettercompute/bettercompute/impl/fault"
)

// Node is a row of nodes; see Node in spec/types.md.
type Node struct {
	ID           string `bun:",pk"`
	TenantID     string
	PoolID       string
	Trust        string // never rises but by a new join (JT-40)
	Hosted       string `bun:",nullzero"`
	Claims       Claims
	AgentVersion string `bun:",nullzero"`
	TokenID      string // of the last join
	CreatedAt    time.Time
	JoinedAt     time.Time
	ConfirmedAt  *time.Time
	LastSeenAt   *time.Time
	BannedAt     *time.Time
	BannedBy     string `bun:",nullzero"`
	Note         string `bun:",nullzero"`
	RemovedAt    *time.Time

	CertificateSerial   string     `bun:",scanonly,nullzero"` // of the newest certificate
	CertificateNotAfter *time.Time `bun:",scanonly"`
}

// Claims is what a machine says of itself; see Claims in spec/types.md.
type Claims struct {
	ProductUUID string   `json:"productUuid,omitempty"`
	Serial      string   `json:"serial,omitempty"`
	MACs        []string `json:"macs,omitempty"`
	GPUUUIDs    []string `json:"gpuUuids,omitempty"`
	Hostname    string   `json:"hostname,omitempty"`
	Environment string   `json:"environment,omitempty"`
}

func (n *Node) times() []*time.Time {
	return []*time.Time{&n.CreatedAt, &n.JoinedAt, n.ConfirmedAt, n.LastSeenAt, n.BannedAt, n.RemovedAt, n.CertificateNotAfter}
}

func (n *Node) subject() subject { return poolSubject(n.TenantID, n.PoolID, n.ID) }

// selectNodes selects nodes, with their newest certificates.
func (r Reader) selectNodes() *bun.SelectQuery {
	const newest = ` FROM node_certificates AS c WHERE c.node_id = node.id AND c.revoked_at IS NULL ORDER BY c.not_after DESC LIMIT 1)`
	return r.sql.NewSelect().ColumnExpr("node.*").
		ColumnExpr("(SELECT c.serial" + newest + " AS certificate_serial").
		ColumnExpr("(SELECT c.not_after" + newest + " AS certificate_not_after")
}

// Node returns one node of a pool, also one that was removed.
func (r Reader) Node(ctx context.Context, tenantID, poolID, id string) (Node, error) {
	return one[Node](ctx, r, "node", r.selectNodes().
		Where("node.id = ? AND tenant_id = ? AND pool_id = ?", id, tenantID, poolID))
}

// NodeQuery selects a page of a pool's nodes.
type NodeQuery struct {
	TenantID, PoolID string
	After            string // the last id of the page before
	Limit            int
	IncludeRemoved   bool
}

// Nodes returns up to Limit nodes in the order of their ids, and whether there are more.
func (r Reader) Nodes(ctx context.Context, q NodeQuery) ([]Node, bool, error) {
	query := r.selectNodes().Where("tenant_id = ? AND pool_id = ? AND node.id > ?", q.TenantID, q.PoolID, q.After).Order("node.id")
	if !q.IncludeRemoved {
		query.Where("removed_at IS NULL")
	}
	return page[Node](ctx, r, "nodes", q.Limit, query)
}

// BanNode bans a node and publishes security.node.banned. One that is banned
// already comes back unchanged; one that was removed is INVALID_STATE.
func (tx *Tx) BanNode(ctx context.Context, node Node, by, note string) (Node, error) {
	return tx.changeNode(ctx, node, events.SecurityNodeBanned{NodeID: node.ID, BannedBy: by},
		"banned_at = ?3, banned_by = ?4, note = ?5", "banned_at IS NULL", by, nullable(note))
}

// UnbanNode lifts a ban and publishes security.node.unbanned. A node that is
// not banned comes back unchanged; one that was removed is INVALID_STATE.
func (tx *Tx) UnbanNode(ctx context.Context, node Node, by string) (Node, error) {
	return tx.changeNode(ctx, node, events.SecurityNodeUnbanned{NodeID: node.ID, UnbannedBy: by},
		"banned_at = NULL, banned_by = NULL, note = NULL", "banned_at IS NOT NULL")
}

// changeNode changes a live node where it is not so already.
func (tx *Tx) changeNode(ctx context.Context, node Node, event events.Payload, set, where string, args ...any) (Node, error) {
	n, err := tx.exec(ctx, "change node", "UPDATE nodes SET "+set+` WHERE id = ?0 AND tenant_id = ?1 AND pool_id = ?2
		AND removed_at IS NULL AND `+where, append([]any{node.ID, node.TenantID, node.PoolID, tx.Now()}, args...)...)
	if err != nil {
		return Node{}, err
	}
	if n == 1 {
		err = tx.publish(ctx, node.subject(), event)
	}
	if err != nil {
		return Node{}, err
	}
	node, err = tx.Node(ctx, node.TenantID, node.PoolID, node.ID)
	if err == nil && node.RemovedAt != nil {
		err = fault.InvalidState("the node was removed")
	}
	return node, err
}

// RemoveNode ends a node: its certificates are revoked, its identifiers are
// free, and security.node.removed is published. One that was removed already
// comes back unchanged.
func (tx *Tx) RemoveNode(ctx context.Context, tenantID, poolID, id, by string) (Node, error) {
	n, err := tx.exec(ctx, "remove node", `UPDATE nodes SET removed_at = ?3
		WHERE id = ?0 AND tenant_id = ?1 AND pool_id = ?2 AND removed_at IS NULL`, id, tenantID, poolID, tx.Now())
	if err != nil {
		return Node{}, err
	}
	if n == 1 {
		if err := tx.freeIdentifiers(ctx, id); err != nil {
			return Node{}, err
		}
		if err := tx.revokeCertificates(ctx, id); err != nil {
			return Node{}, err
		}
		if err := tx.publish(ctx, poolSubject(tenantID, poolID, id), events.SecurityNodeRemoved{NodeID: id, RemovedBy: by}); err != nil {
			return Node{}, err
		}
	}
	return tx.Node(ctx, tenantID, poolID, id)
}

// nodeForUpdate returns a node and keeps others from changing it, and what
// belongs to it, until the transaction ends.
func (tx *Tx) nodeForUpdate(ctx context.Context, id string) (Node, error) {
	return one[Node](ctx, tx.Reader, "node", tx.locking(tx.sql.NewSelect().Where("id = ?", id)))
}

// ForgetNodes deletes up to limit nodes that were removed before a time, with
// their certificates, and returns how many there were.
func (db *DB) ForgetNodes(ctx context.Context, before time.Time, limit int) (n int, err error) {
	err = db.Write(ctx, func(tx *Tx) error {
		var ids []string
		err := tx.sql.NewRaw("SELECT id FROM nodes WHERE removed_at < ? ORDER BY removed_at LIMIT ?"+tx.dialect.skipLocked, before, limit).Scan(ctx, &ids)
		if err != nil || len(ids) == 0 {
			return tx.failed(ctx, "look for removed nodes", err)
		}
		for _, statement := range []string{
			"DELETE FROM node_identifiers WHERE node_id IN (?)",
			"DELETE FROM node_certificates WHERE node_id IN (?)",
			"DELETE FROM nodes WHERE id IN (?)",
		} {
			if n, err = tx.exec(ctx, "forget nodes", statement, bun.List(ids)); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

// nullable is NULL for the empty text.
func nullable(text string) any {
	if text == "" {
		return nil
	}
	return text
}
