package prom_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/prom"
	"github.com/gin-tiers/ratelimit/tiers"
)

// One collector observes all mounts, and Prometheus reads it at /metrics.
func ExampleNew() {
	limiter := ginlimit.NewMemoryLimiter()
	metrics := prom.New(limiter)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)

	router := gin.New()
	router.GET("/metrics", gin.WrapH(promhttp.HandlerFor(registry, promhttp.HandlerOpts{})))
	limited := ginlimit.New(limiter, ginlimit.ByClientIP(tiers.Free), ginlimit.WithObserver(metrics))
	router.GET("/v1/models", limited, func(c *gin.Context) { c.Status(http.StatusOK) })

	for range 6 {
		router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/models", nil))
	}
	w := httptest.NewRecorder()
	router.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "ginlimit_decisions_total") {
			fmt.Print(line)
		}
	}
	// Output:
	// ginlimit_decisions_total{outcome="admitted",scope="",tier="free",window="minute"} 5
	// ginlimit_decisions_total{outcome="rejected",scope="",tier="free",window="minute"} 1
}
