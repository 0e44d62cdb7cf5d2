package server

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/bettercompute/bettercompute/impl/store"
)

// metrics are what /metrics shows. No label holds anything that a caller chose.
type metrics struct {
	registry  *prometheus.Registry
	calls     *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	decisions *prometheus.CounterVec
}

func newMetrics(db *store.DB, version string) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bc_calls_total", Help: "Calls by method and, where refused, by error code.",
		}, []string{"method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "bc_call_seconds", Help: "Time from a call's first byte to its answer's last, in seconds.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2.5, 12),
		}, []string{"method"}),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bc_decisions_total", Help: "IAM decisions by action and outcome.",
		}, []string{"action", "outcome"}),
	}
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "bc_build_info", Help: "Always 1; the version is a label.", ConstLabels: prometheus.Labels{"version": version},
	}, func() float64 { return 1 })
	gauge := func(name, help string, value func(store.Stats) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return value(db.Stats()) })
	}
	m.registry.MustRegister(m.calls, m.seconds, m.decisions, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		gauge("bc_db_connections_in_use", "Database connections that work at the moment.", func(s store.Stats) float64 { return float64(s.InUse) }),
		gauge("bc_db_connections_idle", "Database connections that wait for work.", func(s store.Stats) float64 { return float64(s.Idle) }),
		gauge("bc_db_waits_total", "Calls that had to wait for a database connection.", func(s store.Stats) float64 { return float64(s.Waits) }),
	)
	return m
}

func (m *metrics) call(method, code string, took time.Duration) {
	m.calls.WithLabelValues(method, code).Inc()
	m.seconds.WithLabelValues(method).Observe(took.Seconds())
}

func (m *metrics) decision(action string, allowed bool) {
	outcome := "deny"
	if allowed {
		outcome = "allow"
	}
	m.decisions.WithLabelValues(action, outcome).Inc()
}

func (m *metrics) handler() http.HandlerFunc {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}).ServeHTTP
}
