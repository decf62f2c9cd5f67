package ginlimit_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// tableOf is a tier table of one tier, free.
func tableOf(t *testing.T, limits tiers.Limits) *tiers.Store {
	t.Helper()
	s, err := tiers.NewStore(tiers.Free, map[tiers.Tier]tiers.Limits{tiers.Free: limits})
	require.NoError(t, err)
	return s
}

// shownUsage is what Usage tells of alice, "limit remaining window" for each budget.
func shownUsage(t *testing.T, l *ginlimit.Limiter, limits tiers.Limits) []string {
	t.Helper()
	decisions, err := l.Usage(t.Context(), "alice", limits)
	require.NoError(t, err)
	shown := []string{}
	for _, d := range decisions {
		shown = append(shown, fmt.Sprint(d.Limit, d.Remaining, d.Window))
	}
	return shown
}

// An hour and a month are decided as a minute and a day are; what is unlimited is not asked for.
func TestHourAndMonth(t *testing.T) {
	limits := tiers.Limits{PerMinute: tiers.Unlimited, PerHour: 2, PerDay: tiers.Unlimited, PerMonth: 3}
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			rdb := redistest.Start(t).Client(t)
			l := ginlimit.NewLimiter(rdb, ginlimit.WithClock(c.now))
			api := serve(t, ginlimit.New(l, resolver, append(opts, ginlimit.WithTiers(tableOf(t, limits)))...))

			require.Equal(t, "2 1 hour", api.as("alice").limits(t), "no header for the unlimited minute")
			require.Equal(t, "2 0 hour", api.as("alice").limits(t))
			r := api.as("alice")
			require.Equal(t, "2 0 hour", r.limits(t))
			require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
			require.Equal(t, "rate_limit_exceeded", r.apiError(t).Code)
			require.Equal(t, "3600", r.Header.Get("Retry-After"))
			require.Empty(t, r.Header.Values("X-Should-Retry"))
			require.Equal(t, []string{"2 0 1h0m0s", "3 1 720h0m0s"}, shownUsage(t, l, limits))

			c.advance(time.Hour)
			require.Equal(t, "3 0 month", api.as("alice").limits(t))
			r = api.as("alice")
			require.Equal(t, "3 0 month", r.limits(t))
			require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
			require.Equal(t, "monthly_limit_exceeded", r.apiError(t).Code)
			require.Equal(t, "false", r.Header.Get("x-should-retry"))
			month := 30 * 24 * 60 * 60
			require.Equal(t, strconv.Itoa(month-60*60), r.Header.Get("Retry-After"))
			require.Contains(t, r.body, `"window":"month"`)
			require.Equal(t, []string{"2 1 1h0m0s", "3 0 720h0m0s"}, shownUsage(t, l, limits),
				"the month's rejection costs the hour nothing")

			keys, err := rdb.Keys(t.Context(), "*").Result()
			require.NoError(t, err)
			require.ElementsMatch(t, []string{"ratelimit:alice:3600", "ratelimit:alice:2592000"}, keys)
			require.EqualValues(t, 3, api.Handled.Load())
		})
	}
}

// Where everything is unlimited nobody is asked, nothing is shown and every request passes.
func TestEverythingUnlimited(t *testing.T) {
	limits := tiers.Limits{PerMinute: tiers.Unlimited, PerDay: tiers.Unlimited, PerMonth: tiers.Unlimited}
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t)
			l := ginlimit.NewLimiter(srv.Client(t))
			api := serve(t, ginlimit.New(l, resolver, append(opts, ginlimit.WithTiers(tableOf(t, limits)))...))
			for range 20 {
				r := api.as("alice")
				require.Equal(t, http.StatusOK, r.StatusCode)
				for _, header := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Window"} {
					require.Empty(t, r.Header.Values(header))
				}
			}
			require.Empty(t, shownUsage(t, l, limits))
			require.Zero(t, srv.Client(t).DBSize(t.Context()).Val())
			require.Equal(t, http.StatusUnauthorized, api.get("/v1/chat").StatusCode, "callers are still known")
		})
	}
}

// A zero Store grants nothing: no table must not mean no limits.
func TestZeroStoreGrantsNothing(t *testing.T) {
	api := serve(t, ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, ginlimit.WithTiers(new(tiers.Store))))
	r := api.as("alice")
	require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
	require.Equal(t, "0 0 minute", r.limits(t))
	require.Zero(t, api.Handled.Load())
}
