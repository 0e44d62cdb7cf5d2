package daemon

import (
	"context"
	"crypto/x509"
	"io"
	"log/slog"
	"time"
)

// A Stepper is a daemon that a test moves on, one action at a time.
type Stepper struct{ *daemon }

// Step does what is due, or says how long nothing is.
func (s Stepper) Step(ctx context.Context) (time.Duration, error) { return s.step(ctx) }

// Close lets go of the state folder.
func (s Stepper) Close() error { return s.close() }

// OpenStepper opens a daemon as Run does.
func OpenStepper(config Config) (Stepper, error) {
	d, err := open(config)
	return Stepper{d}, err
}

// Gather is what the metrics show, by name and labels.
func (s Stepper) Gather() (map[string]float64, error) {
	families, err := s.metrics.registry.Gather()
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			values[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return values, err
}

const (
	TokenRefused = tokenRefused
	ReportEvery  = reportEvery
)

// ReadToken reads a token from standard input.
func ReadToken(stdin io.Reader) (id, revealed string, err error) {
	t, err := readToken("-", stdin, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", "", err
	}
	return t.id, t.reveal(), nil
}

// ParseBundle reads the certificates of a PEM text.
func ParseBundle(text []byte) ([]*x509.Certificate, error) { return parseBundle(text) }
