package nodes

import (
	"context"
	"strings"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/bearer"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"
)

// An Arrival is a machine at the door: it has shown a join token that is there
// and not revoked, and whose secret it knows.
type Arrival struct {
	Token   store.JoinToken
	Address string
}

type arrivalKey struct{}

// WithArrival returns a context that carries the machine that joins.
func WithArrival(ctx context.Context, a Arrival) context.Context {
	return context.WithValue(ctx, arrivalKey{}, a)
}

func arrivalFrom(ctx context.Context) Arrival { return ctx.Value(arrivalKey{}).(Arrival) }

// Arrive reads the join token of an Authorization header (NJ-1). Whatever is
// wrong with it, the answer is the same and takes the same one query; only a
// text that its own checksum refuses is not looked up at all.
func (n *Nodes) Arrive(ctx context.Context, authorization, address string) (Arrival, error) {
	scheme, text, _ := strings.Cut(authorization, " ")
	id, hash, ok := bearer.Parse(bearer.JoinToken, strings.TrimLeft(text, " "))
	if !strings.EqualFold(scheme, "Bearer") || !ok {
		return Arrival{}, n.turnAway(store.JoinToken{}, address, causeMalformed)
	}
	token, err := n.db.JoinToken(ctx, id)
	unknown := fault.Is(err, problem.NotFound)
	if err != nil && !unknown {
		return Arrival{}, err
	}
	if unknown {
		token.SecretSHA256 = make([]byte, len(hash))
	}
	known := hash.Equal(token.SecretSHA256)
	switch {
	case unknown:
		return Arrival{}, n.turnAway(store.JoinToken{}, address, causeUnknown)
	case !known:
		return Arrival{}, n.turnAway(token, address, causeWrongSecret)
	case token.RevokedAt != nil:
		return Arrival{}, n.turnAway(token, address, causeRevoked)
	}
	return Arrival{token, address}, nil
}
