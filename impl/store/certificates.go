package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"github.com/bettercompute/bettercompute/gen/events"
	"github.com/bettercompute/bettercompute/impl/fault"
)

// NodeCertificate is a row of node_certificates. Serial and dates are chosen
// when it is claimed, so that it can be signed again just so (NJ-3).
type NodeCertificate struct {
	Serial      string `bun:",pk"` // hexadecimal
	NodeID      string
	CSRSHA256   string `bun:"csr_sha256"`
	KeySHA256   string `bun:"key_sha256"`
	NewKey      bool   // the first certificate of its key; the key is then the node's for ever
	Trust       string
	NotBefore   time.Time
	NotAfter    time.Time
	CreatedAt   time.Time
	Chain       string `bun:",nullzero"` // PEM, the node's own first; empty: still to be signed
	ConfirmedAt *time.Time
	RevokedAt   *time.Time
}

func (c *NodeCertificate) times() []*time.Time {
	return []*time.Time{&c.NotBefore, &c.NotAfter, &c.CreatedAt, c.ConfirmedAt, c.RevokedAt}
}

// Caller is a node that calls with a certificate, and what its trust hangs on.
type Caller struct {
	bun.BaseModel `bun:"table:nodes,alias:node"`
	Node
	Certificate      NodeCertificate `bun:"embed:held_"`
	PlatformOperated bool            `bun:",scanonly"`
	SiteTenantID     string          `bun:",scanonly"`
	SiteCustom       bool            `bun:",scanonly"`
}

func (c *Caller) times() []*time.Time { return append(c.Node.times(), c.Certificate.times()...) }

// Caller returns the node that holds a certificate, whatever became of either
// since. Whoever shows a certificate proves that it was signed, also where the
// chain was lost (SignedChain).
func (r Reader) Caller(ctx context.Context, serial string) (Caller, error) {
	query := r.sql.NewSelect().ColumnExpr("node.*").
		ColumnExpr("pool.platform_operated, pool.site_tenant_id, site.custom AS site_custom").
		Join("JOIN node_certificates AS c ON c.node_id = node.id").
		Join("JOIN pools AS pool ON pool.tenant_id = node.tenant_id AND pool.pool_id = node.pool_id").
		Join("JOIN sites AS site ON site.tenant_id = pool.site_tenant_id AND site.site_id = pool.site_id").
		Where("c.serial = ?", serial)
	for _, column := range []string{"serial", "node_id", "csr_sha256", "key_sha256", "new_key", "trust", "not_before", "not_after", "created_at", "chain", "confirmed_at", "revoked_at"} {
		query.ColumnExpr("c." + column + " AS held_" + column)
	}
	return one[Caller](ctx, r, "node certificate", query)
}

// NodeCertificate returns one certificate.
func (r Reader) NodeCertificate(ctx context.Context, serial string) (NodeCertificate, error) {
	return one[NodeCertificate](ctx, r, "node certificate", r.sql.NewSelect().Where("serial = ?", serial))
}

// SignedChain keeps the chain of a certificate that was claimed, and returns
// the one that is kept: where another call has signed it meanwhile, that one's.
// A claim that was swept is NOT_FOUND.
//
// On Postgres it does not wait for the disk: all joins with one token wait for each other's
// commits, and a chain that is lost with the power is signed again, with the same
// serial number and dates, when the machine repeats its call (NJ-3).
func (db *DB) SignedChain(ctx context.Context, serial, chain string) (string, error) {
	n, err := db.exec(ctx, "keep certificate", "UPDATE node_certificates SET chain = ?"+db.dialect.unflushed+" WHERE serial = ? AND chain IS NULL", chain, serial)
	if err != nil || n == 1 {
		return chain, err
	}
	kept, err := db.NodeCertificate(ctx, serial)
	return kept.Chain, err
}

// Seen notes that a node is alive, and the version of its daemon where given.
func (db *DB) Seen(ctx context.Context, nodeID, agentVersion string) error {
	_, err := db.exec(ctx, "note that a node is alive", "UPDATE nodes SET last_seen_at = ?1, agent_version = coalesce(?2, agent_version) WHERE id = ?0",
		nodeID, db.timestamp(), nullable(agentVersion))
	return err
}

// ConfirmCertificate notes that a node has stored a certificate: all others are
// revoked, and the call that issued it cannot be repeated (NJ-3). So of two who
// hold the key of one node, the second to confirm finds out.
func (db *DB) ConfirmCertificate(ctx context.Context, certificate NodeCertificate, agentVersion string) error {
	return db.Write(ctx, func(tx *Tx) error {
		if _, err := tx.nodeForUpdate(ctx, certificate.NodeID); err != nil {
			return err
		}
		n, err := tx.exec(ctx, "confirm certificate", `UPDATE node_certificates SET confirmed_at = ?1
			WHERE serial = ?0 AND confirmed_at IS NULL AND revoked_at IS NULL`, certificate.Serial, tx.Now())
		if err != nil || n == 0 {
			return err
		}
		if _, err := tx.exec(ctx, "revoke other certificates", `UPDATE node_certificates SET revoked_at = ?2
			WHERE node_id = ?0 AND serial <> ?1 AND revoked_at IS NULL`, certificate.NodeID, certificate.Serial, tx.Now()); err != nil {
			return err
		}
		_, err = tx.exec(ctx, "confirm node", `UPDATE nodes SET last_seen_at = ?1, confirmed_at = coalesce(confirmed_at, ?1),
			agent_version = coalesce(?2, agent_version) WHERE id = ?0`, certificate.NodeID, tx.Now(), nullable(agentVersion))
		return err
	})
}

// Renewal returns the certificate that a node has got for a certificate
// request, or NOT_FOUND.
func (r Reader) Renewal(ctx context.Context, nodeID, csrSHA256 string) (NodeCertificate, error) {
	return one[NodeCertificate](ctx, r, "node certificate", r.sql.NewSelect().
		Where("node_id = ? AND csr_sha256 = ?", nodeID, csrSHA256))
}

// RenewCertificate claims the next certificate of a node, as it was when that
// was decided, which calls with the certificate of a serial number. It lowers the
// node's trust to that of the certificate, of which
// security.node.trust-lowered is published. renewed is false where the same
// request was claimed meanwhile. A key that is another node's is CONFLICT, and
// so is a node that was removed, taken over or trusted less meanwhile: trust
// never rises (JT-40), and who lost a node gets no certificate for it (NJ-5).
// A renewal before it that was not confirmed is revoked: there is one at a time.
func (db *DB) RenewCertificate(ctx context.Context, node Node, with string, next NodeCertificate) (renewed bool, err error) {
	err = db.Write(ctx, func(tx *Tx) error {
		now, err := tx.nodeForUpdate(ctx, node.ID)
		if err != nil {
			return err
		}
		var mine int
		err = tx.sql.NewRaw("SELECT count(*) FROM node_certificates WHERE key_sha256 = ? AND node_id = ?", next.KeySHA256, node.ID).Scan(ctx, &mine)
		if err != nil {
			return tx.failed(ctx, "look for the key", err)
		}
		next.NewKey, next.CreatedAt = mine == 0, tx.Now()
		if renewed, err = tx.insert(ctx, "node certificate", &next); err != nil {
			return err
		}
		if !renewed {
			_, err := tx.Renewal(ctx, node.ID, next.CSRSHA256)
			if err != nil {
				return fault.Conflict("the key of the certificate request belongs to another node")
			}
			return nil
		}
		if now.RemovedAt != nil || now.BannedAt != nil || !now.JoinedAt.Equal(node.JoinedAt) || now.Trust != node.Trust {
			return fault.Conflict("the node has changed meanwhile")
		}
		if _, err := tx.exec(ctx, "revoke the renewal before", `UPDATE node_certificates SET revoked_at = ?2
			WHERE node_id = ?0 AND serial NOT IN (?1, ?3) AND confirmed_at IS NULL AND revoked_at IS NULL`, node.ID, next.Serial, tx.Now(), with); err != nil {
			return err
		}
		lowered, err := tx.exec(ctx, "lower trust", "UPDATE nodes SET trust = ?1 WHERE id = ?0 AND trust <> ?1", node.ID, next.Trust)
		if err != nil || lowered == 0 {
			return err
		}
		return tx.publish(ctx, node.subject(), events.SecurityNodeTrustLowered{
			NodeID: node.ID, From: node.Trust, To: next.Trust, Serial: next.Serial,
		})
	})
	return renewed && err == nil, err
}

// ForgetCertificates deletes up to limit certificates that ended before a time
// and hold no key, and returns how many there were.
func (db *DB) ForgetCertificates(ctx context.Context, before time.Time, limit int) (n int, err error) {
	err = db.Write(ctx, func(tx *Tx) error {
		n, err = tx.exec(ctx, "forget certificates", `WITH batch AS MATERIALIZED (
				SELECT serial FROM node_certificates WHERE NOT new_key AND not_after < ? ORDER BY not_after LIMIT ?`+tx.dialect.skipLocked+`)
			DELETE FROM node_certificates WHERE serial IN (SELECT serial FROM batch)`, before, limit)
		return err
	})
	return n, err
}

// revokeCertificates ends all certificates of a node.
func (tx *Tx) revokeCertificates(ctx context.Context, nodeID string) error {
	_, err := tx.exec(ctx, "revoke certificates", "UPDATE node_certificates SET revoked_at = ? WHERE node_id = ? AND revoked_at IS NULL", tx.Now(), nodeID)
	return err
}
