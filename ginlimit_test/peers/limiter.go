package main

import (
	"context"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
)

// window is one limit: so many requests in so long.
type window struct {
	limit  int
	length time.Duration
}

// decide decides one request of a user. It is safe for concurrent use.
type decide func(ctx context.Context, user string) (allowed bool, err error)

// limiter is a way to limit, with its own default settings. The client is the same for all.
type limiter struct {
	name string
	ours bool
	// plainOnly: its interface takes a *redis.Client and no AutoPipeliner.
	plainOnly bool
	// windows are how many it can decide: 1, 2, or both where it is 0.
	windows int
	// server tells whose commandstats time is a decision's, and which share of it: what a script
	// calls is in the script's own time already.
	server map[string]float64
	// open makes the bare decision on these windows, all of which must admit.
	open func(rdb redis.UniversalClient, windows []window) (decide, error)
	// middleware makes what goes before the handler, as its users would mount it. The user's id is
	// in the context under userKey, the tier under tierKey.
	middleware func(rdb redis.UniversalClient, windows []window) ([]gin.HandlerFunc, error)
}

func limiters() []limiter {
	return []limiter{redisRate, ululeLimiter, throttledGCRA, ginRateLimit, ginlimitSeparate, ginlimitAtomic}
}

// inTurn asks one limiter after the other and stops at the first that rejects, as users of a
// one-window limiter do who have two windows.
func inTurn(limiters []decide) decide {
	if len(limiters) == 1 {
		return limiters[0]
	}
	return func(ctx context.Context, user string) (bool, error) {
		for _, l := range limiters {
			if allowed, err := l(ctx, user); err != nil || !allowed {
				return false, err
			}
		}
		return true, nil
	}
}
