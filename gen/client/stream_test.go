package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func sse(body string) func(*http.Request) (*http.Response, error) {
	return answers(200, "text/event-stream", body)
}

func eventText(cursor string) string {
	return fmt.Sprintf("id: %[1]s\nevent: a.b\ndata: {\"specversion\":\"1.0\",\"id\":\"evt_1\",\"source\":\"/x\",\"type\":\"a.b\",\n"+
		"data: \"subject\":\"s\",\"time\":\"2026-03-01T09:00:00Z\",\"datacontenttype\":\"application/json\",\"tenantid\":\"acme\",\"cursor\":%[1]q,\"data\":{}}\n\n", cursor)
}

func TestWatchGoesOnAfterADrop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: steps{
			breaks(errReset),
			sse(":\n\n" + eventText("ev_1") + eventText("ev_2") + "id: ev_3\ndata: {\"cut"),
			breaks(errReset), problem(503, "UNAVAILABLE", "Retry-After", "20"), problem(500, "INTERNAL"), answers(502, "text/html", ""),
			sse(""), sse(":\n\n"), sse("id: ev_5\n\n"), // not one message, for more connections than a call has attempts
			sse(eventText("ev_6")),
			problem(401, "UNAUTHENTICATED"),
		}}
		c := scripted(t, s)
		after := "ev_0"
		var got []string
		var last error
		for event, err := range c.Events.Watch(t.Context(), EventsWatchInput{TenantID: "acme", After: &after}) {
			if last = err; err == nil {
				got = append(got, event.Cursor)
			}
		}
		if !slices.Equal(got, []string{"ev_1", "ev_2", "ev_6"}) || !IsCode(last, ErrorCodeUNAUTHENTICATED) {
			t.Errorf("%q %v", got, last)
		}
		var positions []string
		for i, r := range s.requests {
			positions = append(positions, r.Header.Get("Last-Event-ID"))
			if s.bodies[i] != `{"tenantId":"acme","after":"ev_0"}` || r.Header.Get("Accept") != "text/event-stream" {
				t.Errorf("request %d: %q %v", i, s.bodies[i], r.Header)
			}
		}
		if want := []string{"", "", "ev_2", "ev_2", "ev_2", "ev_2", "ev_2", "ev_2", "ev_2", "ev_5", "ev_6"}; !slices.Equal(positions, want) {
			t.Errorf("positions %q, want %q", positions, want)
		}
	})
}

func TestWatchEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := func(c *Client, ctx context.Context) (events int, last error) {
			for _, err := range c.Events.Watch(ctx, EventsWatchInput{}) {
				if last = err; err == nil {
					events++
				}
			}
			return events, last
		}
		var none *UnansweredError
		var refused *Error
		s := &script{steps: steps{breaks(errReset)}}
		if n, err := one(scripted(t, s), t.Context()); n != 0 || !errors.As(err, &none) || none.Attempts != 4 || len(s.requests) != 4 {
			t.Errorf("a server that never answers: %d %v", n, err)
		}
		s = &script{steps: steps{answers(200, "text/html", "<p>Log in")}}
		if n, err := one(scripted(t, s), t.Context()); n != 0 || !errors.As(err, &refused) || len(s.requests) != 1 {
			t.Errorf("a page: %d %v", n, err)
		}
		s = &script{steps: steps{sse(eventText("ev_1") + "data: {]\n\n")}}
		if n, err := one(scripted(t, s), t.Context()); n != 1 || !errors.As(err, &refused) {
			t.Errorf("broken data: %d %v", n, err)
		}
		s = &script{steps: steps{sse(eventText("ev_1") + "data:" + strings.Repeat("x", maxMessage))}}
		if n, err := one(scripted(t, s), t.Context()); n != 1 || !errors.As(err, &refused) || len(s.requests) != 1 {
			t.Errorf("a long line: %d %v", n, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s = &script{steps: steps{sse(eventText("ev_1")), breaks(errReset)}}
		if n, err := one(scripted(t, s), ctx); n != 1 || !errors.Is(err, context.DeadlineExceeded) || len(s.requests) > 60 {
			t.Errorf("a server that is gone: %d %v, %d attempts", n, err, len(s.requests))
		}
		for range scripted(t, &script{steps: steps{sse(eventText("ev_1") + eventText("ev_2"))}}).Events.Watch(t.Context(), EventsWatchInput{}) {
			break
		}
	})
}

// A connection on which nothing comes, not even comments, is given up; a slow
// reader is none of that.
func TestWatchNoticesSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		talks := func(pieces ...string) func(*http.Request) (*http.Response, error) {
			return func(r *http.Request) (*http.Response, error) {
				in, out := io.Pipe()
				go func() {
					for _, piece := range pieces {
						<-time.After(maxSilence - time.Second)
						if _, err := io.WriteString(out, piece); err != nil {
							return
						}
					}
					<-r.Context().Done() // as the transport does
					out.CloseWithError(r.Context().Err())
				}()
				response, err := sse("")(r)
				response.Body = in
				return response, err
			}
		}
		s := &script{steps: steps{talks(":\n\n", ":\n\n", eventText("ev_1")), talks(eventText("ev_2")), problem(404, "NOT_FOUND")}}
		start := time.Now()
		events := 0
		for _, err := range scripted(t, s).Events.Watch(t.Context(), EventsWatchInput{}) {
			if err != nil {
				if !IsCode(err, ErrorCodeNOTFOUND) {
					t.Error(err)
				}
				break
			}
			events++
			<-time.After(10 * maxSilence) // the reader's own business
		}
		if events != 2 || len(s.requests) != 3 {
			t.Errorf("%d events, %d connections after %v", events, len(s.requests), time.Since(start))
		}
	})
}

// The same over real connections, cut at places that fall into lines.
func TestWatchOverHTTP(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := eventText("ev_1") + eventText("ev_2")
		switch n := connections.Add(1); {
		case n == 2 && r.Header.Get("Last-Event-ID") == "ev_1":
			text = strings.ReplaceAll(eventText("ev_2"), "\n", "\r\n") + eventText("ev_3")
		case n > 2:
			http.Error(w, "gone", http.StatusGone)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		cut := len(eventText("ev_1")) + 30
		for i := 0; i < len(text); i += 7 {
			if connections.Load() == 1 && i > cut {
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, text[i:min(i+7, len(text))])
			w.(http.Flusher).Flush()
		}
	}))
	defer server.Close()
	c, err := New(server.URL, WithRetries(2, time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for event, err := range c.Events.Watch(t.Context(), EventsWatchInput{TenantID: "acme"}) {
		if err != nil {
			var refused *Error
			if !errors.As(err, &refused) || refused.Status != http.StatusGone {
				t.Error(err)
			}
			break
		}
		got = append(got, event.Cursor)
	}
	if !slices.Equal(got, []string{"ev_1", "ev_2", "ev_3"}) {
		t.Errorf("%q", got)
	}
}
