// Package upkeep does what has to be done now and then, for all replicas together: a queue in the database sees to it that one of them does.
package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/bettercompute/bettercompute/impl/store"
)

// A Chore is work that is due again and again. It may be done twice, and by two
// replicas at once.
type Chore struct {
	Name  string // for the log and the queue, of letters, digits and hyphens; never reused for other work
	Every time.Duration
	Do    func(context.Context) error
}

// How the queue is worked. A replica that dies leaves its job behind, which
// costs nothing: the next turn is another job.
const (
	queue     = "upkeep"
	workers   = 2
	poll      = time.Second
	timeout   = time.Minute
	retention = time.Hour // of jobs that are done
	patience  = time.Second
)

// Run does the chores until ctx ends, and returns when what it has begun has
// ended, or was left after a moment.
func Run(ctx context.Context, db *store.DB, log *slog.Logger, chores []Chore) error {
	crew := river.NewWorkers()
	w := &worker{chores: map[string]Chore{}, log: log}
	river.AddWorker(crew, w)
	var periodic []*river.PeriodicJob
	for _, chore := range chores {
		w.chores[chore.Name] = chore
		periodic = append(periodic, river.NewPeriodicJob(river.PeriodicInterval(chore.Every), func() (river.JobArgs, *river.InsertOpts) {
			return turn{chore.Name}, &river.InsertOpts{Queue: queue, MaxAttempts: 1}
		}, &river.PeriodicJobOpts{ID: chore.Name, RunOnStart: true}))
	}
	client, err := db.NewQueue(&river.Config{
		CancelledJobRetentionPeriod: retention,
		CompletedJobRetentionPeriod: retention,
		DiscardedJobRetentionPeriod: retention,
		FetchPollInterval:           poll,
		JobTimeout:                  timeout,
		Logger:                      slog.New(quiet{log.Handler()}),
		PeriodicJobs:                periodic,
		Queues:                      map[string]river.QueueConfig{queue: {MaxWorkers: workers}},
		Workers:                     crew,
	})
	if err != nil {
		return err
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	<-ctx.Done()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	err = client.StopAndCancel(stopping)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// A turn is one doing of a chore.
type turn struct {
	Chore string `json:"chore"`
}

// Kind implements [river.JobArgs].
func (turn) Kind() string { return "chore" }

type worker struct {
	river.WorkerDefaults[turn]
	chores map[string]Chore
	log    *slog.Logger
}

// Work implements [river.Worker]. A chore that another release has queued is
// left to it for a while.
func (w *worker) Work(ctx context.Context, job *river.Job[turn]) error {
	chore, known := w.chores[job.Args.Chore]
	switch {
	case !known && time.Since(job.CreatedAt) < retention:
		return river.JobSnooze(poll)
	case !known:
		return river.JobCancel(fmt.Errorf("there is no chore %q in this release", job.Args.Chore))
	}
	err := chore.Do(ctx)
	if err != nil {
		w.log.WarnContext(ctx, "a chore waits for its next turn", "chore", chore.Name, "error", err)
		return river.JobCancel(err)
	}
	return nil
}

// quiet passes on what the queue has to say from warnings on.
type quiet struct{ slog.Handler }

// Enabled implements [slog.Handler].
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}

// WithAttrs implements [slog.Handler].
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup implements [slog.Handler].
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
