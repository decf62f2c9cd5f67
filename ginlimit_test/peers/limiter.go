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

// decide decides one request of a user. It is safe for concurrent use.
type decide func(ctx context.Context, user string) (verdict, error)

// limiter is a way to limit, with its own default settings. The client is the same for all.
type limiter struct {
	name string
	// commands tells whose commandstats time is a decision's, and which share of it: what a script calls is in
	// the script's own time already.
	commands map[string]float64
	// plainOnly: its interface takes a *redis.Client and no AutoPipeliner.
	plainOnly bool
	// one makes the decision on one window. Those on two are made in turn.
	one func(redis.UniversalClient, window) (decide, error)
	// all makes the decision on all windows together; nil is in turn.
	all func(redis.UniversalClient, []window) (decide, error)
	// middleware is what its users mount; nil is the handler that they would have to write. The user's id is in
	// the context under userKey, the tier under tierKey.
	middleware middleware
}

type middleware func(redis.UniversalClient, []window) ([]gin.HandlerFunc, error)

// open makes the bare decision on these windows, all of which must admit.
func (l limiter) open(rdb redis.UniversalClient, windows []window) (decide, error) {
	if l.all != nil {
		return l.all(rdb, windows)
	}
	turns, err := l.turns(rdb, windows)
	if err != nil || len(turns) == 1 {
		return turns[0], err
	}
	return func(ctx context.Context, user string) (v verdict, err error) {
		for _, decide := range turns {
			if v, err = decide(ctx, user); err != nil || !v.allowed {
				break
			}
		}
		return v, err
	}, nil
}

func (l limiter) turns(rdb redis.UniversalClient, windows []window) ([]decide, error) {
	turns := make([]decide, len(windows))
	for i, w := range windows {
		var err error
		if turns[i], err = l.one(rdb, w); err != nil {
			return turns, err
		}
	}
	return turns, nil
}

// handlers are what goes before a Gin handler. Where the limiter has none, they write what a careful user
// would: the headers, and 429.
func (l limiter) handlers(rdb redis.UniversalClient, windows []window) ([]gin.HandlerFunc, error) {
	if l.middleware != nil {
		return l.middleware(rdb, windows)
	}
	turns, err := l.turns(rdb, windows)
	handlers := make([]gin.HandlerFunc, len(turns))
	for i, decide := range turns {
		handlers[i] = func(c *gin.Context) {
			v, err := decide(c.Request.Context(), c.GetString(userKey))
			if err != nil {
				c.AbortWithStatus(http.StatusServiceUnavailable)
				return
			}
			c.Header("X-RateLimit-Limit", strconv.Itoa(windows[i].limit))
			c.Header("X-RateLimit-Remaining", strconv.Itoa(v.remaining))
			if !v.allowed {
				c.Header("Retry-After", strconv.Itoa(int(math.Ceil(v.retryAfter.Seconds()))))
				c.AbortWithStatusJSON(http.StatusTooManyRequests, gin.H{"error": "rate limit exceeded"})
			}
		}
	}
	return handlers, err
}
