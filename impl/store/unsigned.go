package store

import (
	"context"
	"errors"
	"time"

	"github.com/bettercompute/bettercompute/gen/events"
	"github.com/bettercompute/bettercompute/gen/policy"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
)

var errSigned = errors.New("store: the certificate was signed, or dropped, meanwhile")

// DropUnsigned undoes up to limit claims that were made before a time and never
// signed, because a server died between the two: the token gets its use back
// and a node that was new goes (NJ-3). It returns how many there were.
func (db *DB) DropUnsigned(ctx context.Context, before time.Time, limit int) (n int, err error) {
	var unsigned []NodeCertificate
	err = db.sql.NewRaw("SELECT * FROM node_certificates WHERE chain IS NULL AND confirmed_at IS NULL AND created_at < ? ORDER BY created_at LIMIT ?", before, limit).Scan(ctx, &unsigned)
	if err != nil {
		return 0, db.failed(ctx, "look for unsigned certificates", err)
	}
	for _, c := range unsigned {
		err := db.Write(ctx, func(tx *Tx) error { return tx.dropUnsigned(ctx, c) })
		switch {
		case err == nil:
			n++
		case !errors.Is(err, errSigned) && !fault.Is(err, problem.NotFound):
			return n, err
		}
	}
	return n, nil
}

func (tx *Tx) dropUnsigned(ctx context.Context, c NodeCertificate) error {
	node, err := tx.nodeForUpdate(ctx, c.NodeID)
	if err != nil {
		return err
	}
	var uses []JoinUse // a renewal has none
	if err := tx.sql.NewRaw("SELECT * FROM join_uses WHERE serial = ?", c.Serial).Scan(ctx, &uses); err != nil {
		return tx.failed(ctx, "look for the use of a join token", err)
	}
	never, err := tx.neverWas(ctx, node, c, uses)
	if err != nil {
		return err
	}
	if never {
		if err := tx.freeIdentifiers(ctx, node.ID); err != nil {
			return err
		}
	}
	n, err := tx.exec(ctx, "drop unsigned certificate", "DELETE FROM node_certificates WHERE serial = ? AND chain IS NULL AND confirmed_at IS NULL", c.Serial)
	if err != nil {
		return err
	}
	if n == 0 {
		return errSigned
	}
	// A later request may have the same key: then that one holds it.
	if _, err := tx.exec(ctx, "hand the key on", `UPDATE node_certificates SET new_key = TRUE WHERE ? AND serial = (SELECT serial
		FROM node_certificates WHERE node_id = ? AND key_sha256 = ? ORDER BY created_at LIMIT 1)`, c.NewKey, c.NodeID, c.KeySHA256); err != nil {
		return err
	}
	if never {
		if err := tx.dropNode(ctx, node); err != nil {
			return err
		}
	}
	return tx.giveBack(ctx, uses)
}

// neverWas reports whether a node goes with its unsigned certificate: it was
// new, and nobody has taken it over, removed or banned it since. A ban holds.
func (tx *Tx) neverWas(ctx context.Context, node Node, c NodeCertificate, uses []JoinUse) (bool, error) {
	if len(uses) == 0 || uses[0].Reclaimed || node.RemovedAt != nil || node.BannedAt != nil {
		return false, nil
	}
	var others int
	err := tx.sql.NewRaw("SELECT count(*) FROM node_certificates WHERE node_id = ? AND serial <> ?", node.ID, c.Serial).Scan(ctx, &others)
	return others == 0, tx.failed(ctx, "look for other certificates", err)
}

// dropNode deletes a node that never was.
func (tx *Tx) dropNode(ctx context.Context, node Node) error {
	if _, err := tx.exec(ctx, "drop node", "DELETE FROM nodes WHERE id = ?", node.ID); err != nil {
		return err
	}
	return tx.publish(ctx, node.subject(), events.SecurityNodeRemoved{NodeID: node.ID, RemovedBy: policy.PlatformTenant + "/bcserver"})
}

// giveBack takes uses out of the ledger. A token that had ended by them has not.
func (tx *Tx) giveBack(ctx context.Context, uses []JoinUse) error {
	for _, use := range uses {
		if _, err := tx.exec(ctx, "drop use", "DELETE FROM join_uses WHERE token_id = ? AND csr_sha256 = ?", use.TokenID, use.CSRSHA256); err != nil {
			return err
		}
		if _, err := tx.exec(ctx, "give a use back", `UPDATE join_tokens SET uses = uses - 1,
			ended_at = CASE WHEN revoked_at IS NULL THEN NULL ELSE ended_at END WHERE id = ?`, use.TokenID); err != nil {
			return err
		}
	}
	return nil
}
