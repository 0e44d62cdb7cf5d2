package daemon

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/bettercompute/bettercompute/gen/client"
)

// A stop is an error after which asking again is of no use, until a person has
// done something.
type stop struct{ error }

// Unwrap returns what the stop is about.
func (s stop) Unwrap() error { return s.error }

// meaning is what a refusal of a machine means to who stands before it.
func meaning(reason client.ProblemReason) string {
	switch reason {
	case client.ProblemReasonHardwareMismatch:
		return "this machine is not the one that the token is pinned to"
	case client.ProblemReasonUUIDByteOrder:
		return "the product UUID of this machine matches the token only with its first three fields byte-swapped; pin the token to the UUID as this machine has it"
	case client.ProblemReasonAttestationFailed:
		return "the pool's attestor refuses this machine"
	case client.ProblemReasonRequestDenied:
		return "an operator denied this join; to ask again takes a new token"
	case client.ProblemReasonIdentityInUse:
		return "another node of the pool has this machine's identity, and the token does not allow to take it over; remove that node, or mint a token with --allow-reclaim"
	case client.ProblemReasonNodeBanned:
		return "the node is banned: an operator must unban or remove it"
	default:
		return "the server refuses this machine"
	}
}

const (
	tokenRefused = "the server refuses the token: wrong, expired, used up or revoked"
	noMoreRenews = "the server no longer knows this node, or its certificate ended more than 7 days ago, or another machine has taken the node over (then look at that machine before you give this one a token)"
	notTaken     = "the server does not take this certificate; a renewal tells whether it takes the node"
)

// A refusal says in one line what an answer means, and is still that answer.
type refusal struct {
	text string
	err  *client.Error
}

// Error implements error.
func (r refusal) Error() string {
	var where []string
	if r.err.Reason != "" {
		where = append(where, "reason "+string(r.err.Reason))
	}
	if r.err.RequestID != "" {
		where = append(where, "request "+r.err.RequestID)
	}
	if where == nil {
		return r.text
	}
	return r.text + " (" + strings.Join(where, ", ") + ")"
}

// Unwrap returns the answer.
func (r refusal) Unwrap() error { return r.err }

// refusedJoin makes of an answer to a join what a person can act on; an error
// that is no final refusal it returns as it is.
func refusedJoin(err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) || busy(refused) {
		return err
	}
	switch refused.Status {
	case http.StatusUnauthorized:
		return stop{refusal{tokenRefused, refused}}
	case http.StatusForbidden:
		return stop{refusal{meaning(refused.Reason), refused}}
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return stop{fmt.Errorf("this server does not know how to join machines; check --server: %w", err)}
	default:
		return stop{fmt.Errorf("the server refuses this join: %w", err)}
	}
}

// refusedNode does so for the calls that a node makes with its certificate. A
// ban may be lifted, so it is no end.
func refusedNode(what action, err error) error {
	var refused *client.Error
	switch {
	case !errors.As(err, &refused):
		return err
	case refused.Status == http.StatusForbidden:
		return refusal{meaning(refused.Reason), refused}
	case refused.Status == http.StatusUnauthorized && what == renew:
		return refusal{noMoreRenews, refused}
	case refused.Status == http.StatusUnauthorized:
		return refusal{notTaken, refused}
	default:
		return err
	}
}

// busy says that another attempt may be answered otherwise. A conflict is for
// keys that stand for something else already; the next attempt has a new one.
func busy(refused *client.Error) bool {
	switch refused.Status {
	case http.StatusConflict, http.StatusTooManyRequests:
		return true
	default:
		return refused.Status < 400 || refused.Status >= 500
	}
}

// passing says that an error is likely to go away by itself, within minutes:
// the network, or a server that has too much to do or is being replaced.
func passing(err error) bool {
	var refused *client.Error
	if errors.As(err, &refused) {
		return busy(refused)
	}
	var unanswered *client.UnansweredError
	return (errors.As(err, &unanswered) || errors.Is(err, errFetch)) && !unverified(err)
}

// unverified says that something answers that is not known to be the server.
func unverified(err error) bool {
	var certificate *tls.CertificateVerificationError
	var noTLS tls.RecordHeaderError
	return errors.As(err, &certificate) || errors.As(err, &noTLS) || errors.Is(err, http.ErrSchemeMismatch) || errors.Is(err, errPin)
}

func isStatus(err error, status int) bool {
	var refused *client.Error
	return errors.As(err, &refused) && refused.Status == status
}

// askedWait is how long the server asks to wait.
func askedWait(err error) time.Duration {
	var refused *client.Error
	if errors.As(err, &refused) {
		return refused.RetryAfter
	}
	return 0
}
