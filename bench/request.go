package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/getkin/kin-openapi/openapi3filter"
	middleware "github.com/oapi-codegen/nethttp-middleware"
	"github.com/oapi-codegen/runtime"

	"github.com/bettercompute/bettercompute/bench/peers/strict"
	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/server"
)

// requestGoal: a joinTokens.create from the router to the last byte of a
// constant answer, with a recorder instead of a connection.
func requestGoal(ctx context.Context, _ *lab) ([]line, error) {
	sides, err := requestSides()
	if err != nil {
		return nil, err
	}
	took, err := compare(ctx, sides...)
	if err != nil {
		return nil, err
	}
	bounds := []bound{{}, atMost("1/2", 1.0/2), atMost("1/4", 1.0/4), information}
	var lines []line
	for i := 1; i < len(sides); i++ {
		l := compared(sides[i].name, nanoseconds, took[0].nanoseconds, took[i].nanoseconds, bounds[i])
		lines = append(lines, l.withNote("%.0f allocations against %.0f", took[0].allocations, took[i].allocations))
	}
	return lines, nil
}

func requestSides() ([]side, error) {
	document, _, err := kinDocument()
	if err != nil {
		return nil, err
	}
	checked := middleware.OapiRequestValidatorWithOptions(document, &middleware.Options{
		Options:              openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
		DoNotValidateServers: true,
	})
	nothing := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	return []side{
		{"ours", withOurCodec, serving(ourHandler())},
		{"oapi-codegen strict, no validation", nil, serving(strictHandler())},
		{"oapi-codegen strict behind kin-openapi", nil, serving(checked(strictHandler()))},
		{"an empty handler", nil, serving(nothing)},
	}, nil
}

// serving sends the request to a handler and looks at the status alone.
func serving(handler http.Handler) func() error {
	requests, body := newRequests(), []byte(createBody)
	return func() error {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, requests.with(body))
		if w.Code != http.StatusOK {
			return fmt.Errorf("%d %s", w.Code, w.Body)
		}
		return nil
	}
}

// withOurCodec installs the server's codec, which is global to the process, and
// takes it away again: the peers run on encoding/json, as they come.
func withOurCodec() (after func()) {
	runtime.SetJSONCodec(server.NewCodec())
	return func() { runtime.SetJSONCodec(nil) }
}

// ourHandler is the server without what needs a database: the generated router
// and strict server, with our decoders behind the codec.
func ourHandler() http.Handler {
	return api.Handler(api.NewStrictHandlerWithOptions(api.Groups{JoinTokens: constantTokens{}}, nil, api.StrictHTTPServerOptions{}))
}

var (
	tokenID     = "jt_0123456789abcdefghjkmnpqrstvwxyz0123456789abcdefghjk"
	tokenSecret = "bcjt_" + tokenID + ".0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklm"
	tokenMade   = time.Date(2026, 3, 1, 9, 0, 0, 123456000, time.UTC)
	tokenEnds   = tokenMade.Add(time.Hour)
)

// constantTokens answers every create alike.
type constantTokens struct{ api.JoinTokens }

func (constantTokens) Create(_ context.Context, in *wire.JoinTokensCreateInput) (*api.JoinTokensCreateOutput, error) {
	e := &in.Expect.Value
	return &api.JoinTokensCreateOutput{Token: &tokenSecret, JoinToken: api.JoinToken{
		ID: tokenID, TenantID: in.TenantID, PoolID: in.PoolID, Role: wire.TokenRoleNode, MaxUses: in.MaxUses,
		Expect: &api.JoinTokenExpect{
			ProductUUID: &e.ProductUUID.Value, Serial: &e.Serial.Value, MAC: &e.MAC.Value, GPUUUID: &e.GPUUUID.Value,
		},
		Pinned: true, AllowReclaim: in.AllowReclaim, Hosted: &in.Hosted.Value,
		CreatedAt: tokenMade, CreatedBy: "tenant-7.example/ops", ExpiresAt: tokenEnds,
	}}, nil
}

func strictHandler() http.Handler {
	return strict.Handler(strict.NewStrictHandler(strictTokens{}, nil))
}

// strictTokens is the same for the peer.
type strictTokens struct{}

func (strictTokens) JoinTokensCreate(_ context.Context, r strict.JoinTokensCreateRequestObject) (strict.JoinTokensCreateResponseObject, error) {
	in, e := r.Body, r.Body.Expect
	return strict.JoinTokensCreate200JSONResponse{Token: &tokenSecret, JoinToken: strict.JoinToken{
		ID: tokenID, TenantID: in.TenantID, PoolID: in.PoolID, Role: strict.TokenRoleNode, MaxUses: *in.MaxUses,
		Expect: &strict.JoinTokenExpect{
			ProductUUID: e.ProductUUID, Serial: e.Serial, Mac: e.Mac, GpuUUID: e.GpuUUID,
		},
		Pinned: true, AllowReclaim: *in.AllowReclaim, Hosted: in.Hosted,
		CreatedAt: tokenMade, CreatedBy: "tenant-7.example/ops", ExpiresAt: tokenEnds,
	}}, nil
}
