package server_test

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/server"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// TestWatch_Messages holds the form of a message, on the wire, and the order.
func TestWatch_Messages(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		st := s.watch(t, ops, object{"tenantId": "acme", "poolId": "lab"})
		if st.header.Get("Cache-Control") != "no-store" || st.header.Get("X-Request-Id") == "" {
			t.Errorf("headers %v", st.header)
		}
		if at, want := st.begin(t), s.published(t, "acme"); at != fmt.Sprint("ev_", *want[len(want)-1].Position) {
			t.Errorf("it begins at %s", at)
		}
		var minted []string
		for range 20 {
			minted = append(minted, s.mint(t, ops, lab()).JoinToken.ID)
			s.mint(t, ops, lab().with(object{"poolId": "yard"})) // not asked for
		}
		for _, id := range minted {
			m := st.next(t)
			event := m.event(t)
			want := []string{"id: " + m.id + "\n", "event: security.join-token.created\n", "data: " + m.data + "\n"}
			if !slices.Equal(m.lines, want) {
				t.Errorf("a message of the lines %q", m.lines)
			}
			if event.Subject != id || event.Cursor != m.id || event.Poolid == nil || *event.Poolid != "lab" {
				t.Errorf("event %+v, want that of %s", event, id)
			}
		}
	})
}

// TestWatch_WhereItBegins holds that a stream begins with what happens next,
// after `after` where that is given, and after Last-Event-ID before all.
func TestWatch_WhereItBegins(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		for range 4 {
			s.mint(t, ops, lab())
		}
		body := object{"tenantId": "acme", "types": []string{"security.join-token.created"}}
		all := s.listed(t, ops, 100, body)
		begins := func(after any, lastEventID string) (at, first string) {
			t.Helper()
			request := s.request(t, ops, "events.watch", body.with(object{"after": after}))
			if lastEventID != "" {
				request.Header.Set("Last-Event-ID", lastEventID)
			}
			st := s.open(t, request)
			defer st.close()
			return st.begin(t), st.next(t).id
		}
		for _, c := range []struct {
			after any
			last  string
			want  string
		}{
			{"ev_0", "", all[0].Cursor},
			{all[1].Cursor, "", all[2].Cursor},
			{nil, all[0].Cursor, all[1].Cursor},
			{"ev_0", all[2].Cursor, all[3].Cursor},
			{all[3].Cursor, "ev_0", all[0].Cursor},
		} {
			at, first := begins(c.after, c.last)
			if first != c.want {
				t.Errorf("after %v and Last-Event-ID %q it begins with %s, want %s", c.after, c.last, first, c.want)
			}
			if want := cmp.Or(c.last, fmt.Sprint(c.after)); at != want {
				t.Errorf("after %v and Last-Event-ID %q it says that it begins at %s", c.after, c.last, at)
			}
		}
		st := s.watch(t, ops, body)
		next := s.mint(t, ops, lab()).JoinToken.ID
		if got := st.next(t).event(t).Subject; got != next {
			t.Errorf("with neither it begins with %s, want %s", got, next)
		}
	})
}

// TestWatch_MalformedLastEventID holds that the header is held against the
// cursor's rules and named.
func TestWatch_MalformedLastEventID(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		send := func(values ...string) answer {
			request := s.request(t, s.admin, "events.watch", object{"tenantId": "acme"})
			request.Header["Last-Event-Id"] = values
			return s.do(t, request)
		}
		for _, id := range []string{"1", "ev_", "ev_x", "ev_-1", "ev_1234567890123456789", "EV_1", "ev_1,ev_2", "ev_%31", ""} {
			send(id).violates(t, "Last-Event-ID", "pattern")
		}
		send("ev_1", "ev_2").violates(t, "Last-Event-ID", "duplicate")
		// It is part of the input, which is held against its rules before anybody decides.
		request := s.request(t, s.key(t, "globex/ops", "tenant-admin"), "events.watch", object{"tenantId": "acme"})
		request.Header.Set("Last-Event-ID", "x")
		s.do(t, request).violates(t, "Last-Event-ID", "pattern")
		request.Header.Set("Last-Event-ID", "ev_1")
		s.do(t, request).refused(t, problem.NotFound)
	})
}

// TestWatch_ResumesWithoutGaps cuts a client off again and again while events
// are made: with Last-Event-ID it misses nothing and sees nothing twice.
func TestWatch_ResumesWithoutGaps(t *testing.T) {
	t.Parallel()
	const n = 60
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		other := s.replica(t) // a client may come back to another server
		ops := s.key(t, "acme/ops", "tenant-admin")
		made := make(chan []string, 1)
		go func() {
			var ids []string
			for i := range n {
				server := []*running{s, other}[i%2]
				a, err := server.send(server.request(t, ops, "joinTokens.create", lab()))
				if err != nil || a.status != http.StatusOK {
					t.Errorf("mint: %d %s (error: %v)", a.status, a.body, err)
					break
				}
				ids = append(ids, a.header.Get("X-Request-Id"))
			}
			made <- ids
		}()
		var seen []string
		last := "ev_0"
		for round := 0; len(seen) < n; round++ {
			server := []*running{s, other}[round%2]
			request := server.request(t, ops, "events.watch", object{"tenantId": "acme", "types": []string{"security.join-token.created"}})
			request.Header.Set("Last-Event-ID", last)
			st := server.open(t, request)
			for range min(1+round%5, n-len(seen)) {
				m := st.next(t)
				last = m.id
				seen = append(seen, m.event(t).Subject)
			}
			st.close()
		}
		if ids := within(t, "the minting", made); len(ids) != n {
			t.Fatalf("%d were minted", len(ids))
		}
		var want []string
		for _, e := range s.published(t, "acme", "security.join-token.created") {
			want = append(want, e.Subject)
		}
		if !slices.Equal(seen, want) || len(want) != n {
			t.Errorf("seen are %d of %d, in order: %v", len(seen), len(want), slices.Equal(seen, want))
		}
	})
}

// TestWatch_ResumesBeforeTheFirstEvent holds that a client that was cut off
// before anything happened knows where it was.
func TestWatch_ResumesBeforeTheFirstEvent(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		st := s.watch(t, s.admin, object{"tenantId": "acme"})
		at := st.begin(t)
		st.close()
		st.end(t)
		s.site(t, "acme", "meanwhile", false)
		s.position(t)
		request := s.request(t, s.admin, "events.watch", object{"tenantId": "acme"})
		request.Header.Set("Last-Event-ID", at)
		if got := s.open(t, request).next(t).event(t).Subject; got != "meanwhile" {
			t.Errorf("it goes on with %s", got)
		}
	})
}

// TestWatch_ASlowTransactionIsNotSkipped holds a change open while later ones
// are committed and delivered: it comes when it is committed. On SQLite there
// is one writer, so that the later ones wait, and all come.
func TestWatch_ASlowTransactionIsNotSkipped(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		st := s.watch(t, ops, object{"tenantId": "acme"})
		slow := storetest.Open(t, store.Config{URL: s.dbURL})
		written, commit, committed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			committed <- slow.Write(t.Context(), func(tx *store.Tx) error {
				_, _, err := tx.CreateSite(t.Context(), store.Site{TenantID: "acme", SiteID: "slow", CreatedBy: "acme/slow"})
				close(written)
				<-commit
				return err
			})
		}()
		within(t, "the slow change", written)
		var subjects []string
		if s.kind == storetest.Postgres {
			for i := range 3 {
				s.site(t, "acme", fmt.Sprint("quick", i), false)
				subjects = append(subjects, st.next(t).event(t).Subject)
			}
		}
		close(commit)
		if err := within(t, "the commit", committed); err != nil {
			t.Fatal(err)
		}
		subjects = append(subjects, st.next(t).event(t).Subject)
		s.site(t, "acme", "last", false)
		subjects = append(subjects, st.next(t).event(t).Subject)
		want := []string{"quick0", "quick1", "quick2", "slow", "last"}
		if s.kind == storetest.SQLite {
			want = want[3:]
		}
		if !slices.Equal(subjects, want) {
			t.Errorf("delivered are %v, want %v", subjects, want)
		}
		list := s.listed(t, ops, 2, object{"tenantId": "acme", "types": []string{"compute.site.created"}})
		if got := list[len(list)-1].Subject; len(list) != len(want)+1 || got != "last" {
			t.Errorf("%d are listed, the last is %s", len(list), got)
		}
	})
}

// TestWatch_OutlivesTimeouts holds that a stream goes on past the times that a
// request may take to be read and answered.
func TestWatch_OutlivesTimeouts(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		hasty := s.replica(t, func(c *setup) {
			c.adjust = func(made *server.Server) { made.SetTimeouts(timeout, timeout) }
		})
		ops := s.key(t, "acme/ops", "tenant-admin")
		st := hasty.watch(t, ops, object{"tenantId": "acme"})
		// Every delivery takes its time; there are as many as it takes.
		for began := time.Now(); time.Since(began) < 5*timeout/2; {
			id := s.mint(t, ops, lab()).JoinToken.ID
			if got := st.next(t).event(t).Subject; got != id {
				t.Fatalf("delivered is %s, want %s", got, id)
			}
		}
	})
}

// TestWatch_NotLoggedAsAFailure holds that a client that goes away is no error.
func TestWatch_NotLoggedAsAFailure(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		st := s.watch(t, s.admin, object{"tenantId": "acme", "after": "ev_0"})
		st.next(t)
		st.close()
		st.end(t)
		if err := s.stop(t); err != nil {
			t.Error(err)
		}
		log := s.log.text(t)
		if strings.Contains(log, `"level":"ERROR"`) || strings.Contains(log, `"level":"WARN"`) {
			t.Error("the log complains")
		}
		if !strings.Contains(log, `"method":"events.watch","principal":"platform/admin","status":200,"code":""`) {
			t.Error("the log does not have the call")
		}
	})
}
