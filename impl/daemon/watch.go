package daemon

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// stuck is how long one step may take: a call, with its connection, and the disk.
const stuck = 2 * time.Minute

// watch tells systemd that the loop works, as long as it does. The function
// that it returns waits for its end.
func (d *daemon) watch(ctx context.Context) (stop func()) {
	if d.config.WatchdogEvery <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	d.beat.Store(d.config.Now().UnixNano())
	done.Go(func() {
		ticker := time.NewTicker(d.config.WatchdogEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if d.config.Now().Sub(time.Unix(0, d.beat.Load())) < stuck+maxPause {
					d.config.Notify("WATCHDOG=1")
				}
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// The states that a node is in.
const (
	stateNone        = "none"
	statePending     = "pending"
	stateUnconfirmed = "unconfirmed"
	stateJoined      = "joined"
	stateEnded       = "ended"
	stateBanned      = "banned"
)

// stands is the state that the node is in, and the same in words.
func (d *daemon) stands() (state, words string) {
	i := d.state.Identity
	switch a := d.state.Joining; {
	case (i == nil || d.ended) && a != nil && a.Pending != nil:
		return statePending, fmt.Sprintf("waits for an operator: request %s (%s)", a.Pending.RequestID, a.Pending.Reason)
	case i == nil:
		return stateNone, "joins"
	case d.ended:
		return stateEnded, "joins anew: the identity of node " + i.NodeID + " has ended"
	case i.is(refusedBanned):
		return stateBanned, "node " + i.NodeID + " is banned"
	case !i.Confirmed:
		return stateUnconfirmed, "node " + i.NodeID + ", certificate not confirmed yet"
	default:
		return stateJoined, fmt.Sprintf("node %s, certificate until %s", i.NodeID, stamp(i.NotAfter))
	}
}

// show tells systemd and the metrics how the node stands.
func (d *daemon) show(first string) {
	state, words := d.stands()
	d.metrics.stands(state)
	if d.state.Problem != "" {
		words += "; " + d.state.Problem
	}
	d.config.Notify(first + "STATUS=" + strings.ReplaceAll(words, "\n", "; ")) // a line end would begin another message
}
