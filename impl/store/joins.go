package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/bettercompute/bettercompute/gen/events"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/trust"
)

// JoinUse is a row of join_uses: one use of a token (NJ-2).
type JoinUse struct {
	TokenID   string `bun:",pk"`
	CSRSHA256 string `bun:"csr_sha256,pk"`
	NodeID    string
	Serial    string // of the certificate
	Reclaimed bool   // the node was there before
	ClaimedAt time.Time
}

func (u *JoinUse) times() []*time.Time { return []*time.Time{&u.ClaimedAt} }

// JoinUse returns the use of a token by a certificate request.
func (r Reader) JoinUse(ctx context.Context, tokenID, csrSHA256 string) (JoinUse, error) {
	return one[JoinUse](ctx, r, "use of the join token", r.sql.NewSelect().
		Where("token_id = ? AND csr_sha256 = ?", tokenID, csrSHA256))
}

// JoinState is what is known of a join before anything is decided, read at once.
type JoinState struct {
	Pool
	Used      bool   `bun:",scanonly"`          // this request has joined with this token already
	RequestID string `bun:",scanonly,nullzero"` // of its join request that is pending, approved or denied
	KeyTaken  bool   `bun:",scanonly"`          // its key stands for a node, or waits under another token
}

// JoinState reads what is known of a certificate request and its key under a token.
func (r Reader) JoinState(ctx context.Context, token JoinToken, csrSHA256, keySHA256 string) (JoinState, error) {
	return askOne[JoinState](ctx, r, "pool", `SELECT pool.*, site.custom AS site_custom,
			EXISTS (SELECT 1 FROM join_uses WHERE token_id = ? AND csr_sha256 = ?) AS used,
			(SELECT id FROM join_requests WHERE token_id = ? AND csr_sha256 = ?
				AND status IN ('pending', 'approved', 'denied') AND (ended_at IS NOT NULL OR expires_at > ?)) AS request_id,
			(EXISTS (SELECT 1 FROM node_certificates WHERE key_sha256 = ? AND new_key)
				OR EXISTS (SELECT 1 FROM join_requests WHERE key_sha256 = ? AND ended_at IS NULL AND expires_at > ? AND token_id <> ?)) AS key_taken
		FROM pools AS pool JOIN sites AS site ON site.tenant_id = pool.site_tenant_id AND site.site_id = pool.site_id
		WHERE pool.tenant_id = ? AND pool.pool_id = ?`,
		token.ID, csrSHA256,
		token.ID, csrSHA256, r.now(),
		keySHA256, keySHA256, r.now(), token.ID,
		token.TenantID, token.PoolID)
}

// Claim is a join that was decided: what it makes of a node.
type Claim struct {
	Node          Node         // with the trust, claims and token of this join
	Reclaims      *Node        // the node that it takes over, as it was when that was decided
	Tells         []Identifier // what tells the node from now on
	Shares        []Identifier // what other nodes hold, too, and so tells none from now on; not with Reclaims
	Certificate   NodeCertificate
	RequestID     string // the approval that it consumes; empty: it needs none
	SourceAddress string

	ahead []fmt.Stringer // statements that go with the next step
}

// ClaimOutcome says what became of a claim. Only Claimed has changed anything.
type ClaimOutcome int

// The outcomes of a claim.
const (
	Claimed    ClaimOutcome = iota
	Repeated                // the same request has joined already
	TokenEnded              // the token has no use left, is over or revoked
	KeyTaken                // the key of the request stands for another node
	Overtaken               // what was decided on has changed: look again
	claimOpen               // not yet known
)

var errNotClaimed = errors.New("store: nothing was claimed")

// ClaimJoin uses a token once, and makes or takes over a node, in one
// transaction (NJ-2). The certificate is still to be signed; see SignedChain.
func (db *DB) ClaimJoin(ctx context.Context, claim Claim) (outcome ClaimOutcome, err error) {
	err = db.Write(ctx, func(tx *Tx) error {
		outcome, err = tx.claim(ctx, &claim)
		if err == nil && outcome != Claimed {
			return errNotClaimed
		}
		return err
	})
	if errors.Is(err, errNotClaimed) {
		return outcome, nil
	}
	return outcome, err
}

// claim runs the steps of a claim until one of them decides. Whoever changes
// rows of several tables takes them in the order of these steps, so that no two
// wait for each other: the node, its identifiers, its certificates, the token,
// the pool, join requests. All joins with a token wait for its row, so it is
// taken late.
func (tx *Tx) claim(ctx context.Context, c *Claim) (ClaimOutcome, error) {
	c.Node.JoinedAt, c.Certificate.CreatedAt, c.Certificate.NewKey = tx.Now(), tx.Now(), true
	for _, step := range []func(context.Context, *Claim) (ClaimOutcome, error){
		tx.claimUse, tx.claimNode, tx.claimIdentifiers, tx.claimCertificate, tx.consumeRequest,
	} {
		if outcome, err := step(ctx, c); err != nil || outcome != claimOpen {
			return outcome, err
		}
	}
	return Claimed, nil
}

func (tx *Tx) claimUse(ctx context.Context, c *Claim) (ClaimOutcome, error) {
	fresh, err := tx.insert(ctx, "use of the join token", &JoinUse{
		TokenID: c.Node.TokenID, CSRSHA256: c.Certificate.CSRSHA256, NodeID: c.Node.ID,
		Serial: c.Certificate.Serial, Reclaimed: c.Reclaims != nil, ClaimedAt: tx.Now(),
	})
	return unless(fresh, Repeated), err
}

func (tx *Tx) claimNode(ctx context.Context, c *Claim) (ClaimOutcome, error) {
	if c.Reclaims == nil {
		c.Node.CreatedAt = tx.Now()
		inUTC(&c.Node)
		published, err := tx.publication(ctx, news{c.Node.subject(), events.SecurityNodeJoined(c.event())})
		if err != nil {
			return claimOpen, err
		}
		c.ahead = []fmt.Stringer{tx.insertion(&c.Node), published}
		return claimOpen, nil
	}
	claims, err := json.Marshal(c.Node.Claims)
	if err != nil {
		return claimOpen, tx.failed(ctx, "encode claims", err)
	}
	n, err := tx.exec(ctx, "take over node", `UPDATE nodes SET trust = ?1, hosted = ?2, claims = ?3, token_id = ?4, joined_at = ?5,
			confirmed_at = NULL, last_seen_at = NULL, agent_version = NULL
		WHERE id = ?0 AND removed_at IS NULL AND banned_at IS NULL AND joined_at = ?6 AND last_seen_at IS NOT DISTINCT FROM ?7`,
		c.Node.ID, c.Node.Trust, nullable(c.Node.Hosted), string(claims), c.Node.TokenID, tx.Now(), c.Reclaims.JoinedAt, c.Reclaims.LastSeenAt)
	if err != nil || n != 1 {
		return Overtaken, err
	}
	return claimOpen, tx.publish(ctx, c.Node.subject(), events.SecurityNodeReclaimed(c.event()))
}

// claimCertificate writes the node's certificate, the only one that it has then,
// and counts the use. The condition is the limit: whoever comes too late changes
// no row (NJ-2). An approval outlives the token's time, never its uses.
func (tx *Tx) claimCertificate(ctx context.Context, c *Claim) (ClaimOutcome, error) {
	if c.Reclaims != nil {
		if err := tx.revokeCertificates(ctx, c.Node.ID); err != nil {
			return claimOpen, err
		}
	}
	inUTC(&c.Certificate)
	const written = "EXISTS (SELECT 1 FROM node_certificates WHERE serial = ?)"
	spent, err := tx.execAll(ctx, "certify and spend a use", tx.insertion(&c.Certificate),
		tx.sql.NewRaw(`UPDATE join_tokens SET uses = uses + 1
			WHERE id = ? AND uses < max_uses AND revoked_at IS NULL AND (? OR expires_at > ?) AND `+written,
			c.Node.TokenID, c.RequestID != "", tx.Now(), c.Certificate.Serial))
	if err != nil || spent == 1 {
		return claimOpen, err
	}
	var certified bool
	err = tx.sql.NewRaw("SELECT "+written, c.Certificate.Serial).Scan(ctx, &certified)
	if certified {
		return TokenEnded, tx.failed(ctx, "look for the certificate", err)
	}
	return KeyTaken, tx.failed(ctx, "look for the certificate", err)
}

// unless is open where a step went well, and the outcome where it did not.
func unless(well bool, outcome ClaimOutcome) ClaimOutcome {
	if well {
		return claimOpen
	}
	return outcome
}

// event has the fields of security.node.joined and .reclaimed.
func (c *Claim) event() events.SecurityNodeJoined {
	return events.SecurityNodeJoined{
		NodeID: c.Node.ID, TokenID: c.Node.TokenID, Trust: c.Node.Trust, Profile: string(trust.Profile(wire.Trust(c.Node.Trust))),
		Serial: c.Certificate.Serial, SourceAddress: c.SourceAddress,
	}
}
