package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/server"
)

// often makes a server ask all the time whether streams may go on.
func often(c *setup) {
	c.adjust = func(made *server.Server) { made.SetRecheck(5 * time.Millisecond) }
}

// TestWatch_EndsWithTheServer holds that a stop ends streams first, whole and
// without waiting for its time to run out.
func TestWatch_EndsWithTheServer(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		var streams []*stream
		for range 10 {
			streams = append(streams, s.watch(t, s.admin, object{"tenantId": "acme", "after": "ev_0"}))
		}
		for _, st := range streams {
			st.next(t)
		}
		if err := s.stop(t); err != nil {
			t.Errorf("the server ended with %v", err)
		}
		for _, st := range streams {
			if st.end(t); st.err != nil {
				t.Errorf("a stream broke off: %v", st.err)
			}
		}
		if strings.Contains(s.log.text(t), "did not finish in time") {
			t.Error("the stop waited for the streams")
		}
	})
}

// TestWatch_EndsWithTheKey holds that a stream ends when its key is revoked,
// and others go on.
func TestWatch_EndsWithTheKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		gone, stays := s.apiKey(t, "acme/ops", "tenant-admin"), s.key(t, "acme/ops", "tenant-admin")
		body := object{"tenantId": "acme", "types": []string{"security.join-token.created"}}
		first, second := s.watch(t, *gone.Key, body), s.watch(t, stays, body)
		id := s.mint(t, stays, lab()).JoinToken.ID
		for _, st := range []*stream{first, second} {
			if got := st.next(t).event(t).Subject; got != id {
				t.Errorf("delivered is %s", got)
			}
		}
		s.revokeKey(t, "acme", gone.APIKey.ID)
		if rest := first.end(t); first.err != nil || len(rest) != 0 {
			t.Errorf("it ended with %v after %v", first.err, rest)
		}
		id = s.mint(t, stays, lab()).JoinToken.ID
		if got := second.next(t).event(t).Subject; got != id {
			t.Errorf("the other one delivers %s", got)
		}
	}, often)
}

// TestWatch_EndsWithTheRight holds that a stream ends when its key may no
// longer have it.
func TestWatch_EndsWithTheRight(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		made := s.apiKey(t, "acme/bot", "pool-auditor", "lab")
		st := s.watch(t, *made.Key, object{"tenantId": "acme", "poolId": "lab", "after": "ev_0"})
		st.next(t)
		s.exec(t, "UPDATE api_keys SET pool_id = 'yard' WHERE id = '"+made.APIKey.ID+"'") // no method does that yet
		if st.end(t); st.err != nil {
			t.Errorf("it ended with %v", st.err)
		}
		s.call(t, *made.Key, "events.watch", object{"tenantId": "acme", "poolId": "lab"}).refused(t, problem.PermissionDenied)
	}, often)
}

// TestWatch_SurvivesRechecks holds that being asked often ends no stream that
// may go on.
func TestWatch_SurvivesRechecks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		st := s.watch(t, s.admin, object{"tenantId": "acme"})
		for before := s.decisions(t); s.decisions(t) < before+20; {
		}
		s.site(t, "acme", "new", false)
		if got := st.next(t).event(t).Subject; got != "new" {
			t.Errorf("delivered is %s", got)
		}
	}, often)
}

// TestWatch_SixtyFourStreams holds how many streams an identity may hold on one
// server, by whatever key, and that one that ended makes room.
func TestWatch_SixtyFourStreams(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops, same := s.key(t, "acme/ops", "tenant-admin"), s.key(t, "acme/ops", "pool-auditor")
		body := object{"tenantId": "acme", "poolId": "lab"}
		var streams []*stream
		for i := range 64 {
			streams = append(streams, s.watch(t, []string{ops, same}[i%2], body))
		}
		for _, key := range []string{ops, same} {
			a := s.call(t, key, "events.watch", body)
			a.refused(t, problem.RateLimited)
			if after := a.header.Get("Retry-After"); after != "10" {
				t.Errorf("Retry-After is %q", after)
			}
		}
		// Others have their own.
		s.watch(t, s.key(t, "acme/eve", "tenant-admin"), body)
		s.watch(t, s.key(t, "globex/ops", "tenant-admin"), object{"tenantId": "globex"})
		s.replica(t).watch(t, ops, body)

		streams[17].close()
		streams[17].end(t)
		for deadline := time.Now().Add(30 * time.Second); ; {
			a := s.head(t, s.client, s.request(t, ops, "events.watch", body)) // the server has to notice first
			if a.status == http.StatusOK {
				break
			}
			if a.refused(t, problem.RateLimited); time.Now().After(deadline) {
				t.Fatal("a stream that ended makes no room")
			}
		}
	})
}
