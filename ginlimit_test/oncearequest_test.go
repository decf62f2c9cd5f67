package ginlimit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// rewriting serves /v1 and /v2 behind the limits; /v1 is rewritten to /v2 by Gin's HandleContext.
func rewriting(t *testing.T, limits ...gin.HandlerFunc) *api {
	router := gin.New()
	router.Use(headerAuth)
	router.Use(limits...)
	router.GET("/v1", func(c *gin.Context) {
		c.Request.URL.Path = "/v2"
		router.HandleContext(c)
	})
	router.GET("/v2", func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"ok": true}) })
	return (&api{t: t}).on(router)
}

// R1: an HTTP request is counted once, also where its chain runs again.
func TestARewrittenRequestIsCountedOnce(t *testing.T) {
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			rdb := redistest.Start(t).Client(t)
			limit := func(scope string, n int) gin.HandlerFunc {
				return ginlimit.New(ginlimit.NewLimiter(rdb).Scope(scope), resolver,
					append(opts, ginlimit.WithTiers(table(t, n, 100)))...)
			}
			five := rewriting(t, limit("", 5))
			for left := 4; left >= 0; left-- {
				r := five.get("/v1", headerUser, "alice")
				require.Equal(t, http.StatusOK, r.StatusCode)
				require.Equal(t, []string{"5", string(rune('0' + left)), "minute"}, []string{
					r.Header.Get("X-RateLimit-Limit"), r.Header.Get("X-RateLimit-Remaining"),
					r.Header.Get("X-RateLimit-Window")})
			}
			require.EqualValues(t, 5, rdb.ZCard(t.Context(), "ratelimit:alice:60").Val())
			require.Equal(t, http.StatusTooManyRequests, five.get("/v1", headerUser, "alice").StatusCode)

			one := rewriting(t, limit("one", 1))
			require.Equal(t, http.StatusOK, one.get("/v1", headerUser, "alice").StatusCode)
			require.Equal(t, http.StatusTooManyRequests, one.get("/v1", headerUser, "alice").StatusCode)
		})
	}
}

// R1: a 429 of the second pass leaves nothing.
func TestARewrittenRequestThatIsRejectedLeavesNothing(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	l := ginlimit.NewLimiter(rdb)
	outer := ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 9, 9)))
	inner := ginlimit.New(l.Scope("v2"), resolver, ginlimit.WithTiers(table(t, 1, 9)))
	router := gin.New()
	router.Use(headerAuth, outer)
	router.GET("/v1", func(c *gin.Context) {
		c.Request.URL.Path = "/v2"
		router.HandleContext(c)
	})
	router.GET("/v2", inner, func(c *gin.Context) { c.Status(http.StatusOK) })
	api := (&api{t: t}).on(router)
	require.Equal(t, http.StatusOK, api.get("/v1", headerUser, "alice").StatusCode)
	require.Equal(t, http.StatusTooManyRequests, api.get("/v1", headerUser, "alice").StatusCode)
	for _, key := range []string{"ratelimit:alice:60", "ratelimit:alice:86400", "ratelimit:alice:v2:60",
		"ratelimit:alice:v2:86400"} {
		require.EqualValues(t, 1, rdb.ZCard(t.Context(), key).Val(), key)
	}
}

// A handler that makes new requests to its engine makes new requests, also with the context that it has, and
// also when its own request is over.
func TestRequestsThatAHandlerMakesAreCounted(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	router := gin.New()
	router.Use(headerAuth, ginlimit.New(ginlimit.NewLimiter(rdb), resolver, ginlimit.WithTiers(table(t, 9, 9))))
	var inherited context.Context
	one := func(ctx context.Context) {
		r := httptest.NewRequest(http.MethodGet, "/one", nil).WithContext(ctx)
		r.Header.Set(headerUser, "alice")
		router.ServeHTTP(httptest.NewRecorder(), r)
	}
	router.GET("/batch", func(c *gin.Context) {
		inherited = c.Request.Context()
		one(inherited)
		one(inherited)
	})
	router.GET("/one", func(c *gin.Context) { c.Status(http.StatusOK) })
	count := func() int64 { return rdb.ZCard(t.Context(), "ratelimit:alice:60").Val() }

	r := httptest.NewRequest(http.MethodGet, "/batch", nil)
	r.Header.Set(headerUser, "alice")
	router.ServeHTTP(httptest.NewRecorder(), r)
	require.EqualValues(t, 3, count())
	for range 3 {
		one(context.WithoutCancel(inherited))
	}
	require.EqualValues(t, 6, count())
}
