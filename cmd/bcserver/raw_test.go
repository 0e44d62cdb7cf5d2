package main_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A conn is a connection on which a test says what it likes.
type conn struct {
	net.Conn
	in *bufio.Reader
}

func dial(t testing.TB, s *server) *conn {
	t.Helper()
	c, err := net.Dial("tcp", s.address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &conn{c, bufio.NewReader(c)}
}

// say sends text as it is. The server may have closed the connection by now.
func (c *conn) say(text string) { _, _ = c.Write([]byte(text)) }

// answer reads one answer to a request with this HTTP method.
func (c *conn) answer(t testing.TB, method string) answer {
	t.Helper()
	response, err := http.ReadResponse(c.in, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	a, err := readAnswer(response)
	if err != nil {
		t.Fatalf("half an answer: %v", err)
	}
	return a
}

// closed checks that the server says nothing more and closes the connection.
func (c *conn) closed(t testing.TB) {
	t.Helper()
	if b, err := c.in.ReadByte(); err == nil {
		t.Errorf("the server goes on with %q", b)
	} else if timeout, is := err.(net.Error); is && timeout.Timeout() {
		t.Error("the connection is still open")
	}
}

// post is the head of a call with a body of some length, up to the blank line,
// with more header lines.
func post(method, key string, length int, lines ...string) string {
	return strings.Join(append([]string{
		"POST " + pathOf(method) + " HTTP/1.1", "Host: bc", "Authorization: Bearer " + key,
		"Content-Type: application/json", fmt.Sprintf("Content-Length: %d", length),
	}, append(lines, "\r\n")...), "\r\n")
}

// half sends a call of which half the body is missing, and returns once the
// server waits for the rest.
func half(t testing.TB, s *server, key, method, body string) (c *conn, rest string) {
	t.Helper()
	c = dial(t, s)
	c.say(post(method, key, len(body), "Expect: 100-continue"))
	if line, err := c.in.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("the server says %q, %v", line, err)
	}
	if line, err := c.in.ReadString('\n'); err != nil || line != "\r\n" {
		t.Fatalf("the server says %q, %v", line, err)
	}
	c.say(body[:len(body)/2])
	return c, body[len(body)/2:]
}
