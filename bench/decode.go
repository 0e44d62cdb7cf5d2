package main

import (
	"context"

	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// decodeOurs decodes and validates a body as the server does: the bytes become
// a string once, which the input then refers to.
func decodeOurs(body []byte, mode strictjson.Mode) error {
	var in wire.JoinTokensCreateInput
	return in.DecodeStrict(string(body), mode)
}

// decodeSides are ours and those that we are held against, each from the bytes
// of a body to an input that holds every rule.
func decodeSides() ([]side, error) {
	body := []byte(createBody)
	kin, err := newKinFilter()
	if err != nil {
		return nil, err
	}
	ogen, err := newOgenRequests()
	if err != nil {
		return nil, err
	}
	return []side{
		{name: "ours", do: func() error { return decodeOurs(body, strictjson.All) }},
		{name: "kin-openapi, request filter", do: func() error { return kin.validate(body) }},
		{name: "ogen, Decode and Validate", do: func() error { return decodeOgen(body) }},
		{name: "ogen, whole request decoder", do: func() error { return ogen.decode(body) }},
		{name: "encoding/json and regexp", do: func() error { return decodeByHand(body) }},
	}, nil
}

// decodeGoal: a 340-byte joinTokens.create, decoded and validated.
func decodeGoal(ctx context.Context, _ *lab) ([]line, error) {
	sides, err := decodeSides()
	if err != nil {
		return nil, err
	}
	took, err := compare(ctx, sides...)
	if err != nil {
		return nil, err
	}
	bounds := []bound{{}, atMost("1/20", 1.0/20), atMost("1/6", 1.0/6), information, atMost("1/6", 1.0/6)}
	var lines []line
	for i := 1; i < len(sides); i++ {
		lines = append(lines, compared(sides[i].name, nanoseconds, took[0].nanoseconds, took[i].nanoseconds, bounds[i]))
	}
	return append(lines, bounded("allocations, at most", allocations, took[0].allocations, 1, atMost("1", 1))), nil
}

// refusedSides are an accepted body and, for either mode, every kind of refusal.
func refusedSides(mode strictjson.Mode) []side {
	body := []byte(createBody)
	sides := []side{{name: "accepted", do: func() error { return decodeOurs(body, mode) }}}
	for _, r := range refusals {
		body := []byte(r.body)
		sides = append(sides, side{name: r.name, do: func() error {
			if decodeOurs(body, mode) == nil {
				return errAccepted
			}
			return nil
		}})
	}
	return sides
}

var modes = []struct {
	name string
	mode strictjson.Mode
}{{"all violations", strictjson.All}, {"first violation", strictjson.First}}

// refusedGoal: to refuse a body costs little more than to accept one.
func refusedGoal(ctx context.Context, _ *lab) ([]line, error) {
	var lines []line
	for _, m := range modes {
		sides := refusedSides(m.mode)
		took, err := compare(ctx, sides...)
		if err != nil {
			return nil, err
		}
		for i := 1; i < len(sides); i++ {
			l := compared(sides[i].name+", "+m.name, nanoseconds, took[i].nanoseconds, took[0].nanoseconds, atMost("1.5", 1.5))
			lines = append(lines, l.withNote("%.0f allocations, to accept %.0f; the peer is an accepted body of ours", took[i].allocations, took[0].allocations))
		}
	}
	return lines, nil
}
