package main

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
)

// window is one limit: so many requests in so long.
type window struct {
	limit  int
	length time.Duration
}

// verdict is a decision on one request. A limiter with a middleware of its own need not fill in more than
// allowed.
type verdict struct {
	allowed    bool
	remaining  int
	retryAfter time.Duration
}

// decide decides one request of a user.
type decide func(ctx context.Context, user string) (verdict, error)

// limiter is a way to limit, with its own default settings.
type limiter struct {
	name string
	// clients are those over which it is measured; nil is plain and pipelined.
	clients []client
	// commands tells whose commandstats time is a decision's, and which share of it: what a script calls is in
	// the script's own time already.
	commands map[string]float64
	// one makes the decision on one window. It is safe for concurrent use.
	one func(redis.UniversalClient, window) decide
	// mount makes what its users mount in Gin. nil is a handler for each window, which they would have to write.
	// The user's id is in the context under userKey, the tier under tierKey.
	mount mount
	// tiered: its windows are a tier's, whose day is never tighter than its minute.
	tiered bool
}

type mount func(redis.UniversalClient, []window) []gin.HandlerFunc

// each mounts a handler for each window.
func each(handler func(redis.UniversalClient, window) gin.HandlerFunc) mount {
	return func(rdb redis.UniversalClient, windows []window) (chain []gin.HandlerFunc) {
		for _, w := range windows {
			chain = append(chain, handler(rdb, w))
		}
		return chain
	}
}

// handlers are what goes before a Gin handler.
func (l limiter) handlers(rdb redis.UniversalClient, windows []window) []gin.HandlerFunc {
	if l.mount != nil {
		return l.mount(rdb, windows)
	}
	return each(l.careful)(rdb, windows)
}

// careful is what a careful user would write: the headers, and 429.
func (l limiter) careful(rdb redis.UniversalClient, w window) gin.HandlerFunc {
	decide := l.one(rdb, w)
	return func(c *gin.Context) {
		v, err := decide(c.Request.Context(), c.GetString(userKey))
		if err != nil {
			c.AbortWithStatus(http.StatusServiceUnavailable)
			return
		}
		c.Header("X-RateLimit-Limit", strconv.Itoa(w.limit))
		c.Header("X-RateLimit-Remaining", strconv.Itoa(v.remaining))
		if !v.allowed {
			c.Header("Retry-After", strconv.Itoa(int(math.Ceil(v.retryAfter.Seconds()))))
			c.AbortWithStatusJSON(http.StatusTooManyRequests, gin.H{"error": "rate limit exceeded"})
		}
	}
}

// must is for constructors that fail on a wrong argument, or without Redis: the run is over.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
