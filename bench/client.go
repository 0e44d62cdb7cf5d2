package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
)

// A connection is one keep-alive connection to a bcserver. It does as little as
// a client can: it shares the cores with the server that is measured.
type connection struct {
	socket  net.Conn
	answers *bufio.Reader
	request []byte // written anew for each call
	host    string
	key     string

	requestID string // sent along where it is not empty
}

func (p *program) dial() (*connection, error) {
	socket, err := net.Dial("tcp", p.address)
	if err != nil {
		return nil, err
	}
	return &connection{socket: socket, answers: bufio.NewReaderSize(socket, 64<<10), host: p.address, key: p.key}, nil
}

func (c *connection) close() { c.socket.Close() }

// send makes a call and returns the answer, of which the body is not read yet.
func (c *connection) send(path, body string) (*http.Response, error) {
	b := append(c.request[:0], "POST "...)
	b = append(b, path...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, c.host...)
	b = append(b, "\r\nContent-Type: application/json\r\nAuthorization: Bearer "...)
	b = append(b, c.key...)
	if c.requestID != "" {
		b = append(b, "\r\nX-Request-Id: "...)
		b = append(b, c.requestID...)
	}
	b = append(b, "\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(b, "\r\n\r\n"...)
	c.request = append(b, body...)
	if _, err := c.socket.Write(c.request); err != nil {
		return nil, err
	}
	return http.ReadResponse(c.answers, nil)
}

// post makes a call and returns the whole answer.
func (c *connection) post(path, body string) (status int, answer []byte, err error) {
	r, err := c.send(path, body)
	if err != nil {
		return 0, nil, err
	}
	defer r.Body.Close()
	answer, err = io.ReadAll(r.Body)
	return r.StatusCode, answer, err
}

// expect makes a call and throws the answer away, unless its status is another.
func (c *connection) expect(status int, path, body string) error {
	r, err := c.send(path, body)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if r.StatusCode != status {
		text, _ := io.ReadAll(io.LimitReader(r.Body, 1000))
		return fmt.Errorf("%s: %d instead of %d: %s", path, r.StatusCode, status, text)
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err
}
