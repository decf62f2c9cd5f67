package ginlimit_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/headers"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// outcomesOf is an observer that keeps outcomes, and what it keeps.
func outcomesOf(seen *[]ginlimit.Outcome) ginlimit.Option {
	return ginlimit.WithObserver(ginlimit.ObserverFunc(func(_ context.Context, e ginlimit.Event) {
		*seen = append(*seen, e.Outcome)
	}))
}

// What would have been rejected passes, is observed and says so; it takes nothing. M2.
func TestShadowMode(t *testing.T) {
	for mode, opts := range modes {
		t.Run(mode, func(t *testing.T) {
			logs := captureLogs(t)
			c := newClock()
			l := ginlimit.NewMemoryLimiter(ginlimit.WithClock(c.now))
			var seen []ginlimit.Outcome
			api := serve(t, ginlimit.New(l, resolver, append(opts[:len(opts):len(opts)], ginlimit.WithShadow(),
				ginlimit.WithTiers(table(t, 2, 3)), outcomesOf(&seen),
				ginlimit.WithHeaders(headers.Default, headers.IETF))...))
			for i, want := range []string{"2 1 minute", "2 0 minute", "2 0 minute", "2 0 minute"} {
				r := api.as("alice")
				require.Equal(t, http.StatusOK, r.StatusCode)
				require.Equal(t, want, r.limits(t))
				require.Empty(t, r.Header.Get("Retry-After"))
				shadow := map[bool]string{true: "minute"}[i >= 2]
				require.Equal(t, shadow, r.Header.Get("X-RateLimit-Shadow"))
			}
			c.advance(time.Minute)
			require.Empty(t, api.as("alice").Header.Get("X-RateLimit-Shadow"), "the third of the day")
			for range 2 {
				r := api.as("alice")
				require.Equal(t, "day", r.Header.Get("X-RateLimit-Shadow"))
				require.Equal(t, "3 0 day", r.limits(t))
				require.Equal(t, `"minute";r=1;t=60, "day";r=0;t=86340`, r.Header.Get("RateLimit"))
			}
			require.EqualValues(t, 7, api.Handled.Load())
			a, s := ginlimit.Admitted, ginlimit.ShadowRejected
			require.Equal(t, []ginlimit.Outcome{a, a, s, s, a, s, s}, seen)
			for _, window := range []time.Duration{time.Minute, 24 * time.Hour} {
				d, err := l.Peek(t.Context(), "alice", 100, window)
				require.NoError(t, err)
				require.Equal(t, map[time.Duration]int{time.Minute: 1, 24 * time.Hour: 3}[window], 100-d.Remaining)
			}
			require.Contains(t, logs.String(), "would have been rejected")
			require.NotContains(t, logs.String(), "alice")
		})
	}
}

// A shadow under or over a mount that enforces changes nothing of it.
func TestShadowBesideEnforcement(t *testing.T) {
	for _, order := range []string{"shadow first", "shadow last"} {
		t.Run(order, func(t *testing.T) {
			captureLogs(t)
			l := ginlimit.NewMemoryLimiter()
			mounts := []gin.HandlerFunc{
				ginlimit.New(l.Scope("new"), resolver, ginlimit.WithTiers(table(t, 1, 9)), ginlimit.WithShadow()),
				ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 3, 9))),
			}
			if order == "shadow last" {
				mounts[0], mounts[1] = mounts[1], mounts[0]
			}
			api := serve(t, mounts...)
			for range 3 {
				require.Equal(t, http.StatusOK, api.as("alice").StatusCode)
			}
			require.Equal(t, http.StatusTooManyRequests, api.as("alice").StatusCode)
			d, err := l.Peek(t.Context(), "alice", 9, 24*time.Hour)
			require.NoError(t, err)
			require.Equal(t, 6, d.Remaining, "a shadow's rejection gives nothing of others back")
			d, err = l.Scope("new").Peek(t.Context(), "alice", 9, 24*time.Hour)
			require.NoError(t, err)
			require.Equal(t, 8, d.Remaining)
		})
	}
}

// Nothing that goes wrong in a shadow stops a request.
func TestShadowNeverRefuses(t *testing.T) {
	captureLogs(t)
	srv := redistest.Start(t)
	down := ginlimit.NewLimiter(srv.Client(t))
	srv.Kill()
	failing := func(err error) ginlimit.TierResolver {
		return ginlimit.TierResolverFunc(func(*gin.Context) (ginlimit.Subject, error) {
			return ginlimit.Subject{}, err
		})
	}
	table, _ := plenty(t, func(l *tiers.Limits) { l.TokensPerMinute, l.Concurrent = 10, 1 })
	usage := []ginlimit.Option{
		ginlimit.WithTiers(table), ginlimit.WithUsage(headerUsage), ginlimit.WithConcurrency(),
	}
	for name, tt := range map[string]struct {
		l      *ginlimit.Limiter
		r      ginlimit.TierResolver
		opts   []ginlimit.Option
		tokens string
	}{
		"Redis is down":          {down, resolver, nil, ""},
		"nobody":                 {ginlimit.NewMemoryLimiter(), failing(ginlimit.ErrNoSubject), nil, ""},
		"no look-up":             {ginlimit.NewMemoryLimiter(), failing(errors.New("down")), nil, ""},
		"no estimate":            {ginlimit.NewMemoryLimiter(), resolver, usage, "many"},
		"above the whole budget": {ginlimit.NewMemoryLimiter(), resolver, usage, "11"},
	} {
		t.Run(name, func(t *testing.T) {
			api := serve(t, ginlimit.New(tt.l, tt.r, append(tt.opts, ginlimit.WithShadow())...))
			require.Equal(t, http.StatusOK, api.as("alice", "Tokens", tt.tokens).StatusCode)
			require.EqualValues(t, 1, api.Handled.Load())
		})
	}
}

// Preflights and what WithSkip names cost nothing, need nobody and say nothing.
func TestSkips(t *testing.T) {
	l := ginlimit.NewMemoryLimiter()
	var seen []ginlimit.Outcome
	api := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 1, 9)), outcomesOf(&seen),
		ginlimit.WithSkip(func(c *gin.Context) bool { return c.GetHeader("Skip") != "" })))
	options := func(header string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, api.URL+"/v1/chat", nil)
		require.NoError(t, err)
		req.Header.Set(header, "POST")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp
	}
	for range 3 {
		resp := options("Access-Control-Request-Method")
		require.Equal(t, http.StatusOK, resp.StatusCode, "nobody is signed in")
		require.Empty(t, resp.Header.Get("X-RateLimit-Limit"))
		require.Equal(t, http.StatusOK, api.as("alice", "Skip", "yes").StatusCode)
	}
	require.Empty(t, seen)
	require.Equal(t, http.StatusUnauthorized, options("Origin").StatusCode, "no preflight")
	get := api.as("", "Access-Control-Request-Method", "POST")
	require.Equal(t, http.StatusUnauthorized, get.StatusCode)
	require.Equal(t, "1 0 minute", api.as("alice").limits(t))
	require.Equal(t, http.StatusTooManyRequests, api.as("alice").StatusCode)
	require.Panics(t, func() { ginlimit.WithSkip(nil) })
	require.Panics(t, func() { ginlimit.WithBody(nil) })
}
