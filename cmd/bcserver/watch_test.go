package main_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A watcher is an open stream of acme's events.
type watcher struct {
	events chan string // their types
	ended  chan error  // gets nil when the server ends the stream as it should
	cancel func()
}

// watch opens a stream, with events from now on.
func watch(t testing.TB, s *server, key string) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	body, err := json.Marshal(object{"tenantId": "acme"})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+pathOf("events.watch"), strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		text, _ := io.ReadAll(response.Body)
		t.Fatalf("status %d, %s: %s", response.StatusCode, response.Header.Get("Content-Type"), text)
	}
	w := &watcher{events: make(chan string, 1<<16), ended: make(chan error, 1), cancel: cancel}
	go func() {
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			if kind, found := strings.CutPrefix(lines.Text(), "event: "); found {
				w.events <- kind
			}
		}
		w.ended <- lines.Err()
	}()
	t.Cleanup(cancel)
	return w
}

// next waits for the next event and checks its type.
func (w *watcher) next(t testing.TB, kind string) {
	t.Helper()
	if got := within(t, "an event", w.events); got != kind {
		t.Fatalf("the event is %s, want %s", got, kind)
	}
}

// positioned waits until every event has a position, so that a stream that is
// opened then begins with what a test does next.
func positioned(t testing.TB, db *sql.DB) {
	t.Helper()
	eventually(t, "every event has a position", func() bool {
		return number(t, db, "SELECT count(*) FROM events WHERE position IS NULL") == 0
	})
}
