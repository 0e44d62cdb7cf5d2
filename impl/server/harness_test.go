package server_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/seal"
	"github.com/bettercompute/bettercompute/impl/server"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// A running server, on a real port and a database of its own.
type running struct {
	kind   storetest.Kind
	dbURL  string
	data   string    // the server's folder
	url    string    // of the server
	admin  string    // the key of platform/admin
	db     *store.DB // on the same database, as another process would have it
	clock  *storetest.Clock
	server *server.Server
	client *http.Client
	log    *evidenceFile
	told   *evidenceFile // answers without the secrets that they were meant to hold
	reload chan os.Signal

	cancel context.CancelFunc
	ended  chan struct{} // closed when Run has returned, with
	ran    error
	once   sync.Once
}

var theSealKeys = sync.OnceValues(func() (seal.Keys, error) {
	text := seal.NewKeyText()
	left.secret("seal." + strings.TrimSpace(text)) // in the form of the others
	return seal.ParseKeys(text)
})

// sealKeys are those of every server of this package.
func sealKeys(t testing.TB) seal.Keys {
	t.Helper()
	keys, err := theSealKeys()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// A setup is what a test may change before a server is made, and before it runs.
type setup struct {
	config server.Config
	clock  *storetest.Clock
	adjust func(*server.Server)
}

// each runs fn on a server of its own on each database, as parallel subtests.
func each(t *testing.T, fn func(t *testing.T, s *running), changes ...func(*setup)) {
	t.Helper()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		t.Helper()
		fn(t, start(t, kind, changes...))
	})
}

// start makes a database and runs a server on it until the test ends.
func start(t testing.TB, kind storetest.Kind, changes ...func(*setup)) *running {
	t.Helper()
	s := &running{kind: kind, dbURL: storetest.URL(t, kind), clock: &storetest.Clock{}}
	s.db = storetest.Open(t, store.Config{URL: s.dbURL, Now: s.clock.Now})
	t.Cleanup(func() { s.dump(t) }) // after the server, before the database goes
	s.run(t, changes...)
	key, err := os.ReadFile(filepath.Join(s.data, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	s.admin = strings.TrimSpace(string(key))
	left.secret(s.admin)
	if keys, err := s.caKeys(t); err == nil { // or else they are sealed with another key
		for _, key := range keys {
			left.privateKey(key)
		}
	}
	return s
}

// replica runs another server on the database of s.
func (s *running) replica(t testing.TB, changes ...func(*setup)) *running {
	t.Helper()
	r := &running{kind: s.kind, dbURL: s.dbURL, clock: s.clock, db: s.db, admin: s.admin}
	r.run(t, changes...)
	return r
}

func (s *running) run(t testing.TB, changes ...func(*setup)) {
	t.Helper()
	s.reload = make(chan os.Signal)
	s.data, s.log, s.told = t.TempDir(), left.open(t, "log"), left.open(t, "told")
	listening := make(chan string, 1)
	setup := setup{clock: s.clock, config: server.Config{
		Listen:   "127.0.0.1:0",
		URL:      s.dbURL,
		Data:     s.data,
		Log:      slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: store.LevelTrace})),
		Version:  "test",
		Now:      s.clock.Now,
		SealKeys: sealKeys(t),
		Reload:   s.reload,
		Ready:    func(url string) { listening <- url },
	}}
	for _, change := range changes {
		change(&setup)
	}
	made, err := server.New(t.Context(), setup.config)
	if err != nil {
		t.Fatal(err)
	}
	if setup.adjust != nil {
		setup.adjust(made)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.server, s.cancel, s.ended = made, cancel, make(chan struct{})
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}
	go func() {
		defer close(s.ended)
		s.ran = made.Run(ctx)
	}()
	t.Cleanup(func() {
		if err := s.stop(t); err != nil {
			t.Errorf("the server ended with %v", err)
		}
		s.log.close(t)
		s.told.close(t)
	})
	select {
	case s.url = <-listening:
	case <-s.ended:
		t.Fatalf("the server ended at once: %v", s.ran)
	}
}

// stop stops the server as a signal would and returns what Run returned.
func (s *running) stop(t testing.TB) error {
	t.Helper()
	s.once.Do(func() {
		select {
		case <-s.ended:
		default:
			s.get(t, "/metrics") // for the scan
		}
		s.cancel()
		<-s.ended
		s.client.CloseIdleConnections()
		s.ran = errors.Join(s.ran, s.server.Close())
	})
	return s.ran
}

// get fetches a path that is no method.
func (s *running) get(t testing.TB, path string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.do(t, request)
}

// do sends any request and keeps the answer for the scan.
func (s *running) do(t testing.TB, request *http.Request) answer {
	t.Helper()
	a, err := s.send(request)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (s *running) send(request *http.Request) (answer, error) { return s.sendBy(s.client, request) }

func (s *running) sendBy(client *http.Client, request *http.Request) (answer, error) {
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: response.StatusCode, header: response.Header, body: body}
	_, err = s.told.Write(a.withoutSecret())
	return a, errors.Join(err, response.Header.Write(s.told))
}

// within returns what comes from a channel, or fails when that takes too long.
func within[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	timer := time.NewTimer(30 * time.Second)
	defer timer.Stop()
	select {
	case v := <-from:
		return v
	case <-timer.C:
		t.Fatalf("still waiting for %s", what)
		panic("not reached")
	}
}
