package client

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// messagesOf reads a stream to its end.
func messagesOf(in io.Reader) (list []string, r *messageReader, err error) {
	r = newMessageReader(in, "")
	for {
		data, err := r.next()
		if err != nil {
			return list, r, err
		}
		list = append(list, string(data))
	}
}

func TestMessageReader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, stream string
		want         []string
		id           string
	}{
		{"LF", "id: ev_1\ndata: a\n\nid: ev_2\ndata: b\n\n", []string{"a", "b"}, "ev_2"},
		{"CRLF", "id: ev_1\r\ndata: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}, "ev_1"},
		{"CR", "data: a\r\rdata: b\r\r", []string{"a", "b"}, ""},
		{"mixed ends", "data: a\r\n\ndata: b\n\r\ndata: c\r\n\r", []string{"a", "b", "c"}, ""},
		{"comments", ":\n\n: ping\n:\ndata: a\n:x\n\n", []string{"a"}, ""},
		{"many lines", "data: a\ndata:\ndata:  b\n\n", []string{"a\n\n b"}, ""},
		{"no blank after the colon", "data:a\n\ndata\n\n", []string{"a", ""}, ""},
		{"unknown fields", "event: x\nfoo: y\ndata: a\nbar\n\n", []string{"a"}, ""},
		{"byte order mark", "\ufeffdata: a\n\n", []string{"a"}, ""},
		{"mark in the middle", "data: a\n\n\ufeffdata: b\n\n", []string{"a"}, ""},
		{"an id without data", "data: a\n\nid: ev_9\n\n", []string{"a"}, "ev_9"},
		{"cut off", "id: ev_1\ndata: a\n\nid: ev_2\ndata: b\n", []string{"a"}, "ev_1"},
		{"cut off in a line", "data: a\n\ndata: b", []string{"a"}, ""},
		{"an id that is no header", "id: ev_1\ndata: a\n\nid: a\x00b\ndata: b\n\nid: \u00e9\n\n", []string{"a", "b"}, "ev_1"},
		{"an empty id", "id: ev_1\ndata: a\n\nid\n\n", []string{"a"}, ""},
		{"nothing", "", nil, ""},
	} {
		for name, in := range map[string]io.Reader{
			"whole": strings.NewReader(c.stream), "bytes": iotest.OneByteReader(strings.NewReader(c.stream)), "halves": iotest.HalfReader(strings.NewReader(c.stream)),
		} {
			got, r, err := messagesOf(in)
			if !slices.Equal(got, c.want) || r.id != c.id || err != io.EOF {
				t.Errorf("%s, %s: %q id %q %v, want %q id %q", c.name, name, got, r.id, err, c.want, c.id)
			}
		}
	}
}

// A message is given out with its last byte, even where an LF may follow a CR.
func TestMessageReaderDoesNotWaitForMore(t *testing.T) {
	t.Parallel()
	for _, stream := range []string{"data: a\r\r", "data: a\n\n", "data: a\r\n\r\n"} {
		in, out := io.Pipe()
		go func() { _, _ = io.WriteString(out, stream) }()
		if data, err := newMessageReader(in, "").next(); string(data) != "a" || err != nil {
			t.Errorf("%q: %q %v", stream, data, err)
		}
		in.Close()
	}
}

func TestMessageReaderLimits(t *testing.T) {
	t.Parallel()
	most := strings.Repeat("x", maxMessage-len("data:"))
	got, _, err := messagesOf(strings.NewReader("data:" + most + "\n\n"))
	if err != io.EOF || len(got) != 1 || got[0] != most {
		t.Errorf("the longest line: %d messages, %v", len(got), err)
	}
	for name, stream := range map[string]string{
		"a long line":    "data:" + most + "x\n\n",
		"a long comment": ":" + strings.Repeat("x", maxMessage),
		"many lines":     strings.Repeat("data: "+strings.Repeat("y", 1000)+"\n", 1100),
	} {
		var refused *Error
		if _, _, err := messagesOf(strings.NewReader(stream)); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, r, _ := messagesOf(strings.NewReader("retry: 1500\nretry: -1\nretry: 1e3\nretry:99999999999999999999\n\n"))
	if r.retry != 1500*time.Millisecond {
		t.Errorf("retry %v", r.retry)
	}
}

// FuzzMessageReader holds the reader against the standard's rules applied to
// the whole text, however it is cut into pieces.
func FuzzMessageReader(f *testing.F) {
	for _, stream := range []string{"data: a\n\n", "id: 1\r\ndata: a\r\ndata: b\r\n\r\n", ":\n\n\ufeff", "data\r\rdata\n\n", "\ufeffid\n\nretry: 5\n"} {
		f.Add([]byte(stream))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		if len(stream) > maxMessage/2 {
			return
		}
		want, wantID := plainMessages(string(stream))
		for _, in := range []io.Reader{bytes.NewReader(stream), iotest.OneByteReader(bytes.NewReader(stream))} {
			got, r, err := messagesOf(in)
			if err != io.EOF || !slices.Equal(got, want) || r.id != wantID {
				t.Fatalf("%q: %q id %q %v, want %q id %q", stream, got, r.id, err, want, wantID)
			}
		}
	})
}

func plainMessages(stream string) (list []string, last string) {
	stream = strings.TrimPrefix(stream, "\ufeff")
	stream = strings.ReplaceAll(strings.ReplaceAll(stream, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(stream, "\n")
	id, data, has := "", []string{}, false
	for _, line := range lines[:len(lines)-1] {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && has:
			list = append(list, strings.Join(data, "\n"))
			fallthrough
		case line == "":
			last, data, has = id, nil, false
		case name == "data":
			data, has = append(data, value), true
		case name == "id" && strings.IndexFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) < 0:
			id = value
		}
	}
	return list, last
}
