package store_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// errand is a job of a test.
type errand struct {
	N int `json:"n"`
}

// Kind implements [river.JobArgs].
func (errand) Kind() string { return "errand" }

func TestQueue_ReplicasWorkEachJobOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const jobs = 8
		var worked [jobs]atomic.Int64
		done := make(chan struct{}, 2*jobs)
		workers := river.NewWorkers()
		river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[errand]) error {
			worked[job.Args.N].Add(1)
			done <- struct{}{}
			return nil
		}))
		var queues []*store.Queue
		for _, db := range replicas(t, db) {
			queue, err := db.NewQueue(&river.Config{
				Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2}},
				Workers: workers, FetchCooldown: 10 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
			})
			must(t, err)
			must(t, queue.Start(t.Context()))
			queues = append(queues, queue)
		}
		for n := range jobs {
			_, err := queues[n%2].Insert(t.Context(), errand{n}, nil)
			must(t, err)
		}
		for range jobs {
			<-done
		}
		for _, queue := range queues {
			must(t, queue.Stop(t.Context()))
		}
		for n := range worked {
			if times := worked[n].Load(); times != 1 {
				t.Errorf("job %d was worked %d times", n, times)
			}
		}
		if n := count(t, db, "river_job WHERE state = 'completed'"); n != jobs {
			t.Errorf("%d jobs are completed", n)
		}
	})
}
