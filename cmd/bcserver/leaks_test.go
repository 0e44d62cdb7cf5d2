package main_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// TestLeaks_StreamsAndAbortedCallsLeaveNothing holds that goroutines and open
// files go back to what they were after 200 streams and 1,000 calls that were
// broken off in every phase.
func TestLeaks_StreamsAndAbortedCallsLeaveNothing(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		s := serve(t, storetest.EmptyURL(t, kind))
		ops := withLab(t, s, s.admin(t))
		abort(t, s, ops, 100) // opens what the server keeps open: connections to its database
		quiet := func() (goroutines, files float64) {
			s.client.CloseIdleConnections()
			pool := metric(t, s, "bc_db_connections_idle") + metric(t, s, "bc_db_connections_in_use")
			return metric(t, s, "go_goroutines"), metric(t, s, "process_open_fds") - pool
		}
		// Whoever leads the queue does more, and is elected some seconds after the
		// start: it is what has the chores done.
		db := connect(t, s.db)
		eventually(t, "the server leads the queue", func() bool { return number(t, db, "SELECT count(*) FROM river_job WHERE state = 'completed'") > 0 })
		var goroutines, files float64 // the most that there are while nobody calls
		looks := 0
		eventually(t, "the server was watched at rest", func() bool {
			nowGoroutines, nowFiles := quiet()
			goroutines, files = max(goroutines, nowGoroutines), max(files, nowFiles)
			looks++
			return looks == 50
		})

		for range 4 {
			var streams []*watcher
			for range 50 { // an identity may hold 64
				streams = append(streams, watch(t, s, ops))
			}
			for _, w := range streams {
				w.cancel()
			}
			for _, w := range streams {
				within(t, "the end of a stream", w.ended)
			}
			// The server hears of it a little later, and counts them until then.
			eventually(t, "the streams are gone", func() bool { now, _ := quiet(); return now < goroutines+50 })
		}
		abort(t, s, ops, 1000)
		var nowGoroutines, nowFiles float64
		defer func() {
			t.Logf("goroutines %v, then %v; open files %v, then %v", goroutines, nowGoroutines, files, nowFiles)
		}()
		eventually(t, "goroutines and open files are what they were", func() bool {
			nowGoroutines, nowFiles = quiet()
			return nowGoroutines <= goroutines+5 && nowFiles <= files+5
		})
		if strings.Contains(s.stderr.String(), "level=ERROR") {
			t.Error("callers who hung up are errors in the log")
		}
	})
}

// TestMetrics_CountConnectionsOnce holds that the gauges of the connections say
// what Postgres says.
func TestMetrics_CountConnectionsOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, storetest.EmptyURL(t, storetest.Postgres))
	ops := withLab(t, s, s.admin(t))
	race(t, []*server{s}, ops, "joinTokens.create", mint("all-at-once"))
	db := connect(t, s.db)
	eventually(t, "both agree", func() bool {
		ours := metric(t, s, "bc_db_connections_idle") + metric(t, s, "bc_db_connections_in_use")
		return int(ours) == number(t, db, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	})
}

// abort breaks calls off: in the head, in the body, and before the answer.
func abort(t testing.TB, s *server, key string, calls int) {
	t.Helper()
	whole := post("joinTokens.create", key, len(mintBody)) + mintBody
	for i := range calls {
		c, err := net.Dial("tcp", s.address())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(whole[:len(whole)*(1+i%4)/4])); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			c.(*net.TCPConn).SetLinger(0) // a reset, not an end
		}
		c.Close()
	}
}
