package daemon

import (
	"sync"
	"time"
)

// A clock knows what time it is at the server. The clock of a machine may be
// off by years, where its battery is dead; what counts for certificates is the
// server's.
type clock struct {
	local func() time.Time

	mu     sync.Mutex
	server time.Time // what it was at the server, at some time; zero: not known
	at     time.Time // when that was, by the local clock, which may be set meanwhile: its monotonic reading counts
	known  time.Time // the last time that a server told
}

// newClock goes on from the time that a server told a former run, where the
// local clock is behind it.
func newClock(local func() time.Time, told time.Time) *clock {
	c := &clock{local: local, known: told}
	c.atLeast(told)
	return c
}

// told takes in an answer's time and returns how far the local clock is behind.
// The answer is taken to be half as old as the call.
func (c *clock) told(server, asked time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	answered := c.local()
	c.at = asked.Add(answered.Sub(asked) / 2)
	c.server, c.known = server, server
	return server.Sub(c.at.Round(0)) // by the wall clock, which is the one that is wrong
}

// now is the time at the server; before it is known, that of the local clock.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.estimate(c.local())
}

func (c *clock) estimate(local time.Time) time.Time {
	if c.server.IsZero() {
		return local.Round(0)
	}
	return c.server.Add(local.Sub(c.at))
}

// atLeast says that it is not earlier at the server.
func (c *clock) atLeast(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if local := c.local(); c.estimate(local).Before(t) {
		c.server, c.at = t, local
	}
}

// lastTold is the last time that a server told, or the zero time.
func (c *clock) lastTold() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known
}
