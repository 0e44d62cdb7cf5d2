// Package nodes serves the group nodes: machines join by a token, call with the certificate that they get, and are seen, banned and removed by operators (spec/nodes.md).
package nodes

import (
	"context"
	"crypto/x509"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/attest"
	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/iam"
	"github.com/bettercompute/bettercompute/impl/placeholder"
	"github.com/bettercompute/bettercompute/impl/store"
)

// Nodes implements [api.Nodes].
type Nodes struct {
	db           *store.DB
	authority    func() *ca.Authority
	verify       Verify
	placeholders *placeholder.List
	audit        func(Refusal)
	attestors    map[wire.Attestor]attest.Attestor
}

// Config is what the group needs.
type Config struct {
	DB           *store.DB
	Authority    func() *ca.Authority // the CA as it is now
	Verify       Verify               // nil: what Authority says
	Placeholders *placeholder.List    // what tells no machine
	Audit        func(Refusal)        // hears of every join that is refused (NJ-7)
}

// Verify says which node's certificate is presented, as [ca.Authority.VerifyNode]
// does; it may look for new issuers first.
type Verify func(ctx context.Context, presented []*x509.Certificate, now time.Time) (ca.Identity, error)

// New returns the group.
func New(config Config) *Nodes {
	if config.Verify == nil {
		config.Verify = func(_ context.Context, presented []*x509.Certificate, now time.Time) (ca.Identity, error) {
			return config.Authority().VerifyNode(presented, now)
		}
	}
	return &Nodes{
		db:           config.DB,
		authority:    config.Authority,
		verify:       config.Verify,
		placeholders: config.Placeholders,
		audit:        config.Audit,
		attestors: map[wire.Attestor]attest.Attestor{
			wire.AttestorToken:     attest.Token{},
			wire.AttestorDiscovery: attest.Discovery{Inventory: config.DB},
		},
	}
}

// Get returns one node.
func (n *Nodes) Get(ctx context.Context, in *wire.NodesGetInput) (*api.NodesGetOutput, error) {
	node, err := n.db.Node(ctx, in.TenantID, in.PoolID, in.NodeID)
	if err != nil {
		return nil, err
	}
	return &api.NodesGetOutput{Node: view(node)}, nil
}

// List returns a page of a pool's nodes.
func (n *Nodes) List(ctx context.Context, in *wire.NodesListInput) (*api.NodesListOutput, error) {
	nodes, more, err := n.db.Nodes(ctx, store.NodeQuery{
		TenantID:       in.TenantID,
		PoolID:         in.PoolID,
		After:          in.Cursor.Value,
		Limit:          int(in.Limit),
		IncludeRemoved: in.IncludeRemoved,
	})
	if err != nil {
		return nil, err
	}
	out := &api.NodesListOutput{Nodes: make([]api.Node, len(nodes))}
	for i, node := range nodes {
		out.Nodes[i] = view(node)
	}
	if more {
		out.Cursor = &nodes[len(nodes)-1].ID
	}
	return out, nil
}

// Ban refuses every further call of a node.
func (n *Nodes) Ban(ctx context.Context, in *wire.NodesBanInput) (*api.NodesBanOutput, error) {
	node, err := n.change(ctx, func(tx *store.Tx, by string) (store.Node, error) {
		return tx.BanNode(ctx, store.Node{ID: in.NodeID, TenantID: in.TenantID, PoolID: in.PoolID}, by, in.Note.Value)
	})
	if err != nil {
		return nil, err
	}
	return &api.NodesBanOutput{Node: view(node)}, nil
}

// Unban lets a node call again.
func (n *Nodes) Unban(ctx context.Context, in *wire.NodesUnbanInput) (*api.NodesUnbanOutput, error) {
	node, err := n.change(ctx, func(tx *store.Tx, by string) (store.Node, error) {
		return tx.UnbanNode(ctx, store.Node{ID: in.NodeID, TenantID: in.TenantID, PoolID: in.PoolID}, by)
	})
	if err != nil {
		return nil, err
	}
	return &api.NodesUnbanOutput{Node: view(node)}, nil
}

// Remove ends a node.
func (n *Nodes) Remove(ctx context.Context, in *wire.NodesRemoveInput) (*api.NodesRemoveOutput, error) {
	node, err := n.change(ctx, func(tx *store.Tx, by string) (store.Node, error) {
		return tx.RemoveNode(ctx, in.TenantID, in.PoolID, in.NodeID, by)
	})
	if err != nil {
		return nil, err
	}
	return &api.NodesRemoveOutput{Node: view(node)}, nil
}

func (n *Nodes) change(ctx context.Context, change func(tx *store.Tx, by string) (store.Node, error)) (node store.Node, err error) {
	err = n.db.Write(ctx, func(tx *store.Tx) error {
		node, err = change(tx, iam.PrincipalFrom(ctx).String())
		return err
	})
	return node, err
}
