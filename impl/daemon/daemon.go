// Package daemon is what bcd does on a machine: it joins once, keeps the node's
// certificate fresh, and reports that the machine is alive (NJ).
package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/bettercompute/bettercompute/gen/client"
	"github.com/bettercompute/bettercompute/impl/hardware"
)

// Config is what bcd is started with.
type Config struct {
	Server    string // https://host[:port]; empty: the one that was joined
	TokenFile string // "-": Stdin; empty: none
	CASHA256  string // hexadecimal, of the DER of a certificate of <server>/ca.pem
	CAFile    string // PEM: whom to trust, and nobody else
	State     string // folder
	Claims    string // file with claims; empty: those of the machine

	Metrics string        // host:port of Prometheus metrics; without a host on loopback; empty: none
	Timeout time.Duration // how long Join tries; 0: once

	Roots   hardware.Roots // where the machine is read
	Stdin   io.Reader
	Log     *slog.Logger
	Version string
	Now     func() time.Time                       // nil: time.Now
	Ready   func(metrics string)                   // called once Run works; nil: nobody asks
	Notify  func(state string)                     // systemd's protocol; nil: nobody listens
	Jitter  func(most time.Duration) time.Duration // nil: anything up to most
	// WatchdogEvery is how often systemd wants to hear of a healthy loop; 0: never.
	WatchdogEvery time.Duration
}

// ErrUsage marks a Config that cannot work, whatever the machine and the server say.
var ErrUsage = errors.New("usage")

// An Outcome is what became of a join.
type Outcome struct {
	NodeID, TenantID, PoolID string
	Profile, Trust           string
	NotAfter                 time.Time
	Confirmed                bool
	Already                  bool     // it was joined before
	Stays                    string   // the server that it is with, where another one was given and not asked
	Pending                  *Pending // an operator must approve it; the rest is empty
}

// Pending is a join that waits for an operator.
type Pending struct {
	RequestID string `json:"requestId"`
	Reason    string `json:"reason"`
	CSRSHA256 string `json:"csrSha256"` // what the operator sees and approves
}

// A daemon works on one state folder, by one goroutine.
type daemon struct {
	config  Config
	server  string
	log     *slog.Logger
	folder  *folder
	state   state
	clock   *clock
	metrics *metrics
	token   *token // of standard input, which can be read once
	node    *nodeClient
	plan    plan
	ended   bool              // the server no longer knows this identity
	failing [actions]bool     // what did not succeed last time
	beat    atomic.Int64      // when the loop was known to work, in nanoseconds
	said    map[string]string // warnings that stand, by what they are about
}

// nodeClient calls with the certificate of one identity.
type nodeClient struct {
	*connection
	serial string
}

// open checks a configuration and takes hold of its state folder.
func open(config Config) (*daemon, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Jitter == nil {
		config.Jitter = func(most time.Duration) time.Duration { return rand.N(most + 1) }
	}
	if config.Notify == nil {
		config.Notify = func(string) {}
	}
	if err := config.check(); err != nil {
		return nil, err
	}
	f, err := openFolder(config.State)
	if err != nil {
		return nil, err
	}
	d := &daemon{config: config, log: config.Log, folder: f, metrics: newMetrics(config.Version), said: map[string]string{}}
	if d.state, err = f.load(config.Log); err != nil {
		return nil, errors.Join(err, f.close())
	}
	d.clock = newClock(config.Now, d.state.ServerTime)
	if d.server = config.Server; d.server == "" {
		d.server = d.state.Server
	}
	if d.server == "" {
		return nil, errors.Join(usage("--server is missing: the https URL of the server"), f.close())
	}
	d.schedule()
	return d, nil
}

func (d *daemon) close() error {
	d.node.close()
	return d.folder.close()
}

// save stores the state.
func (d *daemon) save() error { return d.folder.save(&d.state) }

// trySave stores what can be had again.
func (d *daemon) trySave() {
	if err := d.save(); err != nil {
		d.once("save", "the state could not be stored", "error", err)
		return
	}
	delete(d.said, "save")
}

// tell takes in the server's time of an answer.
func (d *daemon) tell(serverTime, asked time.Time) {
	offset := d.clock.told(serverTime, asked)
	d.state.ServerTime = serverTime
	d.state.ClockOffset = offset.Seconds()
	d.metrics.offset.Set(offset.Seconds())
	if abs := max(offset, -offset); abs > tolerated {
		d.once("clock", "the clock of this machine is wrong; the server's is used", "behind", offset.Round(time.Second))
	} else {
		delete(d.said, "clock")
	}
}

// tolerated is how far off a clock may be before the log says so.
const tolerated = 30 * time.Second

// once warns, but not again until it was something else, or nothing.
func (d *daemon) once(about, message string, attributes ...any) {
	if d.said[about] == message {
		return
	}
	d.said[about] = message
	d.log.Warn(message, attributes...)
}

// claims are what a join says of the machine, read anew each time.
func (d *daemon) claims(ctx context.Context) (client.NodesJoinInputClaims, error) {
	if d.config.Claims != "" {
		claims, err := hardware.ReadFile(d.config.Claims)
		return asInput(claims), err
	}
	claims, warnings := hardware.Collect(ctx, d.config.Roots)
	for _, w := range warnings {
		d.once(w, w)
	}
	return asInput(claims), nil
}

func asInput(c hardware.Claims) client.NodesJoinInputClaims {
	in := client.NodesJoinInputClaims{
		ProductUUID: given(c.ProductUUID), Serial: given(c.Serial), Hostname: given(c.Hostname),
		Environment: (*client.ClaimedEnvironment)(given(c.Environment)),
	}
	if len(c.MACs) > 0 {
		in.Macs = &c.MACs
	}
	if len(c.GPUUUIDs) > 0 {
		in.GPUUuids = &c.GPUUUIDs
	}
	return in
}

// given is nil for an empty text.
func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
