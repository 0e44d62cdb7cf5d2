package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/bettercompute/bettercompute/gen/client"
)

// metrics are what /metrics shows.
type metrics struct {
	registry *prometheus.Registry
	joined   *prometheus.GaugeVec
	ends     prometheus.Gauge
	reported prometheus.Gauge
	offset   prometheus.Gauge
	behind   prometheus.Gauge
	calls    *prometheus.CounterVec
}

func newMetrics(version string) *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		joined: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "bcd_join_state", Help: "1 for the state that the node is in: none, pending, unconfirmed, joined, ended or banned.",
		}, []string{"state"}),
		ends:     gauge("bcd_certificate_end_timestamp_seconds", "When the node's certificate ends; 0: it has none."),
		reported: gauge("bcd_last_report_timestamp_seconds", "The server's time of the last report that it has answered; 0: none."),
		offset:   gauge("bcd_clock_offset_seconds", "How far the clock of the machine is behind the server's; negative: ahead."),
		behind:   gauge("bcd_clock_behind", "1 if the server's certificate is not valid yet by the clock of the machine."),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bcd_calls_total", Help: "Joins, confirmations, renewals and reports by result: ok, a code of the API, unanswered or failed.",
		}, []string{"call", "result"}),
	}
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "bcd_build_info", Help: "Always 1; the version is a label.", ConstLabels: prometheus.Labels{"version": version},
	}, func() float64 { return 1 })
	// The package collectors, which has the same two, links database/sql.
	m.registry.MustRegister(m.joined, m.ends, m.reported, m.offset, m.behind, m.calls, build,
		prometheus.NewGoCollector(), prometheus.NewProcessCollector(prometheus.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) setBehind(behind bool) {
	m.behind.Set(0)
	if behind {
		m.behind.Set(1)
	}
}

// stands shows the one state that the node is in.
func (m *metrics) stands(state string) {
	for _, s := range []string{stateNone, statePending, stateUnconfirmed, stateJoined, stateEnded, stateBanned} {
		m.joined.WithLabelValues(s).Set(0)
	}
	m.joined.WithLabelValues(state).Set(1)
}

func (m *metrics) count(what action, err error) {
	result := "ok"
	var refused *client.Error
	var unanswered *client.UnansweredError
	switch {
	case err == nil:
	case errors.As(err, &refused) && refused.Code != "":
		result = string(refused.Code)
	case errors.As(err, &unanswered), errors.Is(err, errFetch):
		result = "unanswered"
	default:
		result = "failed"
	}
	m.calls.WithLabelValues(what.String(), result).Inc()
}

// serve shows the metrics at an address until the function that it returns is
// called; no address: nowhere.
func (m *metrics) serve(listen string) (address string, stop func(), err error) {
	if listen == "" {
		return "", func() {}, nil
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return "", nil, fmt.Errorf("--metrics-listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	var done sync.WaitGroup
	done.Go(func() { _ = server.Serve(l) }) // ends by Shutdown or Close
	return l.Addr().String(), func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close() // whoever reads so slowly gets no more
		}
		done.Wait()
	}, nil
}
