package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bettercompute/bettercompute/gen/client"
)

// Join makes this machine a node, once, and stores its identity. Where the
// server cannot be reached or is busy, it tries for the Config's Timeout; zero:
// once. A join that an operator must approve is an Outcome with Pending: called
// again, it is the same join.
//
// A machine that joined with the same token before, or is given none, stays as
// it is. With another token it joins anew, with a new key; where that is
// refused, it keeps its identity.
func Join(ctx context.Context, config Config) (Outcome, error) {
	d, err := open(config)
	if err != nil {
		return Outcome{}, err
	}
	outcome, err := d.joinOnce(ctx)
	return outcome, errors.Join(err, d.close())
}

func (d *daemon) joinOnce(ctx context.Context) (Outcome, error) {
	if d.config.TokenFile == "" && d.state.Identity == nil {
		return Outcome{}, usage("--token-file is missing: the file with the join token")
	}
	again, err := d.joinedBefore()
	if err != nil {
		return Outcome{}, err
	}
	if again {
		return d.stay(ctx)
	}
	if d.config.Timeout > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, d.config.Timeout)
		defer cancel()
	}
	if err := d.persist(ctx, join, d.join); err != nil {
		d.refused(join, err)
		if d.state.Joining != nil && d.state.Joining.Refused != "" && (d.state.Identity == nil || d.state.Identity.is(refusedEnded)) {
			d.problem(join, err)
		}
		return Outcome{}, err
	}
	d.cleared(join)
	if d.state.Joining != nil {
		return Outcome{Pending: d.state.Joining.Pending}, nil
	}
	d.confirmed(ctx)
	return d.outcome(false), nil
}

// stay leaves a machine that has joined as it is, with the server that it is
// with: another one is a matter of a token of it, or of `bcd run`.
func (d *daemon) stay(ctx context.Context) (Outcome, error) {
	if d.state.Identity.is(refusedEnded) {
		return Outcome{}, fmt.Errorf("%s: a new token is needed; give its file with --token-file", noMoreRenews)
	}
	given := d.server
	d.server = d.state.Server
	d.confirmed(ctx) // a crash may have come between
	out := d.outcome(true)
	if given != d.server {
		out.Stays = d.server
	}
	return out, nil
}

// confirmed confirms where that is still to do. It is no failure of a join
// where that does not work: the certificate is stored.
func (d *daemon) confirmed(ctx context.Context) {
	if d.state.Identity.Confirmed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, confirmFor)
	defer cancel()
	if err := d.persist(ctx, confirm, d.confirm); err != nil {
		d.refused(confirm, err)
		d.log.Warn("the certificate is stored and could not be confirmed; `bcd run` will", "error", err)
	}
}

// confirmFor is how long `bcd join` tries to confirm: it has what it came for.
const confirmFor = 10 * time.Second

// joinedBefore says whether there is nothing to join for.
func (d *daemon) joinedBefore() (bool, error) {
	i := d.state.Identity
	switch {
	case i == nil:
		return false, nil
	case d.config.TokenFile == "":
		return true, nil
	}
	t, err := d.joinToken()
	var none absent
	switch {
	case errors.As(err, &none):
		return true, nil
	case err != nil:
		return false, err
	}
	return t.id == i.TokenID && !i.is(refusedEnded) && d.clock.now().Before(i.NotAfter.Add(renewable)), nil
}

// renewable is how long after its end a certificate may be renewed, as the
// server has it (NJ-6). Nothing is decided by it but whether `bcd join` starts anew.
const renewable = 7 * 24 * time.Hour

// persist tries until it works, the time is over, or another attempt is of no use.
func (d *daemon) persist(ctx context.Context, what action, attempt func(context.Context) error) error {
	var before error
	for {
		err := attempt(ctx)
		if ctx.Err() != nil && before != nil && err != nil {
			err = before // says more than that the time was over
		}
		if err == nil || !passing(err) || d.config.Timeout <= 0 {
			return err
		}
		before = err
		if ctx.Err() == nil {
			wait := d.plan.failed(what, d.clock.local(), askedWait(err), d.config.Jitter)
			d.log.Warn(what.String()+" did not succeed yet", "error", err, "again", wait.Round(time.Millisecond))
			if pause(ctx, wait) == nil {
				continue
			}
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("no success within %v: %w", d.config.Timeout, err)
		}
		return err
	}
}

func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (d *daemon) outcome(already bool) Outcome {
	i := d.state.Identity
	if i == nil {
		return Outcome{}
	}
	return Outcome{
		NodeID: i.NodeID, TenantID: i.TenantID, PoolID: i.PoolID, Profile: i.Profile, Trust: i.Trust,
		NotAfter: i.NotAfter, Confirmed: i.Confirmed, Already: already,
	}
}

// join calls once. Afterwards there is an identity, or an attempt that is pending.
func (d *daemon) join(ctx context.Context) error {
	t, err := d.joinToken()
	if err != nil {
		return stop{err}
	}
	asks, err := d.request(&d.state.Joining, joinKeyFile, t.id)
	if err != nil {
		return err
	}
	claims, err := d.claims(ctx)
	if err != nil {
		return stop{err}
	}
	c, err := d.connect(ctx, t, nil)
	if err != nil {
		return err
	}
	defer c.close()
	asked := d.clock.local()
	answer, err := c.Nodes.Join(ctx, client.NodesJoinInput{CSR: asks, Claims: claims})
	switch {
	case client.IsCode(err, client.ErrorCodeCONFLICT):
		d.forget(&d.state.Joining)
		return err
	case err != nil:
		return refusedJoin(err)
	case answer.Admitted != nil:
		return d.admit(*answer.Admitted, &d.state.Joining, t.id, asked, c.verifier)
	case answer.Pending != nil:
		return d.wait(*answer.Pending, asked)
	default:
		return errors.New("the server neither admits nor defers; it may be newer than this bcd")
	}
}

// wait notes that an operator must approve the join.
func (d *daemon) wait(p client.Deferral, asked time.Time) error {
	d.tell(p.ServerTime, asked)
	d.state.Server = d.server
	pending := Pending{p.RequestID, string(p.Reason), p.CSRSha256}
	news := d.state.Joining.Pending == nil || *d.state.Joining.Pending != pending
	d.state.Joining.Pending, d.state.Joining.Refused = &pending, ""
	after := min(time.Duration(max(1, p.RetryAfterSeconds))*time.Second, maxAsked)
	d.plan.done(join, d.clock.local(), after+d.config.Jitter(after/4))
	if news {
		d.log.Info("an operator must approve this join", "request", pending.RequestID, "reason", pending.Reason, "csrSha256", pending.CSRSHA256)
		d.trySave()
	}
	return nil
}

// admit stores a new identity. Until it is on the disk, the attempt stays, so
// that the same call can be made again.
func (d *daemon) admit(a client.Admission, of **attempt, tokenID string, asked time.Time, v *verifier) error {
	before, anew := d.state, of == &d.state.Joining
	d.tell(a.ServerTime, asked)
	d.state.Identity = &identity{
		NodeID: a.NodeID, TenantID: a.TenantID, PoolID: a.PoolID, TokenID: tokenID, Profile: string(a.Profile), Trust: string(a.Trust),
		Serial: a.Serial, NotBefore: a.NotBefore, NotAfter: a.NotAfter, RenewAfter: a.RenewAfter, Certificate: a.Certificate,
	}
	key, _, err := d.folder.keyOf(d.state.Identity)
	if err != nil {
		d.state = before
		return fmt.Errorf("the server has issued a certificate that cannot be used: %w", err)
	}
	d.keepBundle(a.CaBundle, v)
	d.state.Server, d.state.Tries, d.state.Problem, *of = d.server, "", "", nil
	if anew {
		d.state.LastReportAt, d.state.Renewing = time.Time{}, nil
	}
	if err := d.save(); err != nil {
		d.state = before
		return fmt.Errorf("the server has issued a certificate for %s, which could not be stored; the next attempt gets the same one: %w", a.NodeID, err)
	}
	if err := d.folder.settle(&d.state, key); err != nil {
		d.log.Warn("the state folder could not be put in order; that is tried again", "error", err)
	}
	if anew && key != renewKeyFile {
		if err := d.folder.remove(renewKeyFile); err != nil {
			d.log.Warn("the key of a renewal of the former node is left", "error", err)
		}
	}
	if anew {
		d.metrics.reported.Set(0)
	}
	d.ended = false
	d.schedule()
	d.plan.notBefore[renew] = d.clock.local().Add(maxDelay) // whatever its dates are, and whether it helped
	d.log.Info("the server has issued a certificate", "node", a.NodeID, "profile", a.Profile, "trust", a.Trust, "until", stamp(a.NotAfter), "replayed", a.Replayed)
	return nil
}

// schedule plans for the identity: its renewal somewhat later than the server
// allows, so that machines that joined together do not renew together. One that
// was interrupted was due.
func (d *daemon) schedule() {
	i := d.state.Identity
	if i == nil {
		return
	}
	d.plan = plan{}
	if d.state.Renewing == nil {
		d.plan.renewAt = i.RenewAfter.Add(d.config.Jitter(i.NotAfter.Sub(i.RenewAfter) / 10))
	}
	d.metrics.ends.Set(float64(i.NotAfter.Unix()))
}

// keepBundle takes the roots that the server names over, if they are enough to
// verify it; they are not where its certificate is a public one.
func (d *daemon) keepBundle(text string, v *verifier) {
	trusts, err := parseBundle([]byte(text))
	switch {
	case err == nil && v.verifiedBy(trusts):
		d.state.CABundle, d.state.CASHA256 = text, d.config.CASHA256
	case d.state.CABundle != "":
		d.once("bundle", "the roots that the server names do not verify it; the former ones stay")
	}
}

// forget ends an attempt whose key is of no use, so that the next one has a new key.
func (d *daemon) forget(of **attempt) {
	*of = nil
	d.trySave()
}
