package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/bettercompute/bettercompute/impl/bearer"
)

const (
	timingRequests = 20_000 // of each kind in a run
	timingRuns     = 3
	timingAlpha    = 0.01
	timingMedians  = 1.10
)

// The bearers that a join is refused for. All are well-formed, so that what is
// measured is the look at the database and the comparison, not the checksum.
const (
	unknownID = iota
	wrongFirst
	wrongLast
	wrongKinds
)

// timingSQLiteGoal: the time of a refusal tells nobody how much of a secret was
// right, nor whether there is such a token.
func timingSQLiteGoal(ctx context.Context, l *lab) ([]line, error) {
	dir, err := l.folder("timing")
	if err != nil {
		return nil, err
	}
	return timingGoal(ctx, l, "sqlite:"+filepath.Join(dir, "bench.db"))
}

// timingPostgresGoal is the same on Postgres.
func timingPostgresGoal(ctx context.Context, l *lab) ([]line, error) {
	if l.postgres == "" {
		return withoutPostgres(), nil
	}
	d, err := l.newDatabase(ctx)
	if err != nil {
		return nil, err
	}
	defer d.drop()
	return timingGoal(ctx, l, d.url)
}

func timingGoal(ctx context.Context, l *lab, url string) ([]line, error) {
	t, err := l.serveJoins(ctx, url)
	if err != nil {
		return nil, err
	}
	defer t.stop()
	tokens, err := t.mint(ctx, 1, hotUses)
	if err != nil {
		return nil, err
	}
	var distances, criticals []float64
	var medians [wrongKinds][]float64
	for range timingRuns {
		took, err := t.refusals(ctx, tokens[0])
		if err != nil {
			return nil, err
		}
		distances = append(distances, kolmogorovSmirnov(took[wrongFirst], took[wrongLast]))
		criticals = append(criticals, kolmogorovSmirnovCritical(timingAlpha, timingRequests, timingRequests))
		for kind := range took {
			medians[kind] = append(medians[kind], median(took[kind]))
		}
	}
	// The median of three ratios is at most 1 where two of the runs are.
	return []line{
		compared("wrong first byte against wrong last byte, Kolmogorov-Smirnov at 0.01", distance, distances, criticals, atMost("1", 1)).
			withNote("runs %.4f; %d requests of each kind in a run", distances, timingRequests),
		closeTogether("median of wrong first byte, against wrong last byte", medians[wrongFirst], medians[wrongLast]),
		closeTogether("median of unknown id, against wrong last byte", medians[unknownID], medians[wrongLast]),
	}, nil
}

// closeTogether is a line for two that may differ by a tenth, in either direction.
func closeTogether(name string, ours, peer []float64) line {
	return compared(name, nanoseconds, ours, peer, bound{"1 ± 0.1", func(ratio float64) bool {
		return max(ratio, 1/ratio) <= timingMedians
	}})
}

// refusals times joins that are refused, in a random order that is new for every
// three, on one connection. It returns nanoseconds by kind.
func (t *target) refusals(ctx context.Context, token string) (took [wrongKinds][]float64, err error) {
	bearers, err := wrongBearers(token)
	if err != nil {
		return took, err
	}
	machine, err := joinBody()
	if err != nil {
		return took, err
	}
	body, err := json.Marshal(machine)
	if err != nil {
		return took, err
	}
	c, err := t.dial()
	if err != nil {
		return took, err
	}
	defer c.close()
	order := []int{unknownID, wrongFirst, wrongLast}
	for i := range timingRequests + timingRequests/10 {
		rand.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
		for _, kind := range order {
			if err := ctx.Err(); err != nil {
				return took, err
			}
			c.key = bearers[kind]
			began := time.Now()
			if err := c.expect(http.StatusUnauthorized, joinPath, string(body)); err != nil {
				return took, err
			}
			if spent := time.Since(began); i >= timingRequests/10 { // the first ones warm up
				took[kind] = append(took[kind], float64(spent))
			}
		}
	}
	return took, nil
}

// wrongBearers are what a live token is turned into.
func wrongBearers(token string) (wrong [wrongKinds]string, err error) {
	id, secret, _ := strings.Cut(strings.TrimPrefix(token, bearer.JoinToken), ".")
	const sum = 6 // characters at the end of a secret
	if len(secret) <= sum {
		return wrong, fmt.Errorf("a token without a secret: %w", errUnexpected)
	}
	random := secret[:len(secret)-sum]
	last := len(random) - 1
	other := "jt_" + strings.Map(func(r rune) rune { return 'a' + (r+7)%3 }, strings.TrimPrefix(id, "jt_"))
	wrong[unknownID] = withChecksum(other, random)
	wrong[wrongFirst] = withChecksum(id, otherDigit(random[0])+random[1:])
	wrong[wrongLast] = withChecksum(id, random[:last]+otherDigit(random[last]))
	for _, text := range append(wrong[:], withChecksum(id, random)) {
		if _, _, ok := bearer.Parse(bearer.JoinToken, text); !ok {
			return wrong, fmt.Errorf("a bearer that is malformed: %w", errUnexpected)
		}
	}
	return wrong, nil
}

func otherDigit(c byte) string {
	if c == '0' {
		return "1"
	}
	return "0"
}

// withChecksum completes a bearer as the server would (JT-03).
func withChecksum(id, random string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	body := bearer.JoinToken + id + "." + random
	var sum [6]byte
	for n, i := crc32.ChecksumIEEE([]byte(body)), len(sum)-1; i >= 0; n, i = n/62, i-1 {
		sum[i] = digits[n%62]
	}
	return body + string(sum[:])
}
