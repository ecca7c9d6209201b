package module

import (
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed5db0839e/caddy-cache-aware/tokenizer"
)

const (
	metricsNamespace = "caddy"
	metricsSubsystem = "cache_aware"
)

// unreadRequests counts over all configurations since the process started.
var unreadRequests = prometheus.NewCounterVec(prometheus.CounterOpts{
	Namespace: metricsNamespace,
	Subsystem: metricsSubsystem,
	Name:      "unread_requests_total",
	Help:      "Requests in which no prompt could be read, by reason. They are routed by load or by the fallback.",
}, []string{"reason"})

// collectors are all that is registered.
var collectors = []prometheus.Collector{unreadRequests, statusCollector{}}

// registerMetrics makes the metrics visible in a configuration's registry. The
// other policies of that configuration do the same.
func registerMetrics(ctx caddy.Context) error {
	registry := ctx.GetMetricsRegistry()
	if registry == nil {
		return nil
	}
	for _, collector := range collectors {
		var already prometheus.AlreadyRegisteredError
		if err := registry.Register(collector); err != nil && !errors.As(err, &already) {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	return nil
}

// countUnread counts a request in which no prompt could be read.
func countUnread(err error) {
	if reason := reasonOf(err); reason != "" {
		unreadRequests.WithLabelValues(string(reason)).Inc()
	}
}

// reasonOf is why no prompt could be read, in one word, if err says so.
func reasonOf(err error) tokenizer.Reason {
	var reason tokenizer.Reason
	errors.As(err, &reason)
	return reason
}
