package ginlimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/luascripts"
)

// Stacked limiters: each header once, of the tightest; what one rejects, none has counted.
func TestStackedLimiters(t *testing.T) {
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			rdb := redistest.Client(t)
			l := ginlimit.NewLimiter(rdb, ginlimit.WithClock(c.now))
			with := func(perMinute, perDay int) []ginlimit.Option {
				return append(opts[:len(opts):len(opts)], ginlimit.WithTiers(table(t, perMinute, perDay)))
			}
			whole := ginlimit.New(l, resolver, with(4, 100)...)
			images := ginlimit.New(l.Scope("images"), resolver, with(2, 3)...)
			api := serve(t, whole, images)
			id := redistest.ID(t)

			require.Equal(t, "2 1 minute", api.as(id).limits(t), "the inner one is tighter")
			require.Equal(t, "2 0 minute", api.as(id).limits(t))
			for range 5 {
				r := api.as(id)
				require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
				require.Equal(t, "2 0 minute", r.limits(t))
			}
			outer := func() (n int64) {
				for _, key := range []string{":60", ":86400"} {
					n += rdb.ZCard(t.Context(), "ratelimit:"+id+key).Val()
				}
				return n
			}
			require.EqualValues(t, 4, outer(), "five rejections cost the outer minute and day nothing")

			c.advance(time.Minute)
			require.Equal(t, "3 0 day", api.as(id).limits(t), "the inner day")
			r := api.as(id)
			require.Equal(t, "3 0 day", r.limits(t))
			require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
			require.EqualValues(t, 1+3, outer())
			require.EqualValues(t, 1, rdb.ZCard(t.Context(), "ratelimit:"+id+":images:60").Val(),
				"nor the inner minute")
			require.EqualValues(t, 3, api.Handled.Load())
		})
	}
}

func TestTheOuterLimiterRejectsFirst(t *testing.T) {
	rdb := redistest.Client(t)
	l := ginlimit.NewLimiter(rdb)
	api := serve(t,
		ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 1, 9))),
		ginlimit.New(l.Scope("images"), resolver, ginlimit.WithTiers(table(t, 1, 9))))
	id := redistest.ID(t)
	require.Equal(t, "1 0 minute", api.as(id).limits(t))
	require.Equal(t, http.StatusTooManyRequests, api.as(id).StatusCode)
	require.EqualValues(t, 1, rdb.ZCard(t.Context(), "ratelimit:"+id+":images:60").Val())
}

func TestTwoMountsOnOneScopeCountOnce(t *testing.T) {
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			l := ginlimit.NewLimiter(redistest.Client(t))
			mount := ginlimit.New(l, resolver, append(opts[:len(opts):len(opts)],
				ginlimit.WithTiers(table(t, 2, 9)))...)
			api := serve(t, mount, mount)
			id := redistest.ID(t)
			require.Equal(t, "2 1 minute", api.as(id).limits(t))
			require.Equal(t, "2 0 minute", api.as(id).limits(t),
				"the second mount finds it full and knows the request")
			require.Equal(t, http.StatusTooManyRequests, api.as(id).StatusCode)
		})
	}
}

// The tighter of two mounts on one scope decides: a forgotten Scope loosens nothing.
func TestATighterMountOnOneScope(t *testing.T) {
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			rdb := redistest.Client(t)
			l := ginlimit.NewLimiter(rdb, ginlimit.WithClock(c.now))
			mount := func(perMinute int) gin.HandlerFunc {
				return ginlimit.New(l, resolver, append(opts[:len(opts):len(opts)],
					ginlimit.WithTiers(table(t, perMinute, 100)))...)
			}
			api := serve(t, mount(100), mount(2))
			id := redistest.ID(t)
			require.Equal(t, "2 1 minute", api.as(id).limits(t))
			c.advance(10 * time.Second)
			require.Equal(t, "2 0 minute", api.as(id).limits(t))
			c.advance(10 * time.Second)
			for range 3 {
				r := api.as(id)
				require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
				require.Equal(t, "2 0 minute", r.limits(t))
				require.Equal(t, "40", r.Header.Get("Retry-After"), "when the first of the two leaves")
			}
			for _, key := range []string{":60", ":86400"} {
				require.EqualValues(t, 2, rdb.ZCard(t.Context(), "ratelimit:"+id+key).Val(), "rejections took nothing")
			}
			c.advance(40 * time.Second)
			require.Equal(t, http.StatusOK, api.as(id).StatusCode)
			require.EqualValues(t, 3, api.Handled.Load())
		})
	}
}

// Of many requests at once, those that the tighter mount rejects make room for the others.
func TestABurstUnderATighterMountOnOneScope(t *testing.T) {
	for name, opts := range modes {
		for _, store := range []string{"redis", "memory"} {
			t.Run(name+" "+store, func(t *testing.T) {
				l := ginlimit.NewMemoryLimiter()
				if store == "redis" {
					l = ginlimit.NewLimiter(redistest.Client(t))
				}
				mount := func(perMinute int) gin.HandlerFunc {
					return ginlimit.New(l, resolver, append(opts[:len(opts):len(opts)],
						ginlimit.WithTiers(table(t, perMinute, 1000)))...)
				}
				api := serve(t, mount(50), mount(10))
				for range 5 {
					id := redistest.ID(t)
					var burst sync.WaitGroup
					var admitted atomic.Int64
					for range 60 {
						burst.Go(func() {
							if api.as(id).StatusCode == http.StatusOK {
								admitted.Add(1)
							}
						})
					}
					burst.Wait()
					require.EqualValues(t, 10, admitted.Load())
					for _, window := range []time.Duration{time.Minute, 24 * time.Hour} {
						d, err := l.Peek(t.Context(), id, 1000, window)
						require.NoError(t, err)
						require.Equal(t, 990, d.Remaining, "rejections took nothing")
					}
				}
			})
		}
	}
}

// failingScripter fails the calls that it is told to, counted from 1.
type failingScripter struct {
	redis.Scripter
	calls, fail int
}

func (s *failingScripter) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if s.calls++; s.calls == s.fail {
		return redis.NewCmdResult(nil, errors.New("refused"))
	}
	return s.Scripter.EvalSha(ctx, sha, keys, args...)
}

// What a mount has counted is not given back by another on its scope that fails: it took nothing.
func TestAMountThatFailsKeepsWhatOthersCounted(t *testing.T) {
	captureLogs(t)
	rdb := redistest.Start(t).Client(t)
	require.NoError(t, luascripts.SlidingWindow.Load(t.Context(), rdb).Err())
	l := ginlimit.NewLimiter(&failingScripter{Scripter: rdb, fail: 4})
	api := serve(t, ginlimit.New(l, resolver), ginlimit.New(l, resolver,
		ginlimit.WithFailurePolicy(ginlimit.FailOpen())))
	require.Equal(t, http.StatusOK, api.as("alice").StatusCode)
	require.EqualValues(t, 1, rdb.ZCard(t.Context(), "ratelimit:alice:60").Val())
	require.EqualValues(t, 1, rdb.ZCard(t.Context(), "ratelimit:alice:86400").Val())
}

func TestWithScope(t *testing.T) {
	for _, store := range []string{"redis", "memory"} {
		t.Run(store, func(t *testing.T) {
			c := newClock()
			l := ginlimit.NewMemoryLimiter(ginlimit.WithClock(c.now))
			if store == "redis" {
				l = ginlimit.NewLimiter(redistest.Client(t), ginlimit.WithClock(c.now))
			}
			api := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 4, 5)),
				ginlimit.WithScope("images", table(t, 2, 9))))
			id := redistest.ID(t)
			left := func() string {
				t.Helper()
				var counts []any
				for _, l := range []*ginlimit.Limiter{l, l.Scope("images")} {
					for _, window := range []time.Duration{time.Minute, 24 * time.Hour} {
						d, err := l.Peek(t.Context(), id, 100, window)
						require.NoError(t, err)
						counts = append(counts, 100-d.Remaining)
					}
				}
				return fmt.Sprint(counts...)
			}
			require.Equal(t, "2 1 minute", api.as(id).limits(t))
			require.Equal(t, "2 0 minute", api.as(id).limits(t))
			r := api.as(id)
			require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
			require.Equal(t, "2 0 minute", r.limits(t), "the scope's minute rejects")
			require.Equal(t, "2 2 2 2", left(), "and nothing is consumed anywhere")

			c.advance(time.Minute)
			api.as(id)
			api.as(id)
			c.advance(time.Minute)
			require.Equal(t, "5 0 day", api.as(id).limits(t), "the whole API's day is the tightest")
			r = api.as(id)
			require.Equal(t, "5 0 day", r.limits(t))
			require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
			require.Equal(t, "1 5 1 5", left())
		})
	}
}
