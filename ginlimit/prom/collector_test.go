package prom_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/prom"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

func init() { gin.SetMode(gin.TestMode) }

// service is a router behind limiters; its callers say who they are.
func service(limits ...gin.HandlerFunc) func(user, tier string) int {
	router := gin.New()
	router.Use(func(c *gin.Context) {
		c.Set("user_id", c.GetHeader("User"))
		c.Set("tier", c.GetHeader("Tier"))
	})
	router.GET("/v1/chat", append(limits, func(c *gin.Context) {
		ginlimit.AdmissionFrom(c).Settle(ginlimit.Usage{Tokens: 30, Spend: 500_000})
	})...)
	return func(user, tier string) int {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/chat", nil)
		r.Header.Set("User", user)
		r.Header.Set("Tier", tier)
		router.ServeHTTP(w, r)
		return w.Code
	}
}

var resolver = ginlimit.FromContext("user_id", "tier")

func table(t *testing.T, l tiers.Limits) ginlimit.Option {
	t.Helper()
	s, err := tiers.NewStore(tiers.Free, map[tiers.Tier]tiers.Limits{tiers.Free: l, tiers.Pro: l})
	require.NoError(t, err)
	return ginlimit.WithTiers(s)
}

func expect(t *testing.T, c prometheus.Collector, metrics map[string]string) {
	t.Helper()
	for name, want := range metrics {
		var lines strings.Builder
		for line := range strings.Lines(want) {
			if line = strings.TrimSpace(line); line != "" {
				if !strings.HasPrefix(line, "{") {
					line = " " + line
				}
				fmt.Fprintln(&lines, "ginlimit_"+name+line)
			}
		}
		got, err := testutil.CollectAndFormat(c, expfmt.TypeTextPlain, "ginlimit_"+name)
		require.NoError(t, err)
		var samples strings.Builder
		for line := range strings.Lines(string(got)) {
			if !strings.HasPrefix(line, "#") {
				samples.WriteString(line)
			}
		}
		require.Equal(t, lines.String(), samples.String(), name)
	}
}

func TestDecisions(t *testing.T) {
	l := ginlimit.NewMemoryLimiter()
	c := prom.New(l)
	call := service(ginlimit.New(l, resolver, table(t, tiers.Limits{PerMinute: 2, PerDay: 9}),
		ginlimit.WithObserver(c)),
		ginlimit.New(l.Scope("images"), resolver, table(t, tiers.Limits{PerMinute: 1, PerDay: 9}),
			ginlimit.WithObserver(c), ginlimit.WithShadow()))
	call("alice", "pro")
	call("alice", "pro")
	call("alice", "pro")
	call("bob", "gold")
	l.SetDisabled(true)
	call("alice", "pro")
	expect(t, c, map[string]string{
		"decisions_total": `{outcome="admitted",scope="",tier="free",window="minute"} 1
			{outcome="admitted",scope="",tier="pro",window="minute"} 2
			{outcome="admitted",scope="images",tier="free",window="minute"} 1
			{outcome="admitted",scope="images",tier="pro",window="minute"} 1
			{outcome="bypassed",scope="",tier="pro",window="minute"} 1
			{outcome="bypassed",scope="images",tier="pro",window="minute"} 1
			{outcome="rejected",scope="",tier="pro",window="minute"} 1
			{outcome="shadow_rejected",scope="images",tier="pro",window="minute"} 1`,
		"near_limit_admissions_total": `{scope="",tier="pro",window="minute"} 1
			{scope="images",tier="free",window="minute"} 1
			{scope="images",tier="pro",window="minute"} 1`,
		"unknown_tier_total": `2`,
		"kill_switch":        `1`,
		"leases":             `0`,
		"breakers":           `0`,
	})
}

func TestCacheHits(t *testing.T) {
	l := ginlimit.NewMemoryLimiter(ginlimit.WithRejectionCache(10))
	c := prom.New(l)
	call := service(ginlimit.New(l.Scope("images"), resolver, table(t, tiers.Limits{PerMinute: 1, PerDay: 9})))
	for range 4 {
		call("alice", "pro")
	}
	expect(t, c, map[string]string{"rejection_cache_hits_total": "2"})
}

func TestFailures(t *testing.T) {
	srv := redistest.Start(t)
	rdb, err := redisclient.New(srv.URL())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	l := ginlimit.NewLimiter(rdb)
	c := prom.New(l)
	srv.Kill()
	for _, p := range []ginlimit.FailurePolicy{
		ginlimit.FailClosed(), ginlimit.FailOpen(), ginlimit.FailLocal(ginlimit.NewMemoryLimiter()),
	} {
		call := service(ginlimit.New(l, resolver, table(t, tiers.Limits{PerMinute: 1, PerDay: 9}),
			ginlimit.WithObserver(c), ginlimit.WithFailurePolicy(p)))
		call("alice", "free")
		call("alice", "unknown")
	}
	expect(t, c, map[string]string{
		"decisions_total": `{outcome="admitted",scope="",tier="free",window="minute"} 1
			{outcome="failed_closed",scope="",tier="free",window=""} 2
			{outcome="failed_open",scope="",tier="free",window=""} 2
			{outcome="rejected",scope="",tier="free",window="minute"} 1`,
		"fallback_decisions_total": `{outcome="admitted",tier="free"} 1
			{outcome="rejected",tier="free"} 1`,
		"unknown_tier_total": `3`,
		"breakers":           `1`,
		"breakers_open":      `1`,
	})
	all, err := testutil.CollectAndFormat(c, expfmt.TypeTextPlain,
		"ginlimit_store_seconds", "ginlimit_store_errors_total")
	require.NoError(t, err)
	for _, line := range []string{
		"ginlimit_store_seconds_count 6",
		`ginlimit_store_errors_total{kind="connection",policy="closed"} 2`,
		`ginlimit_store_errors_total{kind="connection",policy="open"} 2`,
	} {
		require.Contains(t, string(all), line+"\n")
	}
}

func TestTokensAndLeases(t *testing.T) {
	l := ginlimit.NewMemoryLimiter()
	c := prom.New(l)
	estimate := ginlimit.EstimatorFunc(func(*gin.Context) (ginlimit.Usage, error) {
		return ginlimit.Usage{Tokens: 100, Spend: 1_500_000}, nil
	})
	call := service(ginlimit.New(l, resolver, ginlimit.WithObserver(c), ginlimit.WithUsage(estimate),
		ginlimit.WithConcurrency(), table(t, tiers.Limits{PerMinute: 100, PerDay: 100, TokensPerMinute: 1000,
			SpendPerDay: 100_000_000, Concurrent: 3})),
		func(*gin.Context) { expect(t, c, map[string]string{"leases": "1"}) })
	call("alice", "pro")
	call("alice", "pro")
	expect(t, c, map[string]string{
		"tokens_reserved_total": `{tier="pro"} 200`, "tokens_settled_total": `{tier="pro"} 60`,
		"spend_reserved_total": `{tier="pro"} 3`, "spend_settled_total": `{tier="pro"} 1`,
		"leases": "0",
	})
}

// 10,000 users make as many series as one, and none of them is in a label. M1.
func TestSeriesAreConstant(t *testing.T) {
	l := ginlimit.NewMemoryLimiter()
	c := prom.New(l)
	call := service(ginlimit.New(l, resolver, table(t, tiers.Limits{PerMinute: 1, PerDay: 9}),
		ginlimit.WithObserver(c)))
	call("user_0", "pro")
	call("user_0", "pro")
	call("user_0", "nobody knows")
	before := testutil.CollectAndCount(c)
	for i := range 10_000 {
		user := fmt.Sprint("user_", i)
		call(user, "pro")
		call(user, fmt.Sprint("tier_", i))
	}
	require.Equal(t, before, testutil.CollectAndCount(c))
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(c))
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		require.NotRegexp(t, "user_|tier_[0-9]", f.String())
	}
	problems, err := testutil.CollectAndLint(c)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestErrorKinds(t *testing.T) {
	for kind, errs := range map[string][]error{
		"":             {nil},
		"breaker_open": {fmt.Errorf("admit: %w", ginlimit.ErrUnavailable)},
		"timeout":      {context.DeadlineExceeded, fmt.Errorf("x: %w", context.DeadlineExceeded)},
		"canceled":     {context.Canceled},
		"pool":         {redis.ErrPoolTimeout, redis.ErrClosed},
		"other":        {errors.New("user_8421"), redis.Nil},
	} {
		for _, err := range errs {
			require.Equal(t, kind, ginlimit.Event{Err: err}.ErrorKind(), "%v", err)
		}
	}
}

func TestErrorKindsOfRedis(t *testing.T) {
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	for kind, set := range map[string]func() error{
		"wrong_type": func() error { return rdb.Set(t.Context(), "ratelimit:alice:60", "x", time.Minute).Err() },
		"read_only": func() error {
			return rdb.ReplicaOf(t.Context(), "127.0.0.1", "1").Err()
		},
	} {
		require.NoError(t, set())
		var got []string
		o := ginlimit.ObserverFunc(func(_ context.Context, e ginlimit.Event) { got = append(got, e.ErrorKind()) })
		service(ginlimit.New(ginlimit.NewLimiter(rdb), resolver, ginlimit.WithObserver(o)))("alice", "free")
		require.Equal(t, []string{kind}, got)
		require.NoError(t, rdb.ReplicaOf(t.Context(), "NO", "ONE").Err())
		rdb.Del(t.Context(), "ratelimit:alice:60")
	}
}
