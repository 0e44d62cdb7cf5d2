// Package server wires the rooms together and runs the one path that every call takes.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/bettercompute/bettercompute/gen"
	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/apikeys"
	"github.com/bettercompute/bettercompute/impl/events"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/iam"
	"github.com/bettercompute/bettercompute/impl/ids"
	"github.com/bettercompute/bettercompute/impl/inventory"
	"github.com/bettercompute/bettercompute/impl/joinrequests"
	"github.com/bettercompute/bettercompute/impl/jointokens"
	"github.com/bettercompute/bettercompute/impl/keyring"
	"github.com/bettercompute/bettercompute/impl/nodes"
	"github.com/bettercompute/bettercompute/impl/pools"
	"github.com/bettercompute/bettercompute/impl/sites"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/upkeep"
)

// A Server answers the methods of the spec on one database, which it may share
// with other replicas.
type Server struct {
	config      Config
	log         *slog.Logger
	db          *store.DB
	authority   *iam.Authority
	groups      api.Groups
	feed        *events.Feed
	tokens      *jointokens.JoinTokens
	nodes       *nodes.Nodes
	keys        *keyring.Keyring
	certificate *listenerCertificate // nil: no TLS
	bundle      bundleFile
	limits      *joinLimits
	metrics     *metrics
	denials     *denials
	byPath      map[string]*api.Method
	byOperation map[string]*api.Method
	plain       map[string]http.HandlerFunc // paths that are no methods
	methods     http.Handler

	background  sync.WaitGroup
	streams     context.Context // ends first on a stop
	stopStreams context.CancelFunc
	recheck     time.Duration
	timeouts    timeouts
}

// timeouts of a connection, of which a stream renews its own; of a body, until
// its sender is asked for again; of what a call, or
// a turn of other work, has to do with the database; and of a stop: for calls,
// and for the work beside them.
type timeouts struct{ header, read, write, idle, body, database, stop, finish time.Duration }

// New opens the database, brings it up to date and, on an empty one, creates
// what it needs first (OpenMigrated). Close the server when done.
func New(ctx context.Context, config Config) (*Server, error) {
	if err := config.check(ctx); err != nil {
		return nil, err
	}
	authority, err := iam.NewAuthority(config.PolicyDir)
	if err != nil {
		return nil, fmt.Errorf("%w: --policy-dir: %w", ErrConfig, err)
	}
	db, err := OpenMigrated(ctx, config)
	if err != nil {
		return nil, err
	}
	keys, err := openKeyring(ctx, &config, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s := newServer(config, db, authority, keys)
	if err := s.showKeys(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func newServer(config Config, db *store.DB, authority *iam.Authority, keys *keyring.Keyring) *Server {
	installCodec()
	s := &Server{
		config:      config,
		log:         config.Log,
		db:          db,
		authority:   authority,
		feed:        events.NewFeed(db, ids.New("replica", time.Now()), config.Log),
		tokens:      jointokens.New(db, config.placeholders),
		keys:        keys,
		limits:      newJoinLimits(config.JoinLimits, config.now),
		metrics:     newMetrics(db, config.Version),
		denials:     &denials{db: db, log: config.Log, counts: map[store.Denial]*tally{}},
		byPath:      map[string]*api.Method{},
		byOperation: map[string]*api.Method{},
		recheck:     recheck,
		timeouts: timeouts{
			header:   10 * time.Second,
			read:     30 * time.Second,
			write:    time.Minute,
			idle:     2 * time.Minute,
			body:     time.Second,
			database: 10 * time.Second,
			stop:     8 * time.Second,
			finish:   1500 * time.Millisecond,
		},
	}
	s.streams, s.stopStreams = context.WithCancel(context.Background())
	s.nodes = nodes.New(nodes.Config{
		DB: db, Authority: keys.Authority, Verify: keys.VerifyNode,
		Placeholders: config.placeholders, Audit: s.refusedJoin,
	})
	s.groups = api.Groups{
		JoinTokens:   s.tokens,
		JoinRequests: joinrequests.New(db),
		Nodes:        s.nodes,
		Inventory:    inventory.New(db, config.placeholders),
		Pools:        pools.New(db),
		Sites:        sites.New(db),
		APIKeys:      apikeys.New(db),
		Events:       events.New(db, s.feed),
	}
	for _, m := range api.Methods {
		s.byPath[m.Path], s.byOperation[m.Operation] = m, m
	}
	s.plain = map[string]http.HandlerFunc{
		"/healthz":          s.healthz,
		"/readyz":           s.readyz,
		"/metrics":          s.metrics.handler(),
		"/ca.pem":           s.caBundle,
		"/openapi.json":     document(gen.OpenAPI),
		"/openapi-3.0.json": document(gen.OpenAPI30),
	}
	s.methods = s.methodsHandler()
	return s
}

// Close releases the database.
func (s *Server) Close() error {
	s.stopStreams()
	return s.db.Close()
}

// Run serves until ctx ends, and then lets the calls in flight finish. It
// returns within ten seconds, whatever callers and database do.
func (s *Server) Run(ctx context.Context) error {
	listener, err := s.listen(ctx)
	if err != nil {
		return err
	}
	working, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	s.startWork(working)
	web := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.timeouts.header,
		ReadTimeout:       s.timeouts.read,
		WriteTimeout:      s.timeouts.write,
		IdleTimeout:       s.timeouts.idle,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	if s.config.Ready != nil {
		s.config.Ready(s.url(listener.Addr()))
	}
	select {
	case err := <-served:
		stopWork()
		s.background.Wait()
		return err
	case <-ctx.Done():
	}
	s.log.Info("stopping")
	s.stopStreams()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeouts.stop)
	defer cancel()
	err = web.Shutdown(ending)
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("some calls did not finish in time and were cut off")
		err = web.Close()
	}
	<-served
	stopWork()
	s.finish(context.WithoutCancel(ctx))
	return err
}

// finish waits for the work beside the calls and records what is left. A
// database that does not answer cannot keep the process.
func (s *Server) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.timeouts.finish)
	defer cancel()
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		s.background.Wait()
		if err := s.denials.flush(ctx); err != nil {
			s.log.WarnContext(ctx, "refusals were not recorded", "error", err)
		}
	}()
	select {
	case <-finished:
	case <-ctx.Done():
		s.log.WarnContext(ctx, "work on the database did not end in time and was left")
	}
}

func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.config.Listen)
	if err != nil {
		return nil, fmt.Errorf("%w: --listen: %w", ErrConfig, err)
	}
	if s.certificate != nil {
		listener = tls.NewListener(listener, s.certificate.settings())
	}
	return listener, nil
}

func (s *Server) url(address net.Addr) string {
	if s.certificate != nil {
		return "https://" + address.String()
	}
	return "http://" + address.String()
}

// flushPause is how long refusals are added up before they are written.
const flushPause = 5 * time.Second

// startWork begins what goes on beside the calls: on every replica what is its
// own, and the chores on one of them.
func (s *Server) startWork(ctx context.Context) {
	s.background.Go(func() { s.feed.Run(ctx) })
	s.every(ctx, "record of denials", flushPause, s.denials.flush)
	s.freshen(ctx)
	s.background.Go(func() {
		for ctx.Err() == nil {
			if err := upkeep.Run(ctx, s.db, s.log, s.chores()); err != nil {
				s.log.WarnContext(ctx, "the chores wait for the database", "error", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(chorePause):
			}
		}
	})
}

// chorePause is how long the chores wait when they could not be begun.
const chorePause = 5 * time.Second

func (s *Server) chores() []upkeep.Chore {
	return []upkeep.Chore{
		{Name: "end-join-tokens", Every: 30 * time.Second, Do: s.tokens.Sweep},
		{Name: "expire-join-requests", Every: 30 * time.Second, Do: s.nodes.ExpireRequests},
		{Name: "drop-unsigned-joins", Every: time.Minute, Do: s.nodes.DropUnsigned},
		{Name: "forget", Every: time.Hour, Do: s.nodes.Forget},
	}
}

func (s *Server) every(ctx context.Context, what string, pause time.Duration, work func(context.Context) error) {
	s.background.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			turn, cancel := context.WithTimeout(ctx, s.timeouts.database)
			err := work(turn)
			cancel()
			if err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "background work waits for the next turn", "work", what, "error", err)
			}
		}
	})
}

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }

func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), s.timeouts.database)
	defer cancel()
	if err := s.db.Ready(ctx); err != nil {
		s.refuse(w, r, err)
		return
	}
	fmt.Fprintln(w, "ready")
}

func document(text []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Write(text)
	}
}

func unavailable(err error) bool { return fault.Is(fault.From(err), problem.Unavailable) }
