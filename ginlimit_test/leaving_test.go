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
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/luascripts"
)

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

// A client that leaves between two windows has cost nothing: what it took is given back without it.
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
	router.Use(ginlimit.New(ginlimit.NewMemoryLimiter(), resolver),
		ginlimit.New(ginlimit.NewLimiter(scripter), resolver))
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
	limiter := func() *ginlimit.Limiter {
		return ginlimit.NewLimiter(scripter, ginlimit.WithTimeout(10*time.Second))
	}
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
