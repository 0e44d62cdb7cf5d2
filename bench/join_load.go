package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	joinClients  = 16
	joinPatience = 30 * time.Second // for one join, with a server that hangs
)

// A prepare makes the request of machine i: URL, headers and body.
type prepare func(i int) (*http.Request, error)

// A target is a server that certifies machines over TLS.
type target struct {
	*program
	tls    *tls.Config
	status int // of a request that was certified
}

// newTarget is for a server whose certificate one of the roots stands behind. Of
// TLS 1.3 the client takes what Go takes; it never resumes a session.
func newTarget(p *program, roots *x509.CertPool, status int) *target {
	return &target{p, &tls.Config{
		RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13,
		NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true,
	}, status}
}

// made makes n requests and writes them out, so that the clock sees none of it.
// Every one closes its connection.
func made(n int, next prepare) ([][]byte, error) {
	requests := make([][]byte, n)
	var last atomic.Int64
	return requests, together(runtime.GOMAXPROCS(0), func() error {
		for {
			i := int(last.Add(1)) - 1
			if i >= n {
				return nil
			}
			request, err := next(i)
			if err != nil {
				return err
			}
			request.Close = true
			var text bytes.Buffer
			if err := request.Write(&text); err != nil {
				return err
			}
			requests[i] = text.Bytes()
		}
	})
}

// postJSON is a POST of a value.
func postJSON(url string, value any) (*http.Request, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	return request, nil
}

// newCSR is a request in PEM for a fresh P-256 key, which nobody needs afterwards.
func newCSR(name string) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
	}, key)
	if err != nil {
		return "", err
	}
	return string(pemOf("CERTIFICATE REQUEST", der)), nil
}

// send makes one request on a connection of its own. Any other answer than the
// expected one is an error.
func (t *target) send(request []byte, status int, answers *bufio.Reader) error {
	socket, err := net.Dial("tcp", t.address)
	if err != nil {
		return err
	}
	connection := tls.Client(socket, t.tls)
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(joinPatience)); err != nil {
		return err
	}
	if _, err := connection.Write(request); err != nil {
		return err
	}
	answers.Reset(connection)
	answer, err := http.ReadResponse(answers, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != status {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
		return fmt.Errorf("%d instead of %d: %s", answer.StatusCode, status, text)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

// ask makes one request that was not prepared.
func (t *target) ask(request *http.Request, status int) error {
	var text bytes.Buffer
	if err := request.Write(&text); err != nil {
		return err
	}
	return t.send(text.Bytes(), status, bufio.NewReader(nil))
}

// load sends the requests with all clients, each of which waits for its answer.
func (t *target) load(ctx context.Context, requests [][]byte) (load, error) {
	var last atomic.Int64
	return t.timed(requests, func(took []time.Duration) error {
		return together(joinClients, func() error {
			answers := bufio.NewReader(nil)
			for {
				i := int(last.Add(1)) - 1
				if i >= len(requests) || ctx.Err() != nil {
					return ctx.Err()
				}
				began := time.Now()
				if err := t.send(requests[i], t.status, answers); err != nil {
					last.Store(int64(len(requests))) // the others need not go on
					return err
				}
				took[i] = time.Since(began)
			}
		})
	})
}

// steady sends so many requests a second, whether or not the earlier ones are
// answered, and counts from when each was due.
func (t *target) steady(ctx context.Context, requests [][]byte, perSecond int) (load, error) {
	return t.timed(requests, func(took []time.Duration) error {
		began := time.Now()
		var next sync.Mutex
		i := 0
		// More than ever wait at a time; the mutex hands out the next that is due.
		return together(joinClients*4, func() error {
			answers := bufio.NewReader(nil)
			for {
				next.Lock()
				mine := i
				i++
				due := began.Add(time.Duration(mine) * time.Second / time.Duration(perSecond))
				if mine < len(requests) {
					time.Sleep(time.Until(due))
				}
				next.Unlock()
				if mine >= len(requests) || ctx.Err() != nil {
					return ctx.Err()
				}
				if err := t.send(requests[mine], t.status, answers); err != nil {
					return err
				}
				took[mine] = time.Since(due)
			}
		})
	})
}

// timed says how a server did while it got requests; run fills in how long each took.
func (t *target) timed(requests [][]byte, run func(took []time.Duration) error) (load, error) {
	server, err := t.worked()
	if err != nil {
		return load{}, err
	}
	took := make([]time.Duration, len(requests))
	caller, began := ownWork(), time.Now()
	if err := run(took); err != nil {
		return load{}, err
	}
	spent := time.Since(began)
	caller = ownWork() - caller
	before := server
	if server, err = t.worked(); err != nil {
		return load{}, err
	}
	calls := time.Duration(len(took))
	slices.Sort(took)
	return load{float64(calls) / spent.Seconds(), took[calls/2], took[calls*99/100], (server - before) / calls, caller / calls}, nil
}
