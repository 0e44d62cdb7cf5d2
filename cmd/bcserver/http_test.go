package main_test

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// lab starts a server on SQLite with the pool acme/lab, and returns a key of acme/ops.
func lab(t testing.TB, args ...string) (s *server, ops string) {
	t.Helper()
	s = serve(t, storetest.EmptyURL(t, storetest.SQLite), args...)
	return s, withLab(t, s, s.admin(t))
}

// TestHTTP_PathsHaveOneSpelling holds that whatever is not exactly the path of a
// method is NOT_FOUND, as a problem.
func TestHTTP_PathsHaveOneSpelling(t *testing.T) {
	t.Parallel()
	s, ops := lab(t)
	for _, target := range []string{
		"/", "/api", "/api/compute/joinTokens", "/api/compute/joinTokens/",
		"/api/compute/joinTokens/list/", "//api/compute/joinTokens/list", "/api//compute/joinTokens/list", "/api/compute/joinTokens//list",
		"/api/compute/joinTokens%2Flist", "/api/compute/joinTokens%2flist", "%2Fapi/compute/joinTokens/list", "/api/compute/joinTokens/%6cist", "/api%2Fcompute%2FjoinTokens%2Flist",
		"/api/compute/./joinTokens/list", "/api/compute/sites/../joinTokens/list", "/api/compute/sites/%2e%2e/joinTokens/list", "/../api/compute/joinTokens/list",
		"/API/compute/joinTokens/list", "/api/compute/jointokens/list", "/api/compute/joinTokens/list;v=1", "/api/compute/joinTokens/list%00", "/api/compute/joinTokens/list%20",
		"/healthz/", "//healthz", "/%68ealthz", "/openapi%2Ejson", "/metrics%2F..",
		"http://bc//api/compute/joinTokens/list", "http://bc/",
	} {
		c := dial(t, s)
		c.say("POST " + target + " HTTP/1.1\r\nHost: bc\r\nAuthorization: Bearer " + ops + "\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
		a := c.answer(t, "POST")
		if target[0] != '/' && a.status == 400 { // net/http refuses what is no request target
			continue
		}
		if a.refused(t, "NOT_FOUND"); t.Failed() {
			t.Fatalf("of %s", target)
		}
	}
}

// TestHTTP_AbsoluteTargetsAreServed holds that the form in which a proxy asks is
// the same call (RFC 9112 3.2.2), and that a query string changes nothing.
func TestHTTP_AbsoluteTargetsAreServed(t *testing.T) {
	t.Parallel()
	s, ops := lab(t)
	body := `{"tenantId": "acme", "poolId": "lab"}`
	for _, target := range []string{"http://bc.example.org/api/compute/joinTokens/list", "https://user:x@elsewhere:1/api/compute/joinTokens/list", "/api/compute/joinTokens/list?limit=zero&x=%zz"} {
		c := dial(t, s)
		c.say(strings.Replace(post("joinTokens.list", ops, len(body)), pathOf("joinTokens.list"), target, 1) + body)
		ok[object](t, c.answer(t, "POST"))
	}
}

func TestHTTP_OversizedHeadersAre431(t *testing.T) {
	t.Parallel()
	s, ops := lab(t)
	for name, lines := range map[string]string{
		"one":  "X-Big: " + strings.Repeat("x", 64<<10) + "\r\n",
		"many": strings.Repeat("X-Many: x\r\n", 8<<10),
		"path": "",
	} {
		c := dial(t, s)
		head := post("joinTokens.list", ops, 2)
		if name == "path" {
			head = strings.Replace(head, "/api/", "/"+strings.Repeat("a", 64<<10)+"/", 1)
		}
		c.say(strings.TrimSuffix(head, "\r\n") + lines + "\r\n{}")
		if a := c.answer(t, "POST"); a.status != 431 {
			t.Errorf("%s: status %d, want 431", name, a.status)
		}
		c.closed(t)
	}
	ok[object](t, s.call(t, ops, "joinTokens.list", object{"tenantId": "acme", "poolId": "lab"}))
}

// TestHTTP_BodyOf64KiBIsTheLargest holds the limit of a body, whether its length
// is told before or not, and that what comes too much is not read.
func TestHTTP_BodyOf64KiBIsTheLargest(t *testing.T) {
	t.Parallel()
	s, ops := lab(t)
	const limit = 64 << 10
	padded := func(size int) string {
		body := `{"tenantId": "acme", "poolId": "lab"}`
		return body[:len(body)-1] + strings.Repeat(" ", size-len(body)) + "}"
	}
	chunked := func(body string) string {
		head := strings.Replace(post("joinTokens.list", ops, 0), "Content-Length: 0", "Transfer-Encoding: chunked", 1)
		for len(body) > 0 {
			n := min(len(body), 1000)
			head += strconv.FormatInt(int64(n), 16) + "\r\n" + body[:n] + "\r\n"
			body = body[n:]
		}
		return head + "0\r\n\r\n"
	}
	for name, c := range map[string]struct {
		text string
		fits bool
	}{
		"all that fits":         {post("joinTokens.list", ops, limit) + padded(limit), true},
		"a byte more":           {post("joinTokens.list", ops, limit+1) + padded(limit+1), false},
		"megabytes":             {post("joinTokens.list", ops, 8<<20) + padded(8<<20), false},
		"terabytes, only told":  {post("joinTokens.list", ops, 8<<40), false},
		"all that fits, chunks": {chunked(padded(limit)), true},
		"a byte more, chunks":   {chunked(padded(limit + 1)), false},
		"megabytes, chunks":     {chunked(padded(8 << 20)), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, s)
			go conn.say(c.text) // the server may answer before it has read all
			if a := conn.answer(t, "POST"); c.fits {
				ok[object](t, a)
			} else {
				a.refused(t, "PAYLOAD_TOO_LARGE")
			}
		})
	}
	t.Run("it is not asked for", func(t *testing.T) {
		t.Parallel()
		conn := dial(t, s)
		conn.say(post("joinTokens.list", ops, limit+1, "Expect: 100-continue"))
		conn.answer(t, "POST").refused(t, "PAYLOAD_TOO_LARGE")
	})
}

// TestHTTP_GarbageHurtsNobody holds that what is no request is answered with 400
// or not at all, after what came before it was answered.
func TestHTTP_GarbageHurtsNobody(t *testing.T) {
	t.Parallel()
	s, ops := lab(t)
	body := `{"tenantId": "acme", "poolId": "lab"}`
	call := post("joinTokens.list", ops, len(body)) + body
	for _, garbage := range []string{
		"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03 TLS on a plain port\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET /healthz\r\n\r\n",
		"GET /healthz HTTP/9.9\r\nHost: bc\r\n\r\n",
		"GET /healthz HTTP/1.1\r\n\r\n",
		"GET /healthz HTTP/1.1\r\nHost: bc\r\nHost: other\r\n\r\n",
		"GET /healthz HTTP/1.1\r\nHost: bc\r\n : x\r\n\r\n",
		"GET /%zz HTTP/1.1\r\nHost: bc\r\n\r\n",
		strings.Replace(post("joinTokens.list", ops, 2), "Content-Length: 2", "Content-Length: 2\r\nContent-Length: 3", 1) + "{}",
		strings.Replace(post("joinTokens.list", ops, 2), "Content-Length: 2", "Content-Length: -2", 1) + "{}",
		strings.Replace(post("joinTokens.list", ops, 2), "Content-Length: 2", "Transfer-Encoding: gzip", 1) + "{}",
		"\x00\xff\x00\xff\r\n\r\n",
	} {
		c := dial(t, s)
		c.say(call + call + garbage)
		for range 2 {
			ok[object](t, c.answer(t, "POST"))
		}
		if a := c.answer(t, "GET"); a.status < 400 || a.status > 599 || strings.Contains(string(a.body), "joinTokens") {
			t.Errorf("%q is answered with %d %q", garbage, a.status, a.body)
		}
		c.closed(t)
	}
	if log := s.stderr.String(); strings.Contains(log, "panic") {
		t.Errorf("the server panicked: %s", tail(log, 20))
	}
}

// TestHTTP_SmugglingIsNotPossible holds that a chunked body with a length beside
// it is one call, and not two.
func TestHTTP_SmugglingIsNotPossible(t *testing.T) {
	t.Parallel()
	s, ops := lab(t)
	c := dial(t, s)
	c.say(post("joinTokens.list", ops, 4, "Transfer-Encoding: chunked") + "0\r\n\r\n")
	a := c.answer(t, "POST")
	if a.status != 400 {
		t.Errorf("status %d, want 400: %s", a.status, a.body)
	}
}

func TestHTTP_1_0IsServed(t *testing.T) {
	t.Parallel()
	s, ops := lab(t)
	body := `{"tenantId": "acme", "poolId": "lab"}`
	c := dial(t, s)
	c.say(strings.Replace(post("joinTokens.list", ops, len(body)), "HTTP/1.1", "HTTP/1.0", 1) + body)
	ok[object](t, c.answer(t, "POST"))
	c.closed(t)
	c = dial(t, s)
	c.say("GET /readyz HTTP/1.0\r\n\r\n")
	if a := c.answer(t, "GET"); a.status != 200 {
		t.Errorf("/readyz answers %d", a.status)
	}
	c.closed(t)
}

// TestHTTP_SlowHeadersAreCutOff holds that a caller has ten seconds for the head
// of a call, however regularly it sends a byte.
func TestHTTP_SlowHeadersAreCutOff(t *testing.T) {
	t.Parallel()
	s, ops := lab(t)
	began := time.Now()
	c := dial(t, s)
	if err := c.SetDeadline(began.Add(15 * time.Second)); err != nil {
		t.Fatal(err)
	}
	c.say("POST " + pathOf("joinTokens.list") + " HTTP/1.1\r\nHost: bc\r\nX-Slow: ")
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				c.say("x")
			case <-stop:
				return
			}
		}
	}()
	c.closed(t)
	if took := time.Since(began); took < 5*time.Second || took > 12*time.Second {
		t.Errorf("the connection was cut off after %v", took)
	}
	ok[object](t, s.call(t, ops, "joinTokens.list", object{"tenantId": "acme", "poolId": "lab"}))
}

// TestHTTP_IdleConnectionsHurtNobody holds that callers who connect and say
// nothing, or half a line, do not keep others from being served.
func TestHTTP_IdleConnectionsHurtNobody(t *testing.T) {
	t.Parallel()
	s, ops := lab(t)
	for i := range 100 {
		c := dial(t, s)
		switch i % 3 {
		case 1:
			c.say("POST /api")
		case 2:
			c.say("GET /healthz HTTP/1.1\r\nHost: bc\r\n\r\n")
			c.answer(t, "GET")
		}
	}
	for i := range 20 {
		fresh, err := net.Dial("tcp", s.address())
		if err != nil {
			t.Fatal(err)
		}
		fresh.Close()
		ok[minted](t, s.call(t, ops, "joinTokens.create", mint(fmt.Sprint("idle-", i))))
	}
}
