package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/go-faster/jx"

	"github.com/bettercompute/bettercompute/bench/peers/ogenapi"
	"github.com/bettercompute/bettercompute/gen"
)

const createPath = "/api/compute/joinTokens/create"

var errAccepted = errors.New("a body that is wrong was accepted")

// requests makes the same request over and over. What is fresh in each is what
// serving a request changes: the request itself and its body.
type requests struct {
	template *http.Request
}

func newRequests() requests {
	r := httptest.NewRequest(http.MethodPost, createPath, nil)
	r.Header.Set("Content-Type", "application/json")
	return requests{r}
}

func (rs requests) with(body []byte) *http.Request {
	r := *rs.template
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	return &r
}

// kinFilter is kin-openapi's request validation, with the route found beforehand.
type kinFilter struct {
	requests
	route  *routers.Route
	router routers.Router
}

func newKinFilter() (kinFilter, error) {
	document, router, err := kinDocument()
	if err != nil {
		return kinFilter{}, err
	}
	k := kinFilter{requests: newRequests(), router: router}
	k.route, _, err = router.FindRoute(k.with(nil))
	if err != nil {
		return kinFilter{}, fmt.Errorf("kin-openapi, with %s: %w", document.Info.Title, err)
	}
	return k, nil
}

// kinDocument is our document of OpenAPI 3.0: with 3.1, kin-openapi compiles
// the schema for every request, which would be no fair comparison.
func kinDocument() (*openapi3.T, routers.Router, error) {
	document, err := openapi3.NewLoader().LoadFromData(gen.OpenAPI30)
	if err != nil {
		return nil, nil, err
	}
	router, err := legacy.NewRouter(document)
	return document, router, err
}

func (k kinFilter) validate(body []byte) error {
	return openapi3filter.ValidateRequest(context.Background(), &openapi3filter.RequestValidationInput{
		Request: k.with(body),
		Route:   k.route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	})
}

// decodeOgen is the part of ogen that compares with ours: bytes in, a checked
// input out.
func decodeOgen(body []byte) error {
	var in ogenapi.JoinTokensCreateInput
	d := jx.GetDecoder()
	defer jx.PutDecoder(d)
	d.ResetBytes(body)
	if err := in.Decode(d); err != nil {
		return err
	}
	if err := d.Skip(); err != io.EOF {
		return errors.New("something follows the document")
	}
	return in.Validate()
}

// ogenRequests is all that ogen does with a request before the method.
type ogenRequests struct {
	requests
	server *ogenapi.Server
}

func newOgenRequests() (ogenRequests, error) {
	server, err := ogenapi.NewServer(nil)
	return ogenRequests{newRequests(), server}, err
}

func (o ogenRequests) decode(body []byte) error {
	_, err := ogenapi.DecodeJoinTokensCreate(o.server, o.with(body))
	return err
}

// handInput is what one would write without a generator.
type handInput struct {
	TenantID       string      `json:"tenantId"`
	PoolID         string      `json:"poolId"`
	MaxUses        *int64      `json:"maxUses"`
	TTLSeconds     int64       `json:"ttlSeconds"`
	Expect         *handExpect `json:"expect"`
	AllowReclaim   bool        `json:"allowReclaim"`
	Hosted         *string     `json:"hosted"`
	IdempotencyKey string      `json:"idempotencyKey"`
}

type handExpect struct {
	ProductUUID *string `json:"productUuid"`
	Serial      *string `json:"serial"`
	MAC         *string `json:"mac"`
	GPUUUID     *string `json:"gpuUuid"`
}

var (
	handTenant  = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)
	handPool    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`)
	handKey     = regexp.MustCompile(`^[A-Za-z0-9._~:/+=-]{1,128}$`)
	handProduct = regexp.MustCompile(`^[0-9A-Fa-f-]{8,64}$`)
	handSerial  = regexp.MustCompile(`^[A-Za-z0-9._:/+-]{1,128}$`)
	handMAC     = regexp.MustCompile(`^[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}$`)
	handGPU     = regexp.MustCompile(`^GPU-[0-9A-Fa-f-]{8,64}$`)
)

// decodeByHand is encoding/json, then a regexp for each text. It is less strict
// than ours: it takes duplicates, null and another case of a name.
func decodeByHand(body []byte) error {
	var in handInput
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the document")
	}
	if in.MaxUses == nil {
		in.MaxUses = new(int64(1))
	}
	texts := []struct {
		pattern *regexp.Regexp
		text    *string
	}{{handTenant, &in.TenantID}, {handPool, &in.PoolID}, {handKey, &in.IdempotencyKey}, {}, {}, {}, {}}
	if e := in.Expect; e != nil {
		texts[3].pattern, texts[3].text = handProduct, e.ProductUUID
		texts[4].pattern, texts[4].text = handSerial, e.Serial
		texts[5].pattern, texts[5].text = handMAC, e.MAC
		texts[6].pattern, texts[6].text = handGPU, e.GPUUUID
	}
	for _, t := range texts {
		if t.text != nil && !t.pattern.MatchString(*t.text) {
			return fmt.Errorf("must match %s", t.pattern)
		}
	}
	if *in.MaxUses < 1 || *in.MaxUses > 10000 || in.TTLSeconds < 60 || in.TTLSeconds > 86400 {
		return errors.New("a number is out of its range")
	}
	if in.Hosted != nil && *in.Hosted != "kubernetes" {
		return errors.New("hosted must be kubernetes")
	}
	return nil
}
