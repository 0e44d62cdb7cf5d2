package nodes_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"testing"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/nodes"
	"github.com/bettercompute/bettercompute/impl/store"
)

// chainOf reads certificates in PEM.
func chainOf(t testing.TB, text string) (chain []*x509.Certificate) {
	t.Helper()
	for rest := []byte(text); len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			t.Fatalf("not a chain: %s", text)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		must(t, err)
		chain = append(chain, certificate)
	}
	return chain
}

// as returns the context of a call with a certificate, as the pipeline makes it.
func (p *process) as(t testing.TB, a *api.Admission) context.Context {
	t.Helper()
	caller, err := p.Recognize(t.Context(), chainOf(t, a.Certificate), false)
	must(t, err)
	return nodes.WithCaller(t.Context(), caller)
}

// recognizes reports how a call with a certificate is answered.
func (p *process) recognizes(t testing.TB, a *api.Admission, renewal bool) error {
	t.Helper()
	_, err := p.Recognize(t.Context(), chainOf(t, a.Certificate), renewal)
	return err
}

func (p *process) confirm(t testing.TB, a *api.Admission) {
	t.Helper()
	_, err := p.Confirm(p.as(t, a), &wire.NodesConfirmInput{})
	must(t, err)
}

func (p *process) report(t testing.TB, a *api.Admission) *api.NodesReportOutput {
	t.Helper()
	out, err := p.Report(p.as(t, a), &wire.NodesReportInput{})
	must(t, err)
	return out
}

// renew calls with the certificate of a for one of m's key.
func (p *process) renew(t testing.TB, a *api.Admission, m machine) *api.Admission {
	t.Helper()
	out, err := p.Renew(p.as(t, a), &wire.NodesRenewInput{CSR: m.csr})
	must(t, err)
	return &out.Admitted
}

// An event as it was published.
type event struct {
	Type, Subject string
	Data          map[string]any
}

// eventsOf returns all events of a tenant of the given types, in their order.
func (p *process) eventsOf(t testing.TB, tenantID string, types ...string) (found []event) {
	t.Helper()
	for n := -1; n != 0; {
		var err error
		n, err = p.db.PositionEvents(t.Context(), 10_000)
		must(t, err)
	}
	for after, more := int64(0), true; more; {
		page, err := p.db.Events(t.Context(), store.EventQuery{TenantID: tenantID, Types: types, After: after, Limit: 10_000})
		must(t, err)
		for _, e := range page.Events {
			read := event{Type: e.Type, Subject: e.Subject}
			must(t, json.Unmarshal(e.Data, &read.Data))
			found = append(found, read)
		}
		after, more = page.UpTo, page.More
	}
	return found
}

// switches the policy of a pool.
func (p *process) policy(t testing.TB, pool store.Pool, change func(*store.Pool)) store.Pool {
	t.Helper()
	change(&pool)
	must(t, p.db.Write(t.Context(), func(tx *store.Tx) error {
		_, _, err := tx.UpdatePool(t.Context(), pool, "acme/ops")
		return err
	}))
	return pool
}

func renewal(m machine) *wire.NodesRenewInput { return &wire.NodesRenewInput{CSR: m.csr} }
