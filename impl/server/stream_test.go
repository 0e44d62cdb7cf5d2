package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
)

// A stream is an open events.watch.
type stream struct {
	header   http.Header
	messages chan message // closed when the stream has ended
	err      error        // how it ended; nil for a whole last chunk
	cancel   context.CancelFunc
}

// A message of a stream; a comment has no name.
type message struct {
	id, name, data string
	lines          []string
}

// watch opens a stream for a caller. What has happened has become known by then.
func (s *running) watch(t testing.TB, key string, body object) *stream {
	t.Helper()
	s.position(t)
	return s.open(t, s.request(t, key, "events.watch", body))
}

// open sends a request that is answered with a stream and reads that until the
// test ends or the stream does.
func (s *running) open(t testing.TB, request *http.Request) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	response, err := s.client.Do(request.WithContext(ctx))
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		cancel()
		t.Fatalf("no stream: %d %s", response.StatusCode, body)
	}
	st := &stream{header: response.Header, messages: make(chan message, 1000), cancel: cancel}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer response.Body.Close()
		st.err = st.read(io.TeeReader(response.Body, s.told))
		close(st.messages)
	}()
	t.Cleanup(func() {
		cancel()
		<-read
	})
	return st
}

func (st *stream) read(body io.Reader) error {
	lines := bufio.NewReader(body)
	var m message
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" && len(m.lines) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		if line != "\n" {
			m.lines = append(m.lines, line)
			switch name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); name {
			case "id":
				m.id = value
			case "event":
				m.name = value
			case "data":
				m.data = value
			}
			continue
		}
		st.messages <- m
		m = message{}
	}
}

// begin is the first message, which tells the position and nothing else.
func (st *stream) begin(t testing.TB) string {
	t.Helper()
	m := within(t, "the first message", st.messages)
	if len(m.lines) != 1 || m.lines[0] != "id: "+m.id+"\n" || m.id == "" {
		t.Errorf("the first message has the lines %q", m.lines)
	}
	return m.id
}

// next is the next message with an event.
func (st *stream) next(t testing.TB) message {
	t.Helper()
	timer := time.NewTimer(30 * time.Second)
	defer timer.Stop()
	for {
		select {
		case m, ok := <-st.messages:
			if !ok {
				t.Fatalf("the stream has ended (error: %v)", st.err)
			}
			if m.name != "" {
				return m
			}
		case <-timer.C:
			t.Fatal("still waiting for a message")
		}
	}
}

// end waits for the end of the stream and returns the messages before it.
func (st *stream) end(t testing.TB) (rest []message) {
	t.Helper()
	timer := time.NewTimer(30 * time.Second)
	defer timer.Stop()
	for {
		select {
		case m, ok := <-st.messages:
			if !ok {
				return rest
			}
			rest = append(rest, m)
		case <-timer.C:
			t.Fatal("still waiting for the end")
		}
	}
}

// close leaves the stream, as a client that is cut off.
func (st *stream) close() { st.cancel() }

// event is the event in a message.
func (m message) event(t testing.TB) (e api.Event) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(m.data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil {
		t.Fatalf("%v in %s", err, m.data)
	}
	return e
}
