package store_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// fleet is a few machines and tokens that everybody wants at once.
type fleet struct {
	t      *testing.T
	db     *store.DB
	random *rand.Rand
	serial *atomic.Int64
}

const (
	fleetTokens   = 3
	fleetMachines = 4
)

// machine is one of the machines, and what it presents; sometimes it has a part
// of its neighbour.
func (f fleet) machine() (name string, identifiers []store.Identifier) {
	n := f.random.IntN(fleetMachines)
	values := []int{n, (n + 1) % fleetMachines}
	if f.random.IntN(6) > 0 {
		values = values[:1]
	}
	for _, value := range values {
		for _, kind := range []string{"serial", "mac", "productUuid"} {
			identifiers = append(identifiers, store.Identifier{Kind: kind, Value: fmt.Sprint(value)})
		}
	}
	return fmt.Sprint("machine", n), identifiers[:len(identifiers)-f.random.IntN(2)]
}

func (f fleet) token() string { return tokenID(f.random.IntN(fleetTokens)) }

// join is what a machine does: it makes a node, takes one over, or shares what
// tells it, with an approval or without.
func (f fleet) join() error {
	name, identifiers := f.machine()
	c := newClaim(f.token(), fmt.Sprint(f.serial.Add(1)))
	holdings, err := f.db.Holdings(f.t.Context(), "acme", "lab", identifiers)
	if err != nil {
		return err
	}
	holder := map[store.Identifier]string{} // of what tells a machine
	for _, held := range holdings {
		if holder[held.Identifier] = held.Node.ID; held.Shared {
			holder[held.Identifier] = "several"
		} else {
			c.Reclaims = &held.Node
		}
	}
	candidates := map[string]bool{}
	for _, id := range identifiers {
		switch holder[id] {
		case "several":
		case "":
			c.Tells = append(c.Tells, id)
		default:
			c.Shares, candidates[holder[id]] = append(c.Shares, id), true
		}
	}
	if len(candidates) == 1 && f.random.IntN(8) > 0 {
		c.Node.ID, c.Certificate.NodeID = c.Reclaims.ID, c.Reclaims.ID
		c.Tells, c.Shares = append(c.Tells, c.Shares...), nil
	} else {
		c.Reclaims = nil
	}
	if f.random.IntN(2) == 0 {
		q := newRequest(c.Node.TokenID, name)
		q.CSRSHA256, q.KeySHA256 = c.Certificate.CSRSHA256, c.Certificate.KeySHA256
		q, outcome, err := f.db.DeferJoin(f.t.Context(), q)
		if err != nil || outcome != store.Deferred {
			return err
		}
		if _, err = approve(f.t, f.db, q); err != nil {
			return err
		}
		c.RequestID = q.ID
	}
	outcome, err := f.db.ClaimJoin(f.t.Context(), c)
	if err != nil || outcome != store.Claimed || f.random.IntN(4) == 0 {
		return err
	}
	_, err = f.db.SignedChain(f.t.Context(), c.Certificate.Serial, "chain")
	return err
}

// nodes is a page of the nodes; act does something to one of them.
func (f fleet) act(do func(store.Node) error) error {
	nodes, _, err := f.db.Nodes(f.t.Context(), store.NodeQuery{TenantID: "acme", PoolID: "lab", Limit: 100})
	if err != nil || len(nodes) == 0 {
		return err
	}
	return do(nodes[f.random.IntN(len(nodes))])
}

func (f fleet) confirmOrRenew() error {
	return f.act(func(n store.Node) error {
		c, err := f.db.NodeCertificate(f.t.Context(), n.CertificateSerial)
		if err != nil {
			return err
		}
		if f.random.IntN(2) == 0 {
			return f.db.ConfirmCertificate(f.t.Context(), c, "1")
		}
		next := newClaim("", fmt.Sprint(f.serial.Add(1))).Certificate
		next.NodeID = n.ID
		if f.random.IntN(2) == 0 {
			next.KeySHA256 = c.KeySHA256
		}
		_, err = f.db.RenewCertificate(f.t.Context(), n, "", next)
		return err
	})
}

func (f fleet) remove() error {
	return f.act(func(n store.Node) error {
		return f.db.Write(f.t.Context(), func(tx *store.Tx) error {
			_, err := tx.RemoveNode(f.t.Context(), "acme", "lab", n.ID, "acme/ops")
			return err
		})
	})
}

// revoke cancels the requests of a token, which goes on for the sake of the others.
func (f fleet) revoke() error {
	id := f.token()
	return f.db.Write(f.t.Context(), func(tx *store.Tx) error {
		if _, _, err := tx.RevokeToken(f.t.Context(), "acme", "lab", id, "acme/ops"); err != nil {
			return err
		}
		return tx.Exec(f.t.Context(), "UPDATE join_tokens SET revoked_at = NULL, ended_at = NULL WHERE id = ?", id)
	})
}

func (f fleet) sweep() error {
	for _, sweep := range []func() (int, error){
		func() (int, error) { return f.db.DropUnsigned(f.t.Context(), f.db.Now(), 3) },
		func() (int, error) { return f.db.ExpireRequests(f.t.Context(), 3) },
		func() (int, error) { return f.db.ForgetRequests(f.t.Context(), f.db.Now(), 3) },
		func() (int, error) { return f.db.ForgetNodes(f.t.Context(), f.db.Now(), 3) },
		func() (int, error) { return f.db.ForgetCertificates(f.t.Context(), f.db.Now().AddDate(1, 0, 0), 3) },
	} {
		if _, err := sweep(); err != nil {
			return err
		}
	}
	return nil
}

func (f fleet) inventory() error {
	return f.db.Write(f.t.Context(), func(tx *store.Tx) error {
		name, identifiers := f.machine()
		if f.random.IntN(3) == 0 {
			_, err := tx.RemoveMachine(f.t.Context(), "acme", "lab", name, "acme/ops")
			return err
		}
		known := store.Known{Machine: store.InventoryMachine{TenantID: "acme", PoolID: "lab", MachineID: name, Serial: fmt.Sprint(f.random.IntN(5))}, Identifiers: identifiers}
		_, _, err := tx.ImportMachines(f.t.Context(), "acme", "lab", []store.Known{known}, "acme/ops")
		return err
	})
}

// Whoever changes several rows takes them in one order, so that nobody waits
// for somebody who waits for them; and whatever order the calls come in, the
// ledger is right and no machine but the last one holds a node.
func TestJoins_EverythingAtOnce_NoDeadlock(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		for n := range fleetTokens {
			mint(t, db, tokenID(n), func(token *store.JoinToken) { token.MaxUses, token.ExpiresAt = 10_000, time.Now().Add(24*time.Hour) })
		}
		handles, serial := replicas(t, db), new(atomic.Int64)
		const workers = 8
		steps := 60
		if !isPostgres(db) {
			steps = 15 // it has one writer, who never waits for another
		}
		together(workers, func(i int) {
			f := fleet{t, handles[i%2], rand.New(rand.NewPCG(uint64(i), 7)), serial}
			for range steps {
				acts := []func() error{f.join, f.join, f.join, f.join, f.confirmOrRenew, f.remove, f.revoke, f.sweep, f.inventory}
				n := f.random.IntN(len(acts))
				err := acts[n]()
				switch fault.From(err).Code {
				case problem.Internal, problem.Unavailable:
					if err != nil {
						t.Errorf("act %d: %v", n, err)
					}
				}
			}
		})
		t.Logf("%d joins, %d taken over, %d nodes dropped or removed", published(t, db, "security.node.joined"), published(t, db, "security.node.reclaimed"), published(t, db, "security.node.removed"))
		for what, query := range map[string]string{
			"tokens whose uses are not those of the ledger":        "join_tokens AS t WHERE uses <> (SELECT count(*) FROM join_uses AS u WHERE u.token_id = t.id)",
			"certificates that are valid since before a take-over": "node_certificates AS c JOIN nodes AS n ON n.id = c.node_id WHERE c.revoked_at IS NULL AND c.created_at < n.joined_at",
			"certificates of removed nodes that are valid":         "node_certificates AS c JOIN nodes AS n ON n.id = c.node_id WHERE c.revoked_at IS NULL AND n.removed_at IS NOT NULL",
			"identifiers of removed nodes":                         "node_identifiers AS i JOIN nodes AS n ON n.id = i.node_id WHERE n.removed_at IS NOT NULL",
			"keys that stand for two nodes":                        "node_certificates AS a JOIN node_certificates AS b ON a.key_sha256 = b.key_sha256 AND a.node_id < b.node_id",
			"nodes that are live without having been made":         "nodes AS n WHERE (SELECT count(*) FROM events AS e WHERE e.subject = n.id AND e.type = 'security.node.joined') <> 1",
			"requests that ended twice":                            "(SELECT subject FROM events WHERE type IN ('security.join-request.denied', 'security.join-request.consumed', 'security.join-request.expired', 'security.join-request.canceled') GROUP BY subject HAVING count(*) > 1) AS twice",
			"nodes that were removed twice":                        "(SELECT subject FROM events WHERE type = 'security.node.removed' GROUP BY subject HAVING count(*) > 1) AS twice",
		} {
			if n := count(t, db, query); n != 0 {
				t.Errorf("%d %s", n, what)
			}
		}
	})
}
