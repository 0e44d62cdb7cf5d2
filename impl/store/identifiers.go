package store

import (
	"context"
	"slices"
	"strings"
)

// Identifier is something that tells a machine, in normal form.
type Identifier struct{ Kind, Value string }

func compareIdentifiers(a, b Identifier) int {
	return strings.Compare(a.Kind+"\x00"+a.Value, b.Kind+"\x00"+b.Value)
}

// Holding is an identifier that a node of a pool holds.
type Holding struct {
	Identifier
	Shared bool // several nodes have presented it: it tells none of them
	Node   Node // who holds it
}

// Holdings returns who in a pool holds any of the identifiers (NJ-5).
func (r Reader) Holdings(ctx context.Context, tenantID, poolID string, identifiers []Identifier) ([]Holding, error) {
	if len(identifiers) == 0 {
		return nil, nil
	}
	type holding struct {
		Node
		Kind, Value, Holder string
	}
	found, args := findIdentifiers("node_identifiers", tenantID, poolID, identifiers)
	rows, err := ask[holding](ctx, r, "look for identifiers", `SELECT node.*, held.kind, held.value, held.holder
		FROM (`+found+`) AS held JOIN nodes AS node ON node.id = held.node_id
		ORDER BY held.kind, held.value, node.id`, args...)
	if err != nil {
		return nil, err
	}
	holdings := make([]Holding, len(rows))
	for i := range rows {
		inUTC(&rows[i].Node)
		holdings[i] = Holding{Identifier{rows[i].Kind, rows[i].Value}, rows[i].Holder != "", rows[i].Node}
	}
	return holdings, nil
}

// findIdentifiers selects the rows of a pool that are about identifiers. Each has
// its own SELECT, which has but one way to go: given them together, Postgres
// walks through all of the pool's, as long as it has not counted these.
func findIdentifiers(table, tenantID, poolID string, identifiers []Identifier) (text string, args []any) {
	each := make([]string, len(identifiers))
	for i, id := range identifiers {
		each[i] = "SELECT * FROM " + table + " WHERE tenant_id = ? AND pool_id = ? AND kind = ? AND value = ?"
		args = append(args, tenantID, poolID, id.Kind, id.Value)
	}
	return strings.Join(each, " UNION ALL "), args
}

// nodeIdentifier is a row of node_identifiers.
type nodeIdentifier struct {
	TenantID string `bun:",pk"`
	PoolID   string `bun:",pk"`
	Kind     string `bun:",pk"`
	Value    string `bun:",pk"`
	Holder   string `bun:",pk"` // empty: it tells NodeID and nobody else
	NodeID   string
}

func (i nodeIdentifier) sameIdentifier(other nodeIdentifier) bool {
	return i.Kind == other.Kind && i.Value == other.Value
}

// claimIdentifiers writes what tells the node. Two machines that race for one
// identity meet here: the second finds it held, and looks again (NJ-5). Rows are
// inserted before any are locked: who waits for an insert then holds nothing
// that the other one needs.
func (tx *Tx) claimIdentifiers(ctx context.Context, c *Claim) (ClaimOutcome, error) {
	var held []nodeIdentifier
	if c.Reclaims != nil {
		var err error
		if held, err = tx.identifiersOf(ctx, c.Node.ID, ""); err != nil {
			return claimOpen, err
		}
	}
	var fresh []nodeIdentifier
	for _, row := range append(c.identifiers(c.Tells, ""), c.identifiers(c.Shares, c.Node.ID)...) {
		i := slices.IndexFunc(held, row.sameIdentifier)
		switch {
		case i < 0:
			fresh = append(fresh, row)
		case held[i] != row: // others have presented it meanwhile
			return Overtaken, nil
		default:
			held = slices.Delete(held, i, i+1)
		}
	}
	statements := c.ahead
	if len(fresh) > 0 {
		statements = append(statements, tx.insertion(&fresh))
	}
	if len(statements) > 0 {
		n, err := tx.execAll(ctx, "insert node and identifiers", statements...)
		if err != nil || n < len(fresh) {
			return Overtaken, err
		}
	}
	if len(c.Shares) > 0 {
		if err := tx.shareIdentifiers(ctx, c); err != nil {
			return claimOpen, err
		}
	}
	for _, gone := range held { // in order
		_, err := tx.exec(ctx, "free identifier", "DELETE FROM node_identifiers WHERE node_id = ? AND kind = ? AND value = ?", c.Node.ID, gone.Kind, gone.Value)
		if err != nil {
			return claimOpen, err
		}
	}
	return claimOpen, nil
}

// identifiers are the rows of a claim's identifiers, in the order in which
// everybody inserts them.
func (c *Claim) identifiers(list []Identifier, holder string) (rows []nodeIdentifier) {
	for _, id := range slices.Compact(slices.SortedFunc(slices.Values(list), compareIdentifiers)) {
		rows = append(rows, nodeIdentifier{c.Node.TenantID, c.Node.PoolID, id.Kind, id.Value, holder, c.Node.ID})
	}
	return rows
}

// shareIdentifiers makes identifiers that others hold tell none of them.
func (tx *Tx) shareIdentifiers(ctx context.Context, c *Claim) error {
	for _, row := range c.identifiers(c.Shares, "") { // in order
		_, err := tx.exec(ctx, "share identifier", `UPDATE node_identifiers SET holder = node_id
			WHERE tenant_id = ? AND pool_id = ? AND kind = ? AND value = ? AND holder = ''`, row.TenantID, row.PoolID, row.Kind, row.Value)
		if err != nil {
			return err
		}
	}
	return nil
}

// identifiersOf returns what a node holds, which the transaction has locked.
func (tx *Tx) identifiersOf(ctx context.Context, nodeID, lock string) (rows []nodeIdentifier, err error) {
	err = tx.sql.NewRaw("SELECT * FROM node_identifiers WHERE node_id = ?"+inOrder+lock, nodeID).Scan(ctx, &rows)
	return rows, tx.failed(ctx, "read identifiers", err)
}

// freeIdentifiers makes a node, which the transaction has locked, hold none.
func (tx *Tx) freeIdentifiers(ctx context.Context, nodeID string) error {
	if _, err := tx.identifiersOf(ctx, nodeID, tx.dialect.forUpdate); err != nil {
		return err
	}
	_, err := tx.exec(ctx, "free identifiers", "DELETE FROM node_identifiers WHERE node_id = ?", nodeID)
	return err
}

// inOrder is the order in which everybody locks identifiers, so that two who
// change several of them cannot wait for each other.
const inOrder = " ORDER BY kind, value, holder"
