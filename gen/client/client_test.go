package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

const secretKey = "bck_ak_0.abcdefghijklmnop"

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	for _, server := range []string{
		"", "localhost:8080", "ftp://host", "http://", "https:///path", "http://user:hunter2@host", "http://host?a=b", "http://host#f", "http://host?", "http://[::1", "://",
	} {
		_, err := New(server)
		if err == nil {
			t.Errorf("New(%q) accepts it", server)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("New(%q) tells the password: %v", server, err)
		}
	}
	for name, opt := range map[string]Option{
		"empty key":       WithKey(""),
		"key with a line": WithKey(secretKey + "\n"),
		"key with blanks": WithKey("Bearer x"),
		"no client":       WithHTTP(nil),
		"no attempts":     WithRetries(0, 0),
		"negative delay":  WithRetries(1, -1),
	} {
		if _, err := New("http://host", opt); err == nil {
			t.Errorf("%s is accepted", name)
		} else if strings.Contains(err.Error(), secretKey) {
			t.Errorf("%s: the error tells the key", name)
		}
	}
}

func TestRequestsCarryKeyNameAndPrefix(t *testing.T) {
	t.Parallel()
	var got atomic.Pointer[http.Request]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(r)
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		fmt.Fprint(w, siteBody)
	}))
	defer server.Close()
	for _, prefix := range []string{"", "/", "/control/plane", "/control/plane/"} {
		c, err := New(server.URL+prefix, WithKey(secretKey), WithUserAgent("test/1"))
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.Sites.Get(t.Context(), SitesGetInput{TenantID: "acme", SiteID: "berlin"})
		if err != nil {
			t.Fatal(err)
		}
		if out.Site.SiteID != "berlin" || out.Site.CreatedAt.Year() != 2026 {
			t.Errorf("got %+v", out.Site)
		}
		r := got.Load()
		if want := strings.TrimSuffix(prefix, "/") + "/api/compute/sites/get"; r.URL.Path != want || r.Method != http.MethodPost {
			t.Errorf("%s %s, want POST %s", r.Method, r.URL.Path, want)
		}
		for name, want := range map[string]string{
			"Authorization": "Bearer " + secretKey, "User-Agent": "test/1", "Content-Type": "application/json", "Accept": "application/json",
		} {
			if r.Header.Get(name) != want {
				t.Errorf("%s: %q, want %q", name, r.Header.Get(name), want)
			}
		}
	}
}

func TestKeyNeverPrints(t *testing.T) {
	t.Parallel()
	c, err := New("http://host", WithKey(secretKey))
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%v %+v %#v %v %+v %#v", c, c, c, *c, *c.calls, *c.streams)
	asJSON, _ := json.Marshal(c)
	if strings.Contains(text+string(asJSON), "abcdefghijklmnop") {
		t.Error("printing a client shows its key")
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				reached.Add(1)
			}
			target := other.URL
			if r.URL.Query().Has("same") {
				target = "/elsewhere"
			}
			http.Redirect(w, r, target, status)
		}))
		defer server.Close()
		// what the given client says of redirects is not used
		follow := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return nil }}
		c, err := New(server.URL, WithKey(secretKey), WithHTTP(follow))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Sites.Get(t.Context(), SitesGetInput{})
		var refused *Error
		if !asError(err, &refused) || refused.Status != status || !strings.Contains(refused.Detail, "redirect") {
			t.Errorf("%d: %v", status, err)
		}
		for _, err := range c.Events.Watch(t.Context(), EventsWatchInput{}) {
			if !asError(err, &refused) || refused.Status != status {
				t.Errorf("watch, %d: %v", status, err)
			}
		}
	}
	if reached.Load() != 0 {
		t.Errorf("%d redirects were followed", reached.Load())
	}
}

func TestCallKnowsItsMethods(t *testing.T) {
	t.Parallel()
	c := scripted(t, &script{steps: []func(*http.Request) (*http.Response, error){answers(200, "application/json", ` {"site": 1.0 } `)}})
	for _, id := range []string{"", "sites.destroy", "events.watch"} {
		if _, err := c.Call(t.Context(), id, []byte("{}")); err == nil {
			t.Errorf("Call(%q) is accepted", id)
		}
	}
	for _, err := range c.Stream(t.Context(), "sites.get", nil) {
		if err == nil {
			t.Error("a method that does not stream is accepted")
		}
	}
	answer, err := c.Call(t.Context(), "sites.get", []byte(`{}`))
	if err != nil || string(answer) != ` {"site": 1.0 } ` {
		t.Errorf("the answer is not passed on as it came: %q %v", answer, err)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	pageOf := func(cursor string, ids ...string) func(*http.Request) (*http.Response, error) {
		var list []string
		for _, id := range ids {
			list = append(list, strings.Replace(site, "berlin", id, 1))
		}
		return answers(200, "application/json", `{"sites":[`+strings.Join(list, ",")+`]`+cursor+`}`)
	}
	ids := func(c *Client, most int) (list []string, err error) {
		for item, err := range c.Sites.All(context.Background(), SitesListInput{TenantID: "acme"}) {
			if err != nil {
				return list, err
			}
			if list = append(list, item.SiteID); len(list) == most {
				break
			}
		}
		return list, nil
	}
	type steps = []func(*http.Request) (*http.Response, error)
	s := &script{steps: steps{pageOf(`,"cursor":"b"`, "a", "b"), pageOf(`,"cursor":"c"`), pageOf("", "c")}}
	c := scripted(t, s)
	if list, err := ids(c, 0); err != nil || fmt.Sprint(list) != "[a b c]" {
		t.Errorf("%v %v", list, err)
	}
	if s.bodies[0] != `{"tenantId":"acme"}` || s.bodies[1] != `{"tenantId":"acme","cursor":"b"}` || s.bodies[2] != `{"tenantId":"acme","cursor":"c"}` {
		t.Errorf("bodies %q", s.bodies)
	}
	s.requests, s.bodies = nil, nil
	if list, err := ids(c, 1); err != nil || fmt.Sprint(list) != "[a]" || len(s.bodies) != 1 {
		t.Errorf("a second pass that stops early: %v %v, %d calls", list, err, len(s.bodies))
	}
	if list, err := ids(scripted(t, &script{steps: steps{pageOf(`,"cursor":"b"`, "a", "b")}}), 0); err == nil || len(list) != 2 {
		t.Errorf("a cursor that does not move: %v %v", list, err)
	}
	if list, err := ids(scripted(t, &script{steps: steps{pageOf(`,"cursor":"a"`, "a"), problem(403, ErrorCodePERMISSIONDENIED)}}), 0); !IsCode(err, ErrorCodePERMISSIONDENIED) || len(list) != 1 {
		t.Errorf("a refused page: %v %v", list, err)
	}
}

func TestPagesOfEventsEndWithAnEmptyOne(t *testing.T) {
	t.Parallel()
	page := `{"events":[{"specversion":"1.0","id":"evt_1","source":"/x","type":"a.b","subject":"s","time":"2026-03-01T09:00:00Z","datacontenttype":"application/json","tenantid":"acme","cursor":"ev_7","data":{}}],"cursor":"ev_7"}`
	s := &script{steps: []func(*http.Request) (*http.Response, error){
		answers(200, "application/json", page), answers(200, "application/json", `{"events":[],"cursor":"ev_7"}`),
	}}
	n := 0
	for event, err := range scripted(t, s).Events.All(t.Context(), EventsListInput{TenantID: "acme"}) {
		if err != nil || event.Cursor != "ev_7" {
			t.Fatal(event, err)
		}
		n++
	}
	if n != 1 || s.bodies[1] != `{"tenantId":"acme","after":"ev_7"}` {
		t.Errorf("%d events, bodies %q", n, s.bodies)
	}
}
