package daemon

import (
	"errors"
	"net/http"
	"strings"

	"github.com/bettercompute/bettercompute/gen/client"
)

// How a server has said no, besides the reasons that it names. It is kept until
// a later success, so that `bcd status` does not say that all is well.
const (
	refusedBanned = "banned"        // of an identity
	refusedEnded  = "ended"         // of an identity
	refusedToken  = "token_refused" // of a join
)

// refused notes with an identity, or with a join, that the server has said no.
func (d *daemon) refused(what action, err error) {
	var no *client.Error
	if !errors.As(err, &no) {
		return
	}
	i, a := d.state.Identity, d.state.Joining
	switch denied, unknown := no.Status == http.StatusForbidden, no.Status == http.StatusUnauthorized; {
	case what == join && a != nil && unknown:
		a.Pending, a.Refused = nil, refusedToken
	case what == join && a != nil && denied:
		a.Pending, a.Refused = nil, string(no.Reason)
	case what == join:
	case denied && no.Reason == client.ProblemReasonNodeBanned:
		i.Refused = refusedBanned
	case unknown && what == renew:
		i.Refused = refusedEnded
	default:
		return
	}
	d.trySave()
}

// taken notes that the server, at the URL that is used, takes the identity.
func (d *daemon) taken() {
	d.state.Identity.Refused = ""
	d.state.Server, d.state.Tries = d.server, ""
}

// problem keeps for `bcd status` why something has not been done.
func (d *daemon) problem(what action, err error) {
	tries := ""
	if d.server != d.state.Server {
		tries = d.server
	}
	if text := what.String() + ": " + err.Error(); text != d.state.Problem || tries != d.state.Tries {
		d.state.Problem, d.state.Tries = text, tries
		d.trySave()
	}
}

// cleared forgets the problem of an action, which may be one of a former run.
func (d *daemon) cleared(what action) {
	if strings.HasPrefix(d.state.Problem, what.String()+": ") {
		d.state.Problem = ""
		d.trySave()
	}
}

// is says whether an identity was refused so.
func (i *identity) is(refused string) bool { return i != nil && i.Refused == refused }
