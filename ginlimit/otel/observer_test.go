package otel_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/otel"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

func init() { gin.SetMode(gin.TestMode) }

// traced is a limiter's route under a tracing middleware, and what both tell.
type traced struct {
	t       *testing.T
	router  *gin.Engine
	reader  *sdkmetric.ManualReader
	spans   *tracetest.SpanRecorder
	limiter *ginlimit.Limiter
}

func serve(t *testing.T, l *ginlimit.Limiter, opts ...ginlimit.Option) *traced {
	t.Helper()
	s := &traced{
		t: t, limiter: l, router: gin.New(),
		reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder(),
	}
	o, err := otel.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader)), l)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.Close()) })
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s.spans)).Tracer("test")
	estimate := ginlimit.EstimatorFunc(func(*gin.Context) (ginlimit.Usage, error) {
		return ginlimit.Usage{Tokens: 100, Spend: 1_500_000}, nil
	})
	limits := tiers.Limits{PerMinute: 1, PerDay: 9, TokensPerMinute: 1000, SpendPerDay: 9_000_000, Concurrent: 1}
	table, err := tiers.NewStore(tiers.Pro, map[tiers.Tier]tiers.Limits{tiers.Pro: limits})
	require.NoError(t, err)
	s.router.GET("/", func(c *gin.Context) {
		ctx, span := tracer.Start(c.Request.Context(), "GET /")
		defer span.End()
		c.Request = c.Request.WithContext(ctx)
		c.Next()
	}, func(c *gin.Context) {
		c.Set("user_id", c.Query("user"))
		c.Set("tier", c.Query("tier"))
	}, ginlimit.New(l, ginlimit.FromContext("user_id", "tier"), append(opts, ginlimit.WithTiers(table),
		ginlimit.WithObserver(o), ginlimit.WithUsage(estimate), ginlimit.WithConcurrency())...),
		func(c *gin.Context) { ginlimit.AdmissionFrom(c).Settle(ginlimit.Usage{Tokens: 30, Spend: 500_000}) })
	return s
}

// get returns the attributes of the request's span.
func (s *traced) get(query string) map[string]any {
	s.t.Helper()
	s.router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/?"+query, nil))
	ended := s.spans.Ended()
	all := map[string]any{}
	for _, a := range ended[len(ended)-1].Attributes() {
		all[string(a.Key)] = a.Value.AsInterface()
	}
	return all
}

// points are all points of the metrics, but histograms' as their counts.
func (s *traced) points() map[string]float64 {
	s.t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(s.t, s.reader.Collect(s.t.Context(), &data))
	all := map[string]float64{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			name := func(set attribute.Set) string {
				return m.Name + " " + set.Encoded(attribute.DefaultEncoder())
			}
			switch points := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range points.DataPoints {
					all[name(p.Attributes)] = float64(p.Value)
				}
			case metricdata.Sum[float64]:
				for _, p := range points.DataPoints {
					all[name(p.Attributes)] = p.Value
				}
			case metricdata.Gauge[int64]:
				for _, p := range points.DataPoints {
					all[name(p.Attributes)] = float64(p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range points.DataPoints {
					all[name(p.Attributes)] = float64(p.Count)
				}
			}
		}
	}
	return all
}

func TestSpansAndMetrics(t *testing.T) {
	s := serve(t, ginlimit.NewMemoryLimiter())
	require.Equal(t, map[string]any{
		"ratelimit.outcome": "admitted", "ratelimit.tier": "pro", "ratelimit.window": "minute",
		"ratelimit.scope": "", "ratelimit.limit": int64(1), "ratelimit.remaining": int64(0),
	}, s.get("user=alice&tier=pro"))
	rejected := s.get("user=alice&tier=gold")
	require.Equal(t, "rejected", rejected["ratelimit.outcome"])
	require.InDelta(t, 60, rejected["ratelimit.retry_after"], 10)
	s.limiter.SetDisabled(true)
	require.Equal(t, "bypassed", s.get("user=alice&tier=pro")["ratelimit.outcome"])
	require.Equal(t, map[string]float64{
		"ginlimit.decisions outcome=admitted,scope=,tier=pro,window=minute": 1,
		"ginlimit.decisions outcome=rejected,scope=,tier=pro,window=minute": 1,
		"ginlimit.decisions outcome=bypassed,scope=,tier=pro,window=minute": 1,
		"ginlimit.near_limit scope=,tier=pro,window=minute":                 1,
		"ginlimit.unknown_tier ":                  1,
		"ginlimit.store.duration ":                2,
		"ginlimit.tokens state=reserved,tier=pro": 100,
		"ginlimit.tokens state=settled,tier=pro":  30,
		"ginlimit.spend state=reserved,tier=pro":  1.5,
		"ginlimit.spend state=settled,tier=pro":   0.5,
		"ginlimit.kill_switch ":                   1,
		"ginlimit.breakers.open ":                 0,
		"ginlimit.leases ":                        0,
		"ginlimit.rejection_cache.hits ":          0,
	}, s.points())
}

func TestStoreErrors(t *testing.T) {
	srv := redistest.Start(t)
	rdb, err := redisclient.New(srv.URL())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	srv.Kill()
	for policy, p := range map[string]ginlimit.FailurePolicy{
		"open": ginlimit.FailOpen(), "closed": ginlimit.FailClosed(),
		"local": ginlimit.FailLocal(ginlimit.NewMemoryLimiter()),
	} {
		s := serve(t, ginlimit.NewLimiter(rdb), ginlimit.WithFailurePolicy(p))
		span := s.get("user=alice&tier=pro")
		require.Equal(t, "connection", span["ratelimit.error"])
		want := "failed_" + policy
		if policy == "local" {
			want = "admitted"
		}
		require.Equal(t, want, span["ratelimit.outcome"])
		require.EqualValues(t, 1, s.points()["ginlimit.store.errors kind=connection,policy="+policy])
	}
}

// However many users there are, the points stay as many, and none of them is in an attribute. M1.
func TestPointsAreConstant(t *testing.T) {
	s := serve(t, ginlimit.NewMemoryLimiter())
	s.get("user=user_0&tier=pro")
	s.get("user=user_0&tier=pro")
	s.get("user=user_0&tier=tier_0")
	before := len(s.points())
	for i := range 2000 {
		for key, value := range s.get(fmt.Sprintf("user=user_%d&tier=tier_%d", i, i)) {
			require.NotRegexp(t, "user_|tier_", fmt.Sprint(value), key)
		}
	}
	require.Len(t, s.points(), before)
}

// Without an SDK it does nothing, and no harm.
func TestWithoutAnSDK(t *testing.T) {
	o, err := otel.New(nil)
	require.NoError(t, err)
	o.Observe(t.Context(), ginlimit.Event{Outcome: ginlimit.Admitted})
	require.NoError(t, o.Close())
	require.Panics(t, func() { _, _ = otel.New(nil, nil) })
}
