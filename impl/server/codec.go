package server

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"

	"github.com/oapi-codegen/runtime"

	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// strictInput is an input of gen/wire.
type strictInput interface {
	DecodeStrict(body string, mode strictjson.Mode) error
}

// A codec sends the inputs of gen/wire to their own decoders, and everything
// else to encoding/json. It is the one global that oapi-codegen leaves us.
type codec struct{ runtime.StdJSONCodec }

// NewCodec returns the codec that a server installs; it is exported for bench.
func NewCodec() runtime.JSONCodec { return codec{} }

var installCodec = sync.OnceFunc(func() { runtime.SetJSONCodec(NewCodec()) })

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// UnmarshalRead implements [runtime.StreamingJSONCodec].
func (codec) UnmarshalRead(r io.Reader, v any) error {
	in, strict := v.(strictInput)
	if !strict {
		return json.NewDecoder(r).Decode(v)
	}
	buffer := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer)
	buffer.Reset()
	if _, err := buffer.ReadFrom(r); err != nil {
		return err
	}
	return in.DecodeStrict(buffer.String(), strictjson.All)
}

// MarshalWrite implements [runtime.StreamingJSONCodec].
func (codec) MarshalWrite(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }
