package ginlimit_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

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
				"detail": "Rate limit exceeded", "window": "minute", "limit": 5, "remaining": 0,
				"retry_after": 13}`, r.body)
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
			require.JSONEq(t, fmt.Sprintf(`{"error": {
				"message": "Rate limit exceeded: 7 requests per day. Retry in %d s.",
				"type": "rate_limit_error", "param": null, "code": "daily_limit_exceeded"},
				"detail": "Rate limit exceeded", "window": "day", "limit": 7, "remaining": 0,
				"retry_after": %[1]d}`, wait), r.body)
			require.EqualValues(t, 7, api.Handled.Load())
		})
	}
}

func TestOneRequestIsSingular(t *testing.T) {
	api := serve(t, ginlimit.New(ginlimit.NewMemoryLimiter(), resolver, ginlimit.WithTiers(table(t, 1, 1))))
	api.as("alice")
	require.Contains(t, api.as("alice").apiError(t).Message, "1 request per minute")
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
