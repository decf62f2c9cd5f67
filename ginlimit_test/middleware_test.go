package ginlimit_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/luascripts"
	"github.com/gin-tiers/ratelimit/tiers"
)

// modes are the two ways in which a middleware asks for its windows.
var modes = map[string][]ginlimit.Option{
	"separate calls": nil,
	"atomic windows": {ginlimit.WithAtomicWindows()},
}

func TestTheContractOf429(t *testing.T) {
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			l := ginlimit.NewLimiter(redistest.Client(t), ginlimit.WithClock(c.now))
			api := serve(t, ginlimit.New(l, resolver, append(opts, ginlimit.WithTiers(table(t, 5, 7)))...))
			id := redistest.ID(t)
			for i := range 5 {
				r := api.as(id)
				require.Equal(t, http.StatusOK, r.StatusCode)
				require.Equal(t, fmt.Sprintf("5 %d minute", 4-i), r.limits(t))
				require.Empty(t, r.Header.Values("Retry-After"))
			}
			c.advance(48*time.Second - time.Millisecond)

			r := api.as(id)
			require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
			require.Equal(t, "5 0 minute", r.limits(t))
			require.Equal(t, []string{"13"}, r.Header.Values("Retry-After"), "12.001 s, rounded up")
			require.Equal(t, "no-store", r.Header.Get("Cache-Control"))
			require.Empty(t, r.Header.Values("x-should-retry"))
			require.Contains(t, r.Header.Get("Content-Type"), "application/json")
			require.JSONEq(t, `{"error": {"message": "Rate limit exceeded: 5 requests per minute. Retry in 13 s.",
				"type": "rate_limit_error", "param": null, "code": "rate_limit_exceeded"},
				"detail": "Rate limit exceeded", "window": "minute", "limit": 5, "remaining": 0, "retry_after": 13}`, r.body)
			require.EqualValues(t, 5, api.Handled.Load(), "the handler did not run")

			c.advance(13 * time.Second)
			for i := range 2 {
				r := api.as(id)
				require.Equal(t, http.StatusOK, r.StatusCode)
				require.Equal(t, fmt.Sprintf("7 %d day", 1-i), r.limits(t), "the day is the tightest now")
			}
			r = api.as(id)
			require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
			require.Equal(t, "7 0 day", r.limits(t))
			wait := 86_400 - 61 + 1 // the first call was 61 s ago, less a millisecond
			require.Equal(t, strconv.Itoa(wait), r.Header.Get("Retry-After"))
			require.Equal(t, "false", r.Header.Get("x-should-retry"))
			require.JSONEq(t, fmt.Sprintf(`{"error": {"message": "Rate limit exceeded: 7 requests per day. Retry in %d s.",
				"type": "rate_limit_error", "param": null, "code": "daily_limit_exceeded"},
				"detail": "Rate limit exceeded", "window": "day", "limit": 7, "remaining": 0, "retry_after": %[1]d}`, wait), r.body)
			require.EqualValues(t, 7, api.Handled.Load())
		})
	}
}

func TestOneRequestIsSingular(t *testing.T) {
	api := serve(t, ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, ginlimit.WithTiers(table(t, 1, 1))))
	api.as("alice")
	require.Contains(t, api.as("alice").apiError(t).Message, "1 request per minute")
}

// The limit headers are there before a stream's first byte.
func TestStreamsCarryTheHeaders(t *testing.T) {
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			router := gin.New()
			router.Use(headerAuth, ginlimit.New(ginlimit.NewLimiter(redistest.Client(t)), resolver, opts...))
			router.GET("/v1/stream", func(c *gin.Context) {
				c.Header("Content-Type", "text/event-stream")
				c.Writer.Flush()
				<-release
				c.SSEvent("message", "done")
			})
			api := (&api{t: t}).on(router)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, api.URL+"/v1/stream", nil)
			require.NoError(t, err)
			req.Header.Set(headerUser, redistest.ID(t))
			resp, err := http.DefaultClient.Do(req) // returns with the headers, while the handler waits
			require.NoError(t, err)
			defer resp.Body.Close()
			require.Equal(t, "5 4 minute", answer{Response: resp}.limits(t))
			close(release)
			line, err := bufio.NewReader(resp.Body).ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "event:message\n", line)
		})
	}
}

// Changing the tier changes the number that is compared, and nothing else.
func TestTiersChangeOnlyTheNumber(t *testing.T) {
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	api := serve(t, ginlimit.New(ginlimit.NewLimiter(rdb), resolver, ginlimit.WithAtomicWindows()))
	for i, tt := range []struct{ tier, want string }{
		{"free", "5 4 minute"}, {"pro", "60 58 minute"}, {"enterprise", "600 597 minute"}, {"free", "5 1 minute"},
		{"unheard-of", "5 0 minute"}, {"free", "5 0 minute"}, {"", "5 0 minute"}, {"pro", "60 54 minute"},
	} {
		r := api.as("alice", headerTier, tt.tier)
		require.Equal(t, tt.want, r.limits(t), "call %d, tier %q", i, tt.tier)
	}
	keys, err := rdb.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"ratelimit:alice:60", "ratelimit:alice:86400"}, keys, "the same keys")
	require.EqualValues(t, 6, rdb.ZCard(t.Context(), "ratelimit:alice:60").Val(), "the count was kept")
	require.EqualValues(t, 6, rdb.ZCard(t.Context(), "ratelimit:alice:86400").Val())
	require.Equal(t, 1, srv.Calls(t, "eval"), "one script was ever loaded")
}

func TestShortestWindowFirst(t *testing.T) {
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			srv := redistest.Start(t)
			rdb := srv.Client(t)
			l := ginlimit.NewLimiter(rdb, ginlimit.WithClock(c.now))
			api := serve(t, ginlimit.New(l, resolver, append(opts, ginlimit.WithTiers(table(t, 2, 2)))...))
			const minute, day = "ratelimit:alice:60", "ratelimit:alice:86400"
			api.as("alice")
			c.advance(30 * time.Second)
			api.as("alice")

			// Both are full: the minute is reported, and the day's key is left alone. A key of
			// another type in its place would be an error for whoever looks at it.
			require.NoError(t, rdb.Rename(t.Context(), day, "aside").Err())
			require.NoError(t, rdb.Set(t.Context(), day, "not a log", 0).Err())
			r := api.as("alice")
			require.Equal(t, "2 0 minute", r.limits(t))
			require.Equal(t, "30", r.Header.Get("Retry-After"))
			require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
			require.NoError(t, rdb.Rename(t.Context(), "aside", day).Err())

			// The minute has room: the day rejects, and the minute stays as it was.
			c.advance(30 * time.Second)
			require.NoError(t, rdb.ZRemRangeByScore(t.Context(), minute, "0", strconv.FormatInt(c.now().Add(-time.Minute).UnixMilli(), 10)).Err())
			require.NoError(t, rdb.PExpire(t.Context(), minute, 25*time.Second).Err())
			before, err := rdb.ZRangeWithScores(t.Context(), minute, 0, -1).Result()
			require.NoError(t, err)
			for range 20 {
				r = api.as("alice")
				require.Equal(t, "2 0 day", r.limits(t))
				require.Equal(t, strconv.Itoa(86_400-60), r.Header.Get("Retry-After"))
			}
			after, err := rdb.ZRangeWithScores(t.Context(), minute, 0, -1).Result()
			require.NoError(t, err)
			require.Equal(t, before, after, "a rejection by the day costs the minute nothing")
			require.Len(t, after, 1)
			require.LessOrEqual(t, rdb.PTTL(t.Context(), minute).Val(), 31*time.Second, "nor does it extend it")
			require.Positive(t, rdb.PTTL(t.Context(), minute).Val())
			require.EqualValues(t, 2, api.Handled.Load())
		})
	}
}

// One round trip for each window that is asked; one in all for atomic windows.
func TestRoundTrips(t *testing.T) {
	for _, tt := range []struct {
		name                      string
		opts                      []ginlimit.Option
		admitted, byDay, byMinute int
	}{
		{"separate calls", nil, 2, 3, 1}, // by the day: minute, day, give back
		{"atomic windows", []ginlimit.Option{ginlimit.WithAtomicWindows()}, 1, 1, 1},
		{"two scopes", []ginlimit.Option{ginlimit.WithScope("images", table(t, 9, 9))}, 1, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := redistest.Start(t)
			l := ginlimit.NewLimiter(srv.Client(t))
			api := serve(t, ginlimit.New(l, resolver, append(tt.opts, ginlimit.WithTiers(table(t, 2, 3)))...))
			trips := func(user string) int {
				before := srv.Calls(t, "evalsha")
				api.as(user)
				return srv.Calls(t, "evalsha") - before
			}
			fill := func(user string, window time.Duration, n int) {
				for range n {
					_, err := l.Check(t.Context(), user, n, window)
					require.NoError(t, err)
				}
			}
			fill("by-day", 24*time.Hour, 3)
			trips("by-day") // loads the scripts
			fill("by-minute", time.Minute, 2)
			require.Equal(t, tt.admitted, trips("alice"))
			require.Equal(t, tt.byDay, trips("by-day"))
			require.Equal(t, tt.byMinute, trips("by-minute"))
		})
	}
}

func TestNobodySignedIn(t *testing.T) {
	for name, r := range map[string]ginlimit.TierResolver{
		"nothing in the context": resolver,
		"ErrNoSubject":           ginlimit.TierResolverFunc(func(*gin.Context) (ginlimit.Subject, error) { return ginlimit.Subject{}, ginlimit.ErrNoSubject }),
		"wrapped ErrNoSubject": ginlimit.TierResolverFunc(func(*gin.Context) (ginlimit.Subject, error) {
			return ginlimit.Subject{}, fmt.Errorf("session: %w", ginlimit.ErrNoSubject)
		}),
		"an empty id": ginlimit.TierResolverFunc(func(*gin.Context) (ginlimit.Subject, error) { return ginlimit.Subject{Tier: tiers.Pro}, nil }),
	} {
		t.Run(name, func(t *testing.T) {
			api := serve(t, ginlimit.New(ginlimit.NewMemoryLimiter(), r))
			got := api.get("/v1/chat")
			require.Equal(t, http.StatusUnauthorized, got.StatusCode)
			require.Equal(t, "unauthenticated", got.apiError(t).Code)
			require.Equal(t, "authentication_error", got.apiError(t).Type)
			require.Equal(t, "no-store", got.Header.Get("Cache-Control"))
			require.Zero(t, api.Handled.Load(), "never unlimited")
		})
	}
}

// A caller whom an outer limiter has counted and an inner one cannot name stays counted there:
// guessing credentials is not free.
func TestNobodySignedInBehindAnotherLimiter(t *testing.T) {
	byIP := ginlimit.New(ginlimit.NewMemoryLimiter(), ginlimit.ByClientIP(tiers.Free), ginlimit.WithTiers(table(t, 2, 9)))
	api := serve(t, byIP, ginlimit.New(ginlimit.NewMemoryLimiter(), resolver))
	for _, want := range []int{http.StatusUnauthorized, http.StatusUnauthorized, http.StatusTooManyRequests} {
		r := api.get("/v1/chat")
		require.Equal(t, want, r.StatusCode)
		require.Equal(t, want == http.StatusTooManyRequests, r.Header.Get("X-RateLimit-Limit") != "")
	}
}

func TestTierLookupFails(t *testing.T) {
	srv := redistest.Start(t)
	logs := captureLogs(t)
	failing := ginlimit.TierResolverFunc(func(*gin.Context) (ginlimit.Subject, error) {
		return ginlimit.Subject{}, errors.New("dial tcp 10.0.0.7:5432: refused")
	})
	l := ginlimit.NewLimiter(srv.Client(t))
	outer := ginlimit.New(l.Scope("outer"), resolver)
	api := serve(t, outer, ginlimit.New(l, failing))
	r := api.as("alice")
	require.Equal(t, http.StatusServiceUnavailable, r.StatusCode)
	require.Equal(t, "tier_lookup_failed", r.apiError(t).Code)
	require.Equal(t, "api_error", r.apiError(t).Type)
	require.Equal(t, "no-store", r.Header.Get("Cache-Control"))
	require.NotContains(t, r.body, "5432", "no raw error text")
	require.Empty(t, r.Header.Values("X-RateLimit-Remaining"), "what the outer limiter told no longer holds")
	require.Contains(t, logs.String(), "10.0.0.7:5432", "the log has it")
	require.Zero(t, api.Handled.Load())
	require.Empty(t, srv.Client(t).Keys(t.Context(), "*").Val(), "nothing consumed, in the limiter before it too")
}

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
			require.EqualValues(t, 1, rdb.ZCard(t.Context(), "ratelimit:"+id+":images:60").Val(), "nor the inner minute")
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
			mount := ginlimit.New(l, resolver, append(opts[:len(opts):len(opts)], ginlimit.WithTiers(table(t, 2, 9)))...)
			api := serve(t, mount, mount)
			id := redistest.ID(t)
			require.Equal(t, "2 1 minute", api.as(id).limits(t))
			require.Equal(t, "2 0 minute", api.as(id).limits(t), "the second mount finds it full and knows the request")
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
				return ginlimit.New(l, resolver, append(opts[:len(opts):len(opts)], ginlimit.WithTiers(table(t, perMinute, 100)))...)
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
					return ginlimit.New(l, resolver, append(opts[:len(opts):len(opts)], ginlimit.WithTiers(table(t, perMinute, 1000)))...)
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
	api := serve(t, ginlimit.New(l, resolver), ginlimit.New(l, resolver, ginlimit.WithFailurePolicy(ginlimit.FailOpen())))
	require.Equal(t, http.StatusOK, api.as("alice").StatusCode)
	require.EqualValues(t, 1, rdb.ZCard(t.Context(), "ratelimit:alice:60").Val())
	require.EqualValues(t, 1, rdb.ZCard(t.Context(), "ratelimit:alice:86400").Val())
}

// The bodies of a limiter are JSON, even where a middleware before has announced a stream.
func TestBodiesAreJSONAfterAnotherContentType(t *testing.T) {
	stream := func(c *gin.Context) { c.Header("Content-Type", "text/event-stream") }
	l := ginlimit.NewMemoryLimiter()
	api := serve(t, stream, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 1, 1))))
	require.Equal(t, http.StatusOK, api.as("alice").StatusCode)
	require.Equal(t, "rate_limit_exceeded", api.as("alice").apiError(t).Code)
	require.Equal(t, "unauthenticated", api.get("/v1/chat").apiError(t).Code)
}

// A request whose own deadline has passed waits for nobody: no policy lets it through uncounted.
func TestARequestThatIsTooLate(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	for name, late := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"its timer has fired": func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, -1) },
		"its timer has not":   func(ctx context.Context) (context.Context, context.CancelFunc) { return lateTimer{ctx}, func() {} },
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

func TestWithScope(t *testing.T) {
	for _, store := range []string{"redis", "memory"} {
		t.Run(store, func(t *testing.T) {
			c := newClock()
			l := ginlimit.NewMemoryLimiter(ginlimit.WithClock(c.now))
			if store == "redis" {
				l = ginlimit.NewLimiter(redistest.Client(t), ginlimit.WithClock(c.now))
			}
			api := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 4, 5)), ginlimit.WithScope("images", table(t, 2, 9))))
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

// Under concurrency an atomic decision admits exactly what there is, and rejections leave no trace,
// not even for a moment in which others would be rejected.
func TestAtomicDecisionsUnderConcurrency(t *testing.T) {
	srv := redistest.Start(t)
	first, second := ginlimit.NewLimiter(srv.Client(t)), ginlimit.NewLimiter(srv.Client(t))
	opts := []ginlimit.Option{ginlimit.WithTiers(table(t, 50, 50)), ginlimit.WithScope("images", table(t, 10, 20))}
	apis := []*api{serve(t, ginlimit.New(first, resolver, opts...)), serve(t, ginlimit.New(second, resolver, opts...))}
	for round := range 5 {
		id := fmt.Sprint("user", round)
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() { apis[i%2].as(id) })
		}
		wg.Wait()
		for _, key := range []string{":60", ":86400", ":images:60", ":images:86400"} {
			require.EqualValues(t, 10, srv.Client(t).ZCard(t.Context(), "ratelimit:"+id+key).Val(), key)
		}
	}
	require.EqualValues(t, 50, apis[0].Handled.Load()+apis[1].Handled.Load())
}

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
			require.Eventually(t, func() bool { return api.as("bob").StatusCode == http.StatusOK }, 10*time.Second, 20*time.Millisecond)
		})
	}
}

// A separate call that fails gives back what the calls before it took, whoever decides then.
func TestAFailedDayGivesTheMinuteBack(t *testing.T) {
	captureLogs(t)
	for name, tt := range map[string]struct {
		policy ginlimit.FailurePolicy
		want   int
	}{
		"closed": {ginlimit.FailClosed(), http.StatusServiceUnavailable},
		"open":   {ginlimit.FailOpen(), http.StatusOK},
		"local":  {ginlimit.FailLocal(ginlimit.NewMemoryLimiter()), http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			rdb := redistest.Client(t)
			id := redistest.ID(t)
			require.NoError(t, rdb.Set(t.Context(), "ratelimit:"+id+":86400", "text", time.Minute).Err())
			api := serve(t, ginlimit.New(ginlimit.NewLimiter(rdb), resolver, ginlimit.WithFailurePolicy(tt.policy)))
			require.Equal(t, tt.want, api.as(id).StatusCode)
			require.Zero(t, rdb.Exists(t.Context(), "ratelimit:"+id+":60").Val())
		})
	}
}

// slowScripter answers late, as over a slow link.
type slowScripter struct{ redis.Scripter }

func (s slowScripter) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	<-time.After(60 * time.Millisecond)
	return s.Scripter.EvalSha(ctx, sha, keys, args...)
}

// A client without a deadline has none for giving back either.
func TestGivingBackOverASlowLink(t *testing.T) {
	rdb := redistest.Client(t)
	l := ginlimit.NewLimiter(slowScripter{rdb})
	id := redistest.ID(t)
	_, err := l.Check(t.Context(), id, 1, 24*time.Hour)
	require.NoError(t, err)
	api := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 1, 1))))
	require.Equal(t, "1 0 day", api.as(id).limits(t))
	require.Zero(t, rdb.Exists(t.Context(), "ratelimit:"+id+":60").Val())
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
	require.Equal(t, []ginlimit.Outcome{ginlimit.StoreError, ginlimit.Admitted, ginlimit.StoreError, ginlimit.Rejected, ginlimit.StoreError, ginlimit.Admitted}, outcomes())
	require.True(t, events[1].Local)
}

func TestObserver(t *testing.T) {
	var events []ginlimit.Event
	l := ginlimit.NewMemoryLimiter()
	observer := ginlimit.ObserverFunc(func(ctx context.Context, e ginlimit.Event) {
		events = append(events, e)
		_, err := l.Peek(ctx, "alice", 1, time.Minute) // calling back is no deadlock
		require.NoError(t, err)
	})
	captureLogs(t)
	api := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 1, 9)), ginlimit.WithObserver(observer)))
	api.as("alice", headerTier, "no such tier")
	api.as("alice")
	l.SetDisabled(true)
	api.as("alice")
	require.Len(t, events, 3)
	for i, want := range []ginlimit.Event{
		{Outcome: ginlimit.Admitted, Decision: ginlimit.Decision{Allowed: true, Limit: 1, Window: time.Minute}},
		{Outcome: ginlimit.Rejected, Decision: ginlimit.Decision{Limit: 1, Window: time.Minute}},
		{Outcome: ginlimit.Bypassed, Decision: ginlimit.Decision{Allowed: true, Limit: 1, Remaining: 1, Window: time.Minute}},
	} {
		got := events[i]
		require.Equal(t, i == 1, got.Decision.RetryAfter > 0)
		got.Decision.RetryAfter = 0
		want.Route, want.Tier, want.UnknownTier = "/v1/chat", tiers.Free, i == 0
		require.Equal(t, want, got)
	}
	raw, err := json.Marshal(events)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "alice", "no user ids")
}

// A client that leaves is no failure of Redis: nothing is logged or told, and nothing is kept.
func TestAClientThatLeaves(t *testing.T) {
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	l := ginlimit.NewLimiter(rdb)
	logs := captureLogs(t)
	var told int
	observe := ginlimit.ObserverFunc(func(context.Context, ginlimit.Event) { told++ })
	router := gin.New()
	router.Use(headerAuth)
	router.Use(func(c *gin.Context) {
		ctx, cancel := context.WithCancel(c.Request.Context())
		c.Request = c.Request.WithContext(ctx)
		cancel()
	})
	router.Use(ginlimit.New(l, resolver, ginlimit.WithObserver(observe)))
	router.GET("/v1/chat", func(*gin.Context) { t.Error("the handler ran") })
	api := (&api{t: t}).on(router)
	api.as("alice")
	require.Empty(t, logs.String())
	require.Zero(t, told)
	require.Empty(t, rdb.Keys(t.Context(), "*").Val())
}

// leaveAfter cancels a request once its first script has run.
type leaveAfter struct {
	redis.Scripter
	leave context.CancelFunc
}

func (s *leaveAfter) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	defer s.leave()
	return s.Scripter.EvalSha(ctx, sha, keys, args...)
}

// A client that leaves between two windows has cost nothing: giving back does not depend on it.
func TestAClientThatLeavesBetweenTwoWindows(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	scripter := &leaveAfter{Scripter: rdb}
	router := gin.New()
	router.Use(headerAuth)
	router.Use(func(c *gin.Context) {
		ctx, cancel := context.WithCancel(c.Request.Context())
		c.Request = c.Request.WithContext(ctx)
		scripter.leave = cancel
	})
	router.Use(ginlimit.New(ginlimit.NewMemoryLimiter(), resolver), ginlimit.New(ginlimit.NewLimiter(scripter), resolver))
	router.GET("/v1/chat", func(*gin.Context) { t.Error("the handler ran") })
	api := (&api{t: t}).on(router)
	require.NoError(t, luascripts.SlidingWindow.Load(t.Context(), rdb).Err())
	r := api.as("alice")
	require.Equal(t, 499, r.StatusCode)
	require.Empty(t, r.Header.Values(ginlimit.HeaderLimit), "of the limiter before either")
	require.Empty(t, rdb.Keys(t.Context(), "*").Val())
}

// deafScripter is a client that does not look at contexts, with something to do before its n-th call.
type deafScripter struct {
	redis.Scripter
	calls, n int
	before   func()
}

func (s *deafScripter) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	if s.calls++; s.calls == s.n {
		s.before()
	}
	return s.Scripter.EvalSha(context.WithoutCancel(ctx), sha, keys, args...)
}

// A client that leaves gets back what was counted, also where WithTimeout bounds a Redis client that does
// not look at contexts.
func TestAClientThatLeavesADeafClient(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	require.NoError(t, luascripts.SlidingWindow.Load(t.Context(), rdb).Err())
	scripter := &deafScripter{Scripter: rdb}
	limiter := func() *ginlimit.Limiter { return ginlimit.NewLimiter(scripter, ginlimit.WithTimeout(10*time.Second)) }
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := limiter().Check(gone, "alice", 1, time.Minute)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, scripter.calls, "whoever had left before")

	router := gin.New()
	router.Use(headerAuth, func(c *gin.Context) {
		ctx, leave := context.WithCancel(c.Request.Context())
		c.Request = c.Request.WithContext(ctx)
		scripter.n, scripter.before = 2, func() {
			leave()
			time.Sleep(10 * time.Millisecond) // nobody has stopped waiting by then
		}
	}, ginlimit.New(limiter(), resolver))
	router.GET("/v1/chat", func(c *gin.Context) { c.Status(http.StatusOK) })
	require.Equal(t, 499, (&api{t: t}).on(router).as("bob").StatusCode)
	require.Empty(t, rdb.Keys(t.Context(), "*").Val(), "what was counted went back")
}

// Where two windows have as much left, the shorter one is told.
func TestATieIsTheShorterWindows(t *testing.T) {
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			api := serve(t, ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, append(opts, ginlimit.WithTiers(table(t, 3, 3)))...))
			require.Equal(t, "3 2 minute", api.as("alice").limits(t))
		})
	}
	l := ginlimit.NewMemoryLimiter()
	outer := ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 9, 9)))
	inner := ginlimit.New(l.Scope("images"), resolver, ginlimit.WithTiers(table(t, 9, 9)))
	require.Equal(t, "9 8 minute", serve(t, outer, inner).as("alice").limits(t))
}

// Unknown routes below the limiter cost a request too, and make no keys of their own.
func TestUnknownRoutes(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	router := gin.New()
	router.Use(headerAuth, ginlimit.New(ginlimit.NewLimiter(rdb), resolver))
	api := (&api{t: t}).on(router)
	for i := range 3 {
		r := api.get(fmt.Sprint("/nowhere/", i), headerUser, "alice")
		require.Equal(t, http.StatusNotFound, r.StatusCode)
		require.Equal(t, fmt.Sprintf("5 %d minute", 4-i), r.limits(t))
	}
	require.Len(t, rdb.Keys(t.Context(), "*").Val(), 2)
}

// Two users behind one address have budgets of their own.
func TestUsersBehindOneAddress(t *testing.T) {
	api := serve(t, ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, ginlimit.WithTiers(table(t, 1, 9))))
	require.Equal(t, http.StatusOK, api.as("alice").StatusCode)
	require.Equal(t, http.StatusOK, api.as("bob").StatusCode)
	require.Equal(t, http.StatusTooManyRequests, api.as("alice").StatusCode)
}

// hungScripter answers nothing until its caller's deadline.
type hungScripter struct{ redis.Scripter }

func (hungScripter) EvalSha(ctx context.Context, _ string, _ []string, _ ...any) *redis.Cmd {
	<-ctx.Done()
	return redis.NewCmdResult(nil, ctx.Err())
}

// A limiter whose Redis hangs costs nothing in one before it, whose Redis is another.
func TestAHungRedisBehindAGoodOne(t *testing.T) {
	captureLogs(t)
	good, err := redisclient.New(redistest.Start(t).URL())
	require.NoError(t, err)
	t.Cleanup(func() { _ = good.Close() })
	api := serve(t,
		ginlimit.New(ginlimit.NewLimiter(good, ginlimit.WithTimeout(time.Minute)), resolver, ginlimit.WithAtomicWindows()),
		ginlimit.New(ginlimit.NewLimiter(hungScripter{}, ginlimit.WithTimeout(time.Second)), resolver))
	r := api.as("alice")
	require.Equal(t, http.StatusServiceUnavailable, r.StatusCode)
	require.Zero(t, good.ZCard(t.Context(), "ratelimit:alice:60").Val())
}
