package ctl

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/cli"
)

const (
	tokenA = `{"id":"jt_a","tenantId":"acme","poolId":"lab","role":"node","maxUses":2,"uses":0,"expect":{"mac":"a0:36:9f:12:34:56"},"pinned":true,"allowReclaim":false,"createdAt":"2026-03-01T09:00:00Z","createdBy":"acme/ops","expiresAt":"2026-03-01T10:00:00Z"}`
	tokenB = `{"id":"jt_bb","tenantId":"acme","poolId":"lab","role":"node","maxUses":10000,"uses":17,"pinned":false,"allowReclaim":true,"hosted":"kubernetes","createdAt":"2026-03-01T09:00:00Z","createdBy":"a\u001b[2J\n1e3","expiresAt":"2026-03-01T10:00:00Z","revokedAt":"2026-03-01T09:30:00Z"}`
	create = "join-tokens create --tenant-id acme --pool-id lab --ttl-seconds 3600"
	list   = "join-tokens list --tenant-id acme --pool-id lab"
)

func TestForms(t *testing.T) {
	t.Parallel()
	one := ok(`{"joinToken":` + tokenA + `,"token":"bcjt_jt_a.S3cret"}`)
	page := ok(`{"joinTokens":[` + tokenA + `,` + tokenB + `],"cursor":"jt_bb"}`)
	for _, c := range []struct {
		name, words string
		answer      answer
	}{
		{"create.table", create, one}, {"create.json", create + " -o json", one}, {"create.yaml", create + " -o yaml", one},
		{"list.table", list, page}, {"list.json", list + " -o json", page}, {"list.yaml", list + " -o yaml", page},
		{"empty.table", list, ok(`{"joinTokens":[]}`)},
	} {
		code, stdout, stderr := on(serve(t, c.answer), c.words)
		if code != 0 || stderr != "" {
			t.Errorf("%s: exit %d: %s", c.name, code, stderr)
		}
		golden(t, c.name, stdout)
	}
}

// Every command shows every column of a record that is not there as -, and the
// answer as it came in the other forms.
func TestEveryCommandShowsWhatComes(t *testing.T) {
	t.Parallel()
	for _, g := range cli.Commands {
		for _, m := range g.Methods {
			if m.Stream {
				continue
			}
			value := `{}`
			if m.Output.List {
				value = `[{}]`
			}
			s := serve(t, ok(`{"`+m.Output.Member+`":`+value+`,"`+secretOf(m)+`":"s"}`))
			args, _ := base(m, "")
			code, stdout, stderr := on(s, g.Name+" "+m.Name, args...)
			if code != 0 || stderr != "" || !strings.Contains(stdout, "-") {
				t.Errorf("%s %s: exit %d: %s%s", g.Name, m.Name, code, stdout, stderr)
			}
			for _, column := range m.Output.Columns {
				name := column.Path
				if m.Output.List {
					name = heading(name)
				}
				if (!m.Output.List || column.Row) && !strings.Contains(stdout, name) {
					t.Errorf("%s %s does not show %s:\n%s", g.Name, m.Name, column.Path, stdout)
				}
			}
		}
	}
}

func secretOf(m cli.Method) string {
	if m.Once == nil {
		return "more"
	}
	return m.Once.Member
}

// JT-24: the record is shown, and what to do is told exactly.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	s := serve(t, ok(`{"joinToken":`+tokenA+`}`))
	for _, format := range formats {
		code, stdout, stderr := on(s, create+" -o "+format)
		if code != 1 || !strings.Contains(stdout, "jt_a") || !strings.Contains(stderr, "the record jt_a exists") ||
			!strings.Contains(stderr, "\n  bcctl join-tokens revoke --tenant-id acme --pool-id lab --token-id jt_a\n") {
			t.Errorf("%s: exit %d: %s%s", format, code, stdout, stderr)
		}
	}
	keyFile := write(t, 0o600, "bck_ak_1.x")
	code, _, stderr := bench{}.run("api-keys", "create", "--tenant-id", "it's", "--identity", "ci", "--role", "pool-operator", "--server", s.URL, "--key-file", keyFile)
	want := `bcctl api-keys revoke --tenant-id 'it'\''s' --key-id '' --server ` + s.URL + " --key-file " + keyFile
	if code != 1 || !strings.Contains(stderr, want) {
		t.Errorf("exit %d: %s\nwant %s", code, stderr, want)
	}
	// the command that is told can be run
	_, _, stderr = on(s, create)
	words := strings.Fields(stderr[strings.Index(stderr, "bcctl join-tokens"):])
	if code, _, stderr := on(s, strings.Join(words[1:], " ")); code != 0 {
		t.Errorf("%q: %s", words, stderr)
	}
	if path, body, _ := s.last(); path != "POST /api/compute/joinTokens/revoke" || body != `{"tenantId":"acme","poolId":"lab","tokenId":"jt_a"}` {
		t.Errorf("%s %s", path, body)
	}
}

func TestAllPages(t *testing.T) {
	t.Parallel()
	whole := `{"joinTokens":[` + tokenA + `,` + tokenB + `]}`
	for _, format := range formats {
		pages := serve(t, ok(`{"joinTokens":[`+tokenA+`],"cursor":"jt_a"}`), ok(`{"joinTokens":[],"cursor":"jt_b"}`), ok(`{"joinTokens":[`+tokenB+`]}`))
		code, got, stderr := on(pages, list+" --all --limit 1 -o "+format)
		_, want, _ := on(serve(t, ok(whole)), list+" -o "+format)
		if format == formatTable {
			got, want = strings.Join(strings.Fields(got), " "), strings.Join(strings.Fields(want), " ")
		}
		if code != 0 || got != want {
			t.Errorf("%s: exit %d: %s\n%s\nwant\n%s", format, code, stderr, got, want)
		}
		if pages.bodies[1] != `{"tenantId":"acme","poolId":"lab","limit":1,"cursor":"jt_a"}` {
			t.Errorf("the second call sends %s", pages.bodies[1])
		}
		if code, got, _ := on(serve(t, ok(`{"joinTokens":[]}`)), list+" --all -o "+format); code != 0 || format != formatTable && !strings.Contains(got, "joinTokens") {
			t.Errorf("%s, nothing: exit %d: %q", format, code, got)
		}
	}
	if code, _, stderr := on(serve(t, ok(`{"joinTokens":[],"cursor":"jt_a"}`)), list+" --all"); code != 1 || !strings.Contains(stderr, "same cursor twice") {
		t.Errorf("a cursor that does not move: exit %d: %s", code, stderr)
	}
	if code, stdout, stderr := on(serve(t, ok(`{"joinTokens":[`+tokenA+`],"cursor":"jt_a"}`), problem(403, `{"code":"PERMISSION_DENIED"}`)), list+" --all"); code != 1 || !strings.Contains(stdout, "jt_a") || !strings.Contains(stderr, "PERMISSION_DENIED") {
		t.Errorf("a page that is refused: exit %d: %s%s", code, stdout, stderr)
	}
	events := serve(t, ok(`{"events":[{"id":"evt_1"}],"cursor":"ev_1"}`), ok(`{"events":[],"cursor":"ev_1"}`))
	if code, stdout, stderr := on(events, "events list --tenant-id a --all -o json"); code != 0 || !sameJSON(t, stdout, `{"events":[{"id":"evt_1"}],"cursor":"ev_1"}`) || events.bodies[1] != `{"tenantId":"a","after":"ev_1"}` {
		t.Errorf("events: exit %d: %s%s %q", code, stdout, stderr, events.bodies)
	}
}

func TestWatchForms(t *testing.T) {
	t.Parallel()
	stream := "id: ev_1\ndata: {\"id\":\"evt_1\",\ndata: \"type\":\"a.b\",\"data\":{\"x\":[1]}}\n\nid: ev_2\ndata: {\"id\":\"evt_22\",\"type\":\"a\"}\n\n"
	for format, want := range map[string]string{
		formatJSON:  `{"id":"evt_1","type":"a.b","data":{"x":[1]}}` + "\n" + `{"id":"evt_22","type":"a"}` + "\n",
		formatYAML:  "---\nid: evt_1\ntype: a.b\ndata:\n  x:\n    - 1\n---\nid: evt_22\ntype: a\n",
		formatTable: "ID  SOURCE  TYPE  SUBJECT  TIME  TENANTID  POOLID  CURSOR\nevt_1  -       a.b   -        -     -         -       -\nevt_22  -       a     -        -     -         -       -\n",
	} {
		s := serve(t, sse(stream), problem(401, `{"code":"UNAUTHENTICATED","detail":"revoked"}`))
		code, stdout, stderr := on(s, "events watch --tenant-id a -o "+format)
		if code != 1 || !strings.Contains(stderr, "UNAUTHENTICATED: revoked") || s.headers[1].Get("Last-Event-ID") != "ev_2" {
			t.Errorf("%s: exit %d: %s", format, code, stderr)
		}
		if format == formatTable {
			stdout, want = strings.Join(strings.Fields(stdout), " "), strings.Join(strings.Fields(want), " ")
		}
		if stdout != want {
			t.Errorf("%s: %q, want %q", format, stdout, want)
		}
	}
}

// An event is shown when it comes, and an interrupt is the end that was wanted.
func TestWatchUntilInterrupted(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "id: ev_1\ndata: {\"id\":\"evt_1\"}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	in, out := io.Pipe()
	done := make(chan int, 1)
	go func() {
		code, _, _ := bench{ctx: ctx, stdout: out}.run("events", "watch", "--tenant-id", "a", "-o", "json", "--server", server.URL)
		done <- code
	}()
	line := make([]byte, len(`{"id":"evt_1"}`)+1)
	if _, err := io.ReadFull(in, line); err != nil || string(line) != `{"id":"evt_1"}`+"\n" {
		t.Fatalf("%q %v", line, err)
	}
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("exit %d", code)
	}
}
