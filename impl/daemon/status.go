package daemon

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/bettercompute/bettercompute/gen/client"
)

// Status is how a machine stands, as far as its state folder tells.
type Status struct {
	Joined bool   `json:"joined"`
	Valid  bool   `json:"valid"`            // joined, the certificate has not ended by the server's time, and the server has not refused it
	Server string `json:"server,omitempty"` // that is used
	// Refused is how the server has said no: banned or ended, of a node that has
	// joined; token_refused or the server's reason, of a join. Empty: it has not,
	// or a later call has succeeded.
	Refused   string     `json:"refused,omitempty"`
	NodeID    string     `json:"nodeId,omitempty"`
	TenantID  string     `json:"tenantId,omitempty"`
	PoolID    string     `json:"poolId,omitempty"`
	Profile   string     `json:"profile,omitempty"`
	Trust     string     `json:"trust,omitempty"`
	Serial    string     `json:"serial,omitempty"`
	NotBefore *time.Time `json:"notBefore,omitempty"`
	NotAfter  *time.Time `json:"notAfter,omitempty"`
	// RenewAfter is when the certificate is renewed, at the earliest.
	RenewAfter   *time.Time `json:"renewAfter,omitempty"`
	Confirmed    bool       `json:"confirmed"`
	LastReportAt *time.Time `json:"lastReportAt,omitempty"`
	// ClockOffsetSeconds is how far the clock was behind the server's at the last answer.
	ClockOffsetSeconds float64  `json:"clockOffsetSeconds"`
	Pending            *Pending `json:"pending,omitempty"`
	Problem            string   `json:"problem,omitempty"` // why what is due has not been done
	Next               string   `json:"next"`              // what happens next, and who must do it
}

// ReadStatus reads a state folder, also while another bcd works on it.
func ReadStatus(dir string, now time.Time) (Status, error) {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return Status{Next: nextJoin}, nil
	}
	f, err := readFolder(dir)
	if err != nil {
		return Status{}, err
	}
	s, err := f.peek()
	if err == nil {
		_, err = f.whole(&s)
	}
	if err = errors.Join(err, f.close()); err != nil {
		return Status{}, err
	}
	return s.status(now), nil
}

const (
	nextJoin    = "join: bcd join --server URL --ca-sha256 SHA256 --token-file FILE"
	nextApprove = "an operator approves the request; then `bcd run`, or `bcd join` again"
	nextConfirm = "`bcd run` confirms the certificate"
	nextRenew   = "`bcd run` renews the certificate"
	nextReport  = "`bcd run` reports every 30 seconds"
	nextAnew    = "the certificate can be renewed no more: join with a new token"
	nextUnban   = "an operator must unban or remove it"
	nextEnded   = "join with a new token; if another machine has taken the node over, look at that machine first"
	nextToken   = "join with a new token"
	nextMend    = "an operator mends what the problem says; then `bcd join` again, with a new token where the token is the problem"
)

func (s *state) status(now time.Time) Status {
	at := now.Add(time.Duration(s.ClockOffset * float64(time.Second)))
	if at.Before(s.ServerTime) {
		at = s.ServerTime
	}
	out := Status{Server: s.Server, ClockOffsetSeconds: s.ClockOffset, Problem: s.Problem, Next: nextJoin, LastReportAt: when(s.LastReportAt)}
	if s.Tries != "" {
		out.Server = s.Tries
	}
	if s.Joining != nil && s.Joining.Pending != nil {
		out.Pending, out.Next = s.Joining.Pending, nextApprove
	}
	i := s.Identity
	if i == nil {
		if s.Joining != nil && s.Joining.Refused != "" {
			out.Refused, out.Next = s.Joining.Refused, afterRefusal(s.Joining.Refused)
		}
		return out
	}
	out.Joined, out.Valid, out.Refused = true, at.Before(i.NotAfter) && i.Refused == "", i.Refused
	out.NodeID, out.TenantID, out.PoolID, out.Profile, out.Trust = i.NodeID, i.TenantID, i.PoolID, i.Profile, i.Trust
	out.Serial, out.NotBefore, out.NotAfter, out.RenewAfter, out.Confirmed = i.Serial, when(i.NotBefore), when(i.NotAfter), when(i.RenewAfter), i.Confirmed
	switch {
	case i.is(refusedBanned):
		out.Next = nextUnban
	case i.is(refusedEnded) && out.Pending != nil: // it joins anew already
	case i.is(refusedEnded) && s.Joining != nil && s.Joining.Refused != "":
		out.Next = afterRefusal(s.Joining.Refused)
	case i.is(refusedEnded):
		out.Next = nextEnded
	case at.After(i.NotAfter.Add(renewable)):
		out.Next = nextAnew
	case !i.Confirmed:
		out.Next = nextConfirm
	case at.After(i.RenewAfter):
		out.Next = nextRenew
	default:
		out.Next = nextReport
	}
	return out
}

// afterRefusal is what a person does after a join was refused.
func afterRefusal(reason string) string {
	switch reason {
	case refusedToken, string(client.ProblemReasonRequestDenied):
		return nextToken
	case string(client.ProblemReasonNodeBanned):
		return nextUnban
	default:
		return nextMend
	}
}

// when is nil for the zero time.
func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
