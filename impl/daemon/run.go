package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/bettercompute/bettercompute/gen/client"
)

// Run joins where that is still to do, waits for an operator where one must
// approve it, and from then on renews the certificate in time and reports every
// 30 seconds. It returns nil when ctx ends, and an error when a person must do
// something; what may pass by itself it waits out.
func Run(ctx context.Context, config Config) (err error) {
	d, err := open(config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if d.state.Identity == nil && d.config.TokenFile == "" {
		return usage("--token-file is missing: this machine has not joined yet")
	}
	address, serving, err := d.metrics.serve(d.config.Metrics)
	if err != nil {
		return err
	}
	defer serving()
	watched := d.watch(ctx)
	defer watched()
	if d.config.Ready != nil {
		d.config.Ready(address)
	}
	d.show("READY=1\n")
	defer d.config.Notify("STOPPING=1")
	for {
		wait, err := d.step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		d.beat.Store(d.config.Now().UnixNano())
		if pause(ctx, min(wait, maxPause)) != nil {
			return nil
		}
	}
}

// maxPause bounds a wait: a clock that is set, or a machine that slept, must
// not keep what is due from being seen.
const maxPause = 30 * time.Second

// step does the first thing that is due, or returns how long there is nothing
// to do. An error is for a person.
func (d *daemon) step(ctx context.Context) (wait time.Duration, err error) {
	i := d.state.Identity
	if d.ended {
		i = nil
	}
	now := d.clock.local()
	what, wait := d.plan.next(i, now, d.clock.now())
	if wait > 0 {
		return wait, nil
	}
	err = d.do(ctx, what)
	if ctx.Err() != nil {
		return 0, nil // cut off by the end, which is no failure
	}
	err = d.settled(what, err)
	d.show("")
	return 0, err
}

func (d *daemon) do(ctx context.Context, what action) error {
	switch what {
	case join:
		return d.rejoin(ctx)
	case confirm:
		return d.confirm(ctx)
	case renew:
		return d.renew(ctx)
	default:
		return d.report(ctx)
	}
}

// settled decides what follows from the outcome of an action.
func (d *daemon) settled(what action, err error) error {
	d.metrics.count(what, err)
	if err == nil {
		d.cleared(what)
		if d.failing[what] && what != join {
			d.log.Info(what.String() + " succeeds again")
		}
		d.failing[what] = false
		return nil
	}
	d.failing[what] = true
	d.refused(what, err)
	d.problem(what, err)
	var final stop
	if errors.As(err, &final) {
		return err
	}
	now := d.clock.local()
	wait := d.plan.failed(what, now, askedWait(err), d.config.Jitter)
	d.log.Warn(what.String()+" did not succeed", "error", err, "again", wait.Round(time.Millisecond))
	if what == join {
		return nil
	}
	d.hangUp()
	switch ended := isStatus(err, http.StatusUnauthorized); {
	case ended && what == renew:
		d.log.Warn("the identity of this node is of no use any more", "node", d.state.Identity.NodeID, "why", noMoreRenews)
		d.ended = true
	case ended:
		// The certificate has ended, or another one took its place: a renewal tells, and heals what can be healed.
		d.plan.forced = true
	}
	return nil
}

// rejoin joins; where there was an identity that ended, it needs a token that is still there.
func (d *daemon) rejoin(ctx context.Context) error {
	if d.config.TokenFile == "" {
		return stop{errors.New(noMoreRenews + ": a new token is needed; give its file with --token-file")}
	}
	if d.ended {
		if _, err := d.joinToken(); err != nil {
			return stop{fmt.Errorf("%s: a new token is needed: %w", noMoreRenews, err)}
		}
	}
	return d.join(ctx)
}

// confirm tells the server that the certificate is stored.
func (d *daemon) confirm(ctx context.Context) error {
	c, err := d.self(ctx)
	if err != nil {
		return err
	}
	asked := d.clock.local()
	answer, err := c.Nodes.Confirm(ctx, client.NodesConfirmInput{AgentVersion: d.agent()})
	if err != nil {
		return refusedNode(confirm, err)
	}
	d.tell(answer.ServerTime, asked)
	d.taken()
	d.state.Identity.Confirmed = true
	d.plan.done(confirm, d.clock.local(), 0)
	d.trySave() // where that fails it is confirmed again, which changes nothing
	d.log.Info("the certificate is confirmed", "node", answer.NodeID)
	return nil
}

// renew gets the next certificate, for a new key. The old one stays until the
// new one is on the disk, and the server takes it until the new one is confirmed.
func (d *daemon) renew(ctx context.Context) error {
	asks, err := d.request(&d.state.Renewing, renewKeyFile, "")
	if err != nil {
		return err
	}
	c, err := d.self(ctx)
	if err != nil {
		return err
	}
	asked := d.clock.local()
	answer, err := c.Nodes.Renew(ctx, client.NodesRenewInput{CSR: asks})
	if client.IsCode(err, client.ErrorCodeCONFLICT) {
		d.forget(&d.state.Renewing)
	}
	if err != nil {
		return refusedNode(renew, err)
	}
	return d.admit(answer.Admitted, &d.state.Renewing, d.state.Identity.TokenID, asked, c.verifier)
}

// report says that the machine is alive.
func (d *daemon) report(ctx context.Context) error {
	c, err := d.self(ctx)
	if err != nil {
		return err
	}
	asked := d.clock.local()
	answer, err := c.Nodes.Report(ctx, client.NodesReportInput{AgentVersion: d.agent()})
	if err != nil {
		return refusedNode(report, err)
	}
	d.tell(answer.ServerTime, asked)
	d.taken()
	d.state.LastReportAt = answer.ServerTime
	d.metrics.reported.Set(float64(answer.ServerTime.Unix()))
	if answer.RenewAfter.Before(d.state.Identity.RenewAfter) {
		d.plan.sooner(answer.RenewAfter.Add(d.config.Jitter(reportEvery)))
	}
	d.plan.done(report, d.clock.local(), reportEvery-d.config.Jitter(reportEvery/10))
	d.trySave()
	return nil
}

func (d *daemon) agent() *string { return given(d.config.Version) }
