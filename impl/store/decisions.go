package store

import (
	"context"
	"sync"
	"time"
)

// Decision is a row of decisions: something that was allowed, and the policies
// that allowed it. ID and At are the store's.
type Decision struct {
	ID        string `bun:",pk"`
	At        time.Time
	RequestID string
	Principal string
	Action    string
	Resource  string
	Policies  []string `bun:"type:jsonb"`
}

func (d *Decision) times() []*time.Time { return []*time.Time{&d.At} }

// decisionKey finds the innermost *pendingDecision of a context.
type decisionKey struct{}

// pendingDecision is one decision that awaits its transaction, and the one
// before it.
type pendingDecision struct {
	previous *pendingDecision
	mu       sync.Mutex
	decision Decision
	taken    bool // written, or about to be
}

// pendingDecisions are those that one transaction writes.
type pendingDecisions []*pendingDecision

// WithDecision returns a context whose next Write that changes something also
// records decision: a call that changes nothing leaves nothing. Called again on
// that context, it adds another one. Each is recorded once, however many
// transactions the context sees.
func WithDecision(ctx context.Context, decision Decision) context.Context {
	previous, _ := ctx.Value(decisionKey{}).(*pendingDecision)
	return context.WithValue(ctx, decisionKey{}, &pendingDecision{previous: previous, decision: decision})
}

// claimDecisions takes those of ctx that no transaction has taken, oldest first.
func claimDecisions(ctx context.Context) (claimed pendingDecisions) {
	last, _ := ctx.Value(decisionKey{}).(*pendingDecision)
	for p := last; p != nil; p = p.previous {
		p.mu.Lock()
		if !p.taken {
			p.taken = true
			claimed = append(pendingDecisions{p}, claimed...)
		}
		p.mu.Unlock()
	}
	return claimed
}

// settle gives the decisions back where the transaction was not committed.
func (claimed pendingDecisions) settle(committed bool) {
	for _, p := range claimed {
		p.mu.Lock()
		p.taken = committed
		p.mu.Unlock()
	}
}

// insertDecisions records what was decided for this transaction. An id is given
// once: where a commit broke off and took effect nevertheless, the next attempt
// finds the row there.
func (tx *Tx) insertDecisions(ctx context.Context, claimed pendingDecisions) error {
	if len(claimed) == 0 {
		return nil
	}
	rows, id := make([]Decision, len(claimed)), ""
	for i, p := range claimed {
		if p.decision.ID == "" {
			id = nextID(id, "dec", tx.Now())
			p.decision.ID, p.decision.At = id, tx.Now()
		}
		if p.decision.Policies == nil {
			p.decision.Policies = []string{}
		}
		rows[i] = p.decision
	}
	_, err := tx.insertion(&rows).Exec(ctx)
	return tx.failed(ctx, "insert decisions", err)
}

// DecisionQuery selects a page of decisions.
type DecisionQuery struct {
	After string // the last id of the page before
	Limit int
}

// Decisions returns up to Limit decisions in the order of their ids, which is
// roughly that of their times, and whether there are more.
func (r Reader) Decisions(ctx context.Context, q DecisionQuery) ([]Decision, bool, error) {
	return page[Decision](ctx, r, "decisions", q.Limit, r.sql.NewSelect().Where("id > ?", q.After).Order("id"))
}
