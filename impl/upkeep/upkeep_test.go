package upkeep_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
	"github.com/bettercompute/bettercompute/impl/upkeep"
)

// often is how often the chores of a test are due.
const often = 20 * time.Millisecond

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A journal is a log that a test reads.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// run starts Run and returns what ends it and waits for that.
func run(t testing.TB, db *store.DB, log *slog.Logger, chores ...upkeep.Chore) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- upkeep.Run(ctx, db, log, chores) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("Run ends with %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// tells is a chore that says on turns that it was done.
func tells(name string, turns chan<- string) upkeep.Chore {
	return upkeep.Chore{Name: name, Every: often, Do: func(ctx context.Context) error {
		select {
		case turns <- name:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
}

// await returns when each of the chores was done a number of times.
func await(turns <-chan string, times int, names ...string) {
	left := map[string]int{}
	for _, name := range names {
		left[name] = times
	}
	for len(left) > 0 {
		name := <-turns
		if left[name]--; left[name] <= 0 {
			delete(left, name)
		}
	}
}

// TestUpkeep_EveryChoreIsDone holds that two servers on one database do every
// chore again and again, also beside one that fails and one that panics, and
// that the failure is logged.
func TestUpkeep_EveryChoreIsDone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		turns, log := make(chan string), &journal{}
		chores := func(db *store.DB) []upkeep.Chore {
			fails, panics, writes := tells("fails", turns), tells("panics", turns), tells("writes", turns)
			failing, panicking, writing := fails.Do, panics.Do, writes.Do
			fails.Do = func(ctx context.Context) error {
				return errors.Join(failing(ctx), errors.New("the disk is full"))
			}
			panics.Do = func(ctx context.Context) error {
				if err := panicking(ctx); err != nil {
					return err
				}
				panic("the disk is on fire")
			}
			writes.Do = func(ctx context.Context) error {
				if _, err := db.AcquireLease(ctx, "chore", "test", time.Minute); err != nil && ctx.Err() == nil {
					t.Errorf("a chore cannot write: %v", err)
				}
				return writing(ctx)
			}
			return []upkeep.Chore{tells("sweeps", turns), fails, panics, writes}
		}
		for _, db := range []*store.DB{db, storetest.Replica(t, db)} {
			run(t, db, log.logger(), chores(db)...)
		}
		await(turns, 5, "sweeps", "fails", "panics", "writes")
		for _, want := range []string{`msg="a chore waits for its next turn"`, "chore=fails", "the disk is full", "the disk is on fire"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log has no %q:\n%s", want, log)
			}
		}
	})
}

// TestUpkeep_TheOtherGoesOn holds that when one of two servers ends, whichever,
// the other one does the chores.
func TestUpkeep_TheOtherGoesOn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		servers := []chan string{make(chan string), make(chan string)}
		stopFirst := run(t, db, slog.New(slog.DiscardHandler), tells("sweeps", servers[0]))
		await(servers[0], 2, "sweeps") // it leads
		run(t, storetest.Replica(t, db), slog.New(slog.DiscardHandler), tells("sweeps", servers[1]))
		stopFirst()
		await(servers[1], 3, "sweeps")
	})
}

// TestUpkeep_EndsWithItsContext holds that Run ends, without an error, with its
// context: before it has begun, while a chore works, whose context ends, too,
// and although a chore does not heed that.
func TestUpkeep_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		log := slog.New(slog.DiscardHandler)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		must(t, upkeep.Run(ended, db, log, []upkeep.Chore{tells("sweeps", make(chan string, 1000))}))

		begun, heeded := make(chan bool), make(chan bool, 10)
		stop := run(t, db, log, upkeep.Chore{Name: "waits", Every: often, Do: func(ctx context.Context) error {
			select {
			case begun <- true:
			case <-ctx.Done():
				return ctx.Err()
			}
			<-ctx.Done()
			heeded <- true
			return ctx.Err()
		}})
		<-begun
		stop()
		<-heeded

		release := make(chan bool)
		stop = run(t, db, log, upkeep.Chore{Name: "ignores", Every: often, Do: func(ctx context.Context) error {
			select {
			case begun <- true:
			case <-ctx.Done():
				return ctx.Err()
			}
			<-release
			return nil
		}})
		<-begun
		stop()
		close(release)
	})
}

// turnOf is a turn of a chore, as another release queues it.
type turnOf struct {
	Chore string `json:"chore"`
}

func (turnOf) Kind() string { return "chore" }

// TestUpkeep_AnotherReleasesChore holds that a release leaves the chore of
// another one alone, and that the one that knows it does it.
func TestUpkeep_AnotherReleasesChore(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		queue, err := db.NewQueue(&river.Config{})
		must(t, err)
		_, err = queue.Insert(t.Context(), turnOf{"of-tomorrow"}, &river.InsertOpts{Queue: "upkeep", MaxAttempts: 1})
		must(t, err)
		turns, log := make(chan string), &journal{}
		run(t, db, log.logger(), tells("of-today", turns))
		await(turns, 3, "of-today")
		tomorrow := tells("of-tomorrow", turns)
		tomorrow.Every = 24 * time.Hour // so that the turn is the one that was queued
		run(t, storetest.Replica(t, db), log.logger(), tomorrow)
		await(turns, 1, "of-tomorrow")
		if strings.Contains(log.String(), "of-tomorrow") {
			t.Errorf("it is logged as a failure:\n%s", log)
		}
	})
}

// TestUpkeep_QuietQueue holds that the queue is heard from warnings on, also
// through the loggers that it derives.
func TestUpkeep_QuietQueue(t *testing.T) {
	t.Parallel()
	log := &journal{}
	root := slog.New(upkeep.Quiet(log.logger().Handler()))
	for name, logger := range map[string]*slog.Logger{
		"itself": root, "with attributes": root.With("a", 1), "in a group": root.WithGroup("g"), "both": root.With("a", 1).WithGroup("g").With("b", 2),
	} {
		logger.Info("whispers of " + name)
		logger.Warn("warns of "+name, "k", "v")
	}
	text := log.String()
	if strings.Contains(text, "whispers") || strings.Count(text, "warns of") != 4 || !strings.Contains(text, "a=1 g.b=2 g.k=v") {
		t.Error(text)
	}
}
