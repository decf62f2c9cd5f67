package otel_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/gin-gonic/gin"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/otel"
	"github.com/gin-tiers/ratelimit/tiers"
)

// One observer tells of all mounts to the provider that the application has set up.
func ExampleNew() {
	reader := sdkmetric.NewManualReader() // or an exporter in a PeriodicReader
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))

	limiter := ginlimit.NewMemoryLimiter()
	observer, err := otel.New(provider, limiter)
	if err != nil {
		log.Fatal(err)
	}
	defer observer.Close()
	limited := ginlimit.New(limiter, ginlimit.ByClientIP(tiers.Free), ginlimit.WithObserver(observer))
	router := gin.New()
	router.GET("/v1/models", limited, func(c *gin.Context) { c.Status(http.StatusOK) })

	for range 6 {
		router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/models", nil))
	}
	for _, p := range decisions(reader) {
		outcome, _ := p.Attributes.Value("outcome")
		fmt.Println(outcome.AsString(), p.Value)
	}
	// Unordered output:
	// admitted 5
	// rejected 1
}

// The span of a request tells what the limiter has decided. A tracing middleware, such as otelgin, makes it.
func ExampleObserver() {
	spans := tracetest.NewSpanRecorder() // or a processor with an exporter
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("api")
	tracing := func(c *gin.Context) {
		ctx, span := tracer.Start(c.Request.Context(), c.FullPath())
		defer span.End()
		c.Request = c.Request.WithContext(ctx)
		c.Next()
	}
	observer, err := otel.New(nil) // the global provider takes the metrics
	if err != nil {
		log.Fatal(err)
	}
	defer observer.Close()
	limited := ginlimit.New(ginlimit.NewMemoryLimiter(), ginlimit.ByClientIP(tiers.Free),
		ginlimit.WithObserver(observer))
	router := gin.New()
	router.GET("/v1/models", tracing, limited, func(c *gin.Context) { c.Status(http.StatusOK) })

	router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/models", nil))
	for _, a := range spans.Ended()[0].Attributes() {
		fmt.Printf("%s=%v\n", a.Key, a.Value.AsInterface())
	}
	// Unordered output:
	// ratelimit.outcome=admitted
	// ratelimit.tier=free
	// ratelimit.window=minute
	// ratelimit.scope=
	// ratelimit.limit=5
	// ratelimit.remaining=4
}

// decisions are the points of ginlimit.decisions.
func decisions(reader sdkmetric.Reader) []metricdata.DataPoint[int64] {
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &collected); err != nil {
		panic(err)
	}
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name == "ginlimit.decisions" {
				return m.Data.(metricdata.Sum[int64]).DataPoints
			}
		}
	}
	return nil
}
