package ginlimit_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// A request whose own deadline has passed waits for nobody: no policy lets it through uncounted.
func TestARequestThatIsTooLate(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	for name, late := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"its timer has fired": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, -1)
		},
		"its timer has not": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return lateTimer{ctx}, func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			logs := captureLogs(t)
			l := ginlimit.NewLimiter(&failingScripter{Scripter: rdb, fail: 1})
			api := serve(t, func(c *gin.Context) {
				ctx, cancel := late(c.Request.Context())
				defer cancel()
				c.Request = c.Request.WithContext(ctx)
				c.Next()
			}, ginlimit.New(l, resolver, ginlimit.WithFailurePolicy(ginlimit.FailOpen())))
			r := api.as("alice")
			require.Equal(t, http.StatusServiceUnavailable, r.StatusCode)
			require.Equal(t, "rate_limiter_unavailable", r.apiError(t).Code)
			require.Zero(t, api.Handled.Load())
			require.NotContains(t, logs.String(), "could not decide")
		})
	}
}

// lateTimer is a context whose deadline has passed, and whose timer has not fired yet.
type lateTimer struct{ context.Context }

func (lateTimer) Deadline() (time.Time, bool) { return time.Now().Add(-time.Millisecond), true }

func TestRedisErrorIsNeverA429(t *testing.T) {
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t)
			rdb := redis.NewClient(&redis.Options{Addr: srv.Addr, MaxRetries: -1, DialerRetries: 1})
			t.Cleanup(func() { _ = rdb.Close() })
			logs := captureLogs(t)
			api := serve(t, ginlimit.New(ginlimit.NewLimiter(rdb), resolver, opts...))
			require.Equal(t, http.StatusOK, api.as("alice").StatusCode)
			srv.Kill()
			r := api.as("alice")
			require.Equal(t, http.StatusServiceUnavailable, r.StatusCode)
			require.Equal(t, "1", r.Header.Get("Retry-After"))
			require.Equal(t, "no-store", r.Header.Get("Cache-Control"))
			require.Equal(t, "rate_limiter_unavailable", r.apiError(t).Code)
			require.NotContains(t, r.body, "127.0.0.1")
			require.Contains(t, logs.String(), "Redis could not decide")
			require.EqualValues(t, 1, api.Handled.Load())

			srv.Restart()
			require.Eventually(t, func() bool { return api.as("bob").StatusCode == http.StatusOK }, 10*time.Second,
				20*time.Millisecond)
		})
	}
}

func TestFailurePolicies(t *testing.T) {
	rdb := deadRedis(t)
	captureLogs(t)
	var events []ginlimit.Event
	policy := func(p ginlimit.FailurePolicy) *api {
		events = nil
		observe := ginlimit.ObserverFunc(func(_ context.Context, e ginlimit.Event) { events = append(events, e) })
		return serve(t, ginlimit.New(ginlimit.NewLimiter(rdb), resolver,
			ginlimit.WithTiers(table(t, 1, 9)), ginlimit.WithFailurePolicy(p), ginlimit.WithObserver(observe)))
	}
	outcomes := func() (names []ginlimit.Outcome) {
		for _, e := range events {
			names = append(names, e.Outcome)
		}
		return names
	}

	closed := policy(ginlimit.FailClosed())
	require.Equal(t, http.StatusServiceUnavailable, closed.as("alice").StatusCode)
	require.Equal(t, []ginlimit.Outcome{ginlimit.StoreError}, outcomes())
	require.Error(t, events[0].Err)

	open := policy(ginlimit.FailOpen())
	r := open.as("alice")
	require.Equal(t, http.StatusOK, r.StatusCode)
	require.Empty(t, r.Header.Values("X-RateLimit-Limit"))
	require.Equal(t, []ginlimit.Outcome{ginlimit.StoreError}, outcomes())

	local := policy(ginlimit.FailLocal(ginlimit.NewMemoryLimiter()))
	require.Equal(t, "1 0 minute", local.as("alice").limits(t))
	require.Equal(t, http.StatusTooManyRequests, local.as("alice").StatusCode)
	require.Equal(t, http.StatusOK, local.as("bob").StatusCode)
	require.Equal(t, []ginlimit.Outcome{ginlimit.StoreError, ginlimit.Admitted, ginlimit.StoreError,
		ginlimit.Rejected, ginlimit.StoreError, ginlimit.Admitted}, outcomes())
	require.True(t, events[1].Local)
}

// hungScripter answers nothing until its caller's deadline.
type hungScripter struct{ redis.Scripter }

func (hungScripter) EvalSha(ctx context.Context, _ string, _ []string, _ ...any) *redis.Cmd {
	<-ctx.Done()
	return redis.NewCmdResult(nil, ctx.Err())
}

// If the Redis of one limiter hangs, the request costs nothing in a limiter before it that has another Redis.
func TestAHungRedisBehindAGoodOne(t *testing.T) {
	captureLogs(t)
	good, err := redisclient.New(redistest.Start(t).URL())
	require.NoError(t, err)
	t.Cleanup(func() { _ = good.Close() })
	api := serve(t,
		ginlimit.New(ginlimit.NewLimiter(good, ginlimit.WithTimeout(time.Minute)), resolver,
			ginlimit.WithAtomicWindows()),
		ginlimit.New(ginlimit.NewLimiter(hungScripter{}, ginlimit.WithTimeout(time.Second)), resolver))
	r := api.as("alice")
	require.Equal(t, http.StatusServiceUnavailable, r.StatusCode)
	require.Zero(t, good.ZCard(t.Context(), "ratelimit:alice:60").Val())
}
