package store_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// A member is a change that waits for others in a test of group commits.
type member struct {
	fn  func(*store.Tx) error
	ctx context.Context // nil: the test's
}

// grouped runs changes of which each waits for the one before, in their order,
// and returns their outcomes. The first has begun when the others arrive;
// meanwhile runs before it goes on, and after when a change has returned.
func grouped(t *testing.T, db *store.DB, members []member, meanwhile func(), after ...func(i int)) []error {
	t.Helper()
	ended := make([]chan error, len(members))
	begun, goOn := make(chan struct{}), make(chan struct{})
	for i, m := range members {
		ended[i] = make(chan error, 1)
		ctx := m.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		go func() {
			err := errors.New("panicked")
			defer func() {
				_ = recover()
				for _, look := range after {
					look(i)
				}
				ended[i] <- err
			}()
			err = db.Write(ctx, func(tx *store.Tx) error {
				if i == 0 {
					close(begun)
					<-goOn
				}
				return m.fn(tx)
			})
		}()
		if i == 0 {
			<-begun
		}
		for db.Waiting() < i {
			runtime.Gosched()
		}
	}
	meanwhile()
	close(goOn)
	outcomes := make([]error, len(members))
	for i := range members {
		outcomes[i] = <-ended[i]
	}
	return outcomes
}

func nothing() {}

// makesSite is a change that cannot fail.
func makesSite(t *testing.T, id string) func(*store.Tx) error {
	return func(tx *store.Tx) error { return createSite(t, tx, "acme", id) }
}

func commits(statements []string) (n int) {
	for _, s := range statements {
		if s == "COMMIT" {
			n++
		}
	}
	return n
}

func TestGroupCommit_WhoWaitsSharesACommit(t *testing.T) {
	t.Parallel()
	for changes, want := range map[int]int{1: 1, 2: 1, store.GroupLimit: 1, store.GroupLimit + 1: 2, 3 * store.GroupLimit: 3} {
		t.Run(fmt.Sprint(changes), func(t *testing.T) {
			t.Parallel()
			db, log := traced(t, storetest.SQLite)
			members := make([]member, changes)
			for i := range members {
				members[i].fn = makesSite(t, fmt.Sprintf("site%03d", i))
			}
			log.take()
			for i, err := range grouped(t, db, members, nothing) {
				if err != nil {
					t.Errorf("change %d: %v", i, err)
				}
			}
			if got := commits(log.take()); got != want {
				t.Errorf("%d commits, want %d", got, want)
			}
			if n := count(t, db, "sites"); n != changes {
				t.Errorf("%d sites, want %d", n, changes)
			}
		})
	}
}

// One that comes to nothing leaves nothing, whatever its place in the group,
// and the others do not notice.
func TestGroupCommit_OneFails_TheOthersAreWritten(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, fails := range map[string]struct {
		after func(*store.Tx) error
		is    func(error) bool
	}{
		"an error":                {func(*store.Tx) error { return broken }, func(err error) bool { return err == broken }},
		"a panic":                 {func(*store.Tx) error { panic("broken") }, func(err error) bool { return err.Error() == "panicked" }},
		"a goroutine that ends":   {func(*store.Tx) error { runtime.Goexit(); return nil }, func(err error) bool { return err.Error() == "panicked" }},
		"a statement":             {func(tx *store.Tx) error { return tx.Exec(t.Context(), "nonsense") }, func(err error) bool { return err != nil }},
		"a statement, overlooked": {func(tx *store.Tx) error { _ = tx.Exec(t.Context(), "nonsense"); return nil }, func(err error) bool { return err != nil }},
	} {
		for place := range 4 {
			t.Run(fmt.Sprintf("%s at %d", name, place), func(t *testing.T) {
				t.Parallel()
				db := storetest.Open(t, store.Config{URL: storetest.URL(t, storetest.SQLite)})
				members := make([]member, 4)
				for i := range members {
					members[i].fn = makesSite(t, fmt.Sprint("site", i))
				}
				members[place].fn = func(tx *store.Tx) error {
					must(t, createSite(t, tx, "acme", "gone"))
					return fails.after(tx)
				}
				for i, err := range grouped(t, db, members, nothing) {
					if i == place && (err == nil || !fails.is(err)) || i != place && err != nil {
						t.Errorf("change %d: %v", i, err)
					}
				}
				if n := count(t, db, "sites"); n != 3 {
					t.Errorf("%d sites, want 3", n)
				}
				if _, err := db.Site(t.Context(), "acme", "gone"); err == nil {
					t.Error("what failed was written")
				}
			})
		}
	}
}

// Where SQLite gives up the whole transaction, or cannot write it, nobody is
// told that their change was written.
func TestGroupCommit_TheGroupFails_NobodySucceeds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		statements []string
		behind     error // of the change after the one that breaks the group
	}{
		"rolled back by SQLite": {[]string{"INSERT OR ROLLBACK INTO event_position (id, last) VALUES (1, 1)"}, nil},
		"not to be committed": {[]string{
			"PRAGMA defer_foreign_keys = ON",
			`INSERT INTO nodes (id, tenant_id, pool_id, trust, claims, token_id, created_at, joined_at)
				VALUES ('nd', 'acme', 'nowhere', 'platform', '{}', 'jt', '2026-01-01', '2026-01-01')`,
		}, errors.New("any")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.Open(t, store.Config{URL: storetest.URL(t, storetest.SQLite)})
			members := []member{{fn: makesSite(t, "before1")}, {fn: makesSite(t, "before2")}, {fn: func(tx *store.Tx) error {
				for _, statement := range c.statements {
					if err := tx.Exec(t.Context(), statement); err != nil {
						return err
					}
				}
				return nil
			}}, {fn: makesSite(t, "behind")}}
			for i, err := range grouped(t, db, members, nothing) {
				if i < 3 && err == nil || i == 3 && (err == nil) != (c.behind == nil) {
					t.Errorf("change %d: %v", i, err)
				}
			}
			want := 0
			if c.behind == nil {
				want = 1
			}
			if n := count(t, db, "sites"); n != want {
				t.Errorf("%d sites, want %d", n, want)
			}
			write(t, db, makesSite(t, "later"))
		})
	}
}

// Who leaves the queue was never there, and nobody waits for them.
func TestGroupCommit_CancelledInTheQueue(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, store.Config{URL: storetest.URL(t, storetest.SQLite)})
	const changes = 8
	leaves := func(i int) bool { return i%3 == 1 || i == changes-1 }
	ctx, cancel := context.WithCancel(t.Context())
	members, want := make([]member, changes), 0
	for i := range members {
		members[i].fn = makesSite(t, fmt.Sprint("site", i))
		if leaves(i) {
			members[i].ctx = ctx
		} else {
			want++
		}
	}
	for i, err := range grouped(t, db, members, func() {
		cancel()
		for db.Waiting() > want-1 {
			runtime.Gosched()
		}
	}) {
		if errors.Is(err, context.Canceled) != leaves(i) || !leaves(i) && err != nil {
			t.Errorf("change %d: %v", i, err)
		}
	}
	if n := count(t, db, "sites"); n != want {
		t.Errorf("%d sites, want %d", n, want)
	}
}

// A caller that goes away in the middle of a statement breaks off nothing of
// what others have written.
func TestGroupCommit_CancelledInside_OnlyItsOwnIsUndone(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, store.Config{URL: storetest.URL(t, storetest.SQLite)})
	for round := range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		outcomes := grouped(t, db, []member{
			{fn: makesSite(t, fmt.Sprint("first", round))},
			{ctx: ctx, fn: func(tx *store.Tx) error {
				go cancel()
				return tx.Exec(ctx, "INSERT INTO leases (name, owner, until) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT 'lease' || i, 'x', '2026-01-01' FROM n")
			}},
			{fn: makesSite(t, fmt.Sprint("last", round))},
		}, nothing)
		if outcomes[0] != nil || outcomes[2] != nil {
			t.Fatalf("outcomes are %v", outcomes)
		}
		leases := count(t, db, "leases")
		if (outcomes[1] == nil) != (leases == 5000) || leases != 0 && leases != 5000 {
			t.Fatalf("outcome is %v, with %d rows", outcomes[1], leases)
		}
		if outcomes[1] == nil { // it ended before the call was given up
			write(t, db, func(tx *store.Tx) error { return tx.Exec(t.Context(), "DELETE FROM leases") })
		} else if !errors.Is(outcomes[1], context.Canceled) {
			t.Fatalf("outcome is %v", outcomes[1])
		}
		if n := count(t, db, "sites"); n != 2*(round+1) {
			t.Fatalf("%d sites after round %d", n, round)
		}
	}
}

// What a change writes is seen by those behind it in the group, and by nobody
// else before the commit.
func TestGroupCommit_SeenWithinTheGroup(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, store.Config{URL: storetest.URL(t, storetest.SQLite)})
	outcomes := grouped(t, db, []member{{fn: makesSite(t, "berlin")}, {fn: func(tx *store.Tx) error {
		if _, err := tx.Site(t.Context(), "acme", "berlin"); err != nil {
			return err
		}
		_, err := db.Site(t.Context(), "acme", "berlin")
		wantCode(t, err, problem.NotFound)
		return nil
	}}}, nothing)
	if err := errors.Join(outcomes...); err != nil {
		t.Error(err)
	}
}

// Who fails because of what is before it in the group finds that committed when
// it looks again.
func TestGroupCommit_FailsOverWhatIsBeforeIt_FindsItCommitted(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, store.Config{URL: storetest.URL(t, storetest.SQLite)})
	taken := errors.New("taken")
	fails := func(tx *store.Tx) error {
		if _, err := tx.Site(t.Context(), "acme", "berlin"); err == nil {
			return taken
		}
		return nil
	}
	members := []member{{fn: makesSite(t, "berlin")}, {fn: fails}, {fn: makesSite(t, "paris")}, {fn: fails}}
	for i, err := range grouped(t, db, members, nothing, func(int) {
		if _, err := db.Site(t.Context(), "acme", "berlin"); err != nil {
			t.Error(err)
		}
	}) {
		if (i%2 == 1) != (err == taken) {
			t.Errorf("change %d: %v", i, err)
		}
	}
}

func TestGroupCommit_EventsAndDecisionsOfEach(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, store.Config{URL: storetest.URL(t, storetest.SQLite)})
	members := make([]member, 10)
	for i := range members {
		members[i] = member{
			ctx: store.WithDecision(t.Context(), store.Decision{Principal: fmt.Sprint("acme/p", i), Action: "sites.create", Resource: "site"}),
			fn:  makesSite(t, fmt.Sprint("site", i)),
		}
	}
	if err := errors.Join(grouped(t, db, members, nothing)...); err != nil {
		t.Fatal(err)
	}
	decisions, _, err := db.Decisions(t.Context(), store.DecisionQuery{Limit: 100})
	must(t, err)
	positioned(t, db)
	var principals []string
	for _, d := range decisions {
		principals = append(principals, d.Principal)
	}
	if n := len(eventsOf(t, db, "acme")); n != 10 || len(decisions) != 10 {
		t.Errorf("%d events, decisions of %s", n, strings.Join(principals, ", "))
	}
}
