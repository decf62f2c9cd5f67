package main

import (
	"context"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/prom"
)

// watcher is told of every decision: it is counted for /metrics, and noted for the log.
type watcher struct{ *prom.Collector }

func newWatcher(limiter *ginlimit.Limiter) watcher { return watcher{prom.New(limiter)} }

// Observe implements ginlimit.Observer.
func (w watcher) Observe(ctx context.Context, e ginlimit.Event) {
	noteDecision(ctx, e)
	w.Collector.Observe(ctx, e)
}

// showMetrics serves what Prometheus collects: limits, the Go runtime and the process. No label names a user.
func (w watcher) showMetrics() gin.HandlerFunc {
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.Collector, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return gin.WrapH(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
}
