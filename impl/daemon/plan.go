package daemon

import "time"

// An action is one of the calls that a daemon makes.
type action int

const (
	join action = iota
	confirm
	renew
	report
	actions
)

func (a action) String() string { return [...]string{"join", "confirm", "renew", "report"}[a] }

const (
	reportEvery = 30 * time.Second
	firstDelay  = time.Second // before the second attempt; it doubles
	maxDelay    = time.Minute
	maxAsked    = time.Hour // that a server may ask to wait
)

// A plan says what is due when, by the local clock. Its zero value is: everything now.
type plan struct {
	notBefore [actions]time.Time
	failures  [actions]int
	renewAt   time.Time // by the server's clock
	forced    bool      // nothing is due but a renewal, as the server takes no other call
}

// next returns what is due first, and how long that is from now. A machine
// without an identity joins; one with a certificate confirms it, renews it in
// time, and reports.
func (p *plan) next(i *identity, now, server time.Time) (action, time.Duration) {
	if i == nil {
		return join, max(0, p.notBefore[join].Sub(now))
	}
	what, wait := report, p.notBefore[report].Sub(now)
	renewIn := p.notBefore[renew].Sub(now)
	if !p.forced {
		renewIn = max(renewIn, p.renewAt.Sub(server))
	}
	if renewIn <= wait || p.forced {
		what, wait = renew, renewIn
	}
	if confirmIn := p.notBefore[confirm].Sub(now); !i.Confirmed && !p.forced && (confirmIn <= wait || confirmIn <= 0) {
		what, wait = confirm, confirmIn
	}
	return what, max(0, wait)
}

// done notes a success; the next time is not before a while.
func (p *plan) done(a action, now time.Time, again time.Duration) {
	p.failures[a] = 0
	p.notBefore[a] = now.Add(again)
}

// failed notes a failure and returns how long to wait: longer each time, and
// not less than the server asked for.
func (p *plan) failed(a action, now time.Time, asked time.Duration, jitter func(time.Duration) time.Duration) time.Duration {
	wait := backoff(p.failures[a], jitter)
	p.failures[a]++
	if asked = min(asked, maxAsked); asked > 0 {
		wait = max(wait, asked+jitter(asked/4))
	}
	p.notBefore[a] = now.Add(wait)
	return wait
}

// sooner brings the renewal forward.
func (p *plan) sooner(renewAt time.Time) {
	if renewAt.Before(p.renewAt) {
		p.renewAt = renewAt
	}
}

// backoff is from half of a delay up to all of it, which doubles with each failure.
func backoff(failures int, jitter func(time.Duration) time.Duration) time.Duration {
	delay := firstDelay
	for ; failures > 0 && delay < maxDelay; failures-- {
		delay *= 2
	}
	delay = min(delay, maxDelay)
	return delay/2 + jitter(delay/2)
}
