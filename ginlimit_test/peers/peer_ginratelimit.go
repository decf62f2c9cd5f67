package main

import (
	"context"

	ratelimit "github.com/JGLTechnologies/gin-rate-limit"
	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
)

// ginRateLimit is a window that starts anew when nobody called for its length. It reads two keys in
// a pipeline and writes them in another: two round trips, and calls at the same moment may all be
// admitted.
var ginRateLimit = limiter{
	name:      "gin-rate-limit",
	plainOnly: true,
	server:    map[string]float64{"get": 1, "set": 1, "incr": 1, "expire": 1},
	open: func(rdb redis.UniversalClient, windows []window) (decide, error) {
		var all []decide
		for _, w := range windows {
			store, suffix := ginRateLimitOf(rdb, w), ":"+w.length.String()
			all = append(all, func(_ context.Context, user string) (bool, error) {
				return !store.Limit(user+suffix, nil).RateLimited, nil
			})
		}
		return inTurn(all), nil
	},
	middleware: func(rdb redis.UniversalClient, windows []window) ([]gin.HandlerFunc, error) {
		var chain []gin.HandlerFunc
		for _, w := range windows {
			suffix := ":" + w.length.String()
			chain = append(chain, ratelimit.RateLimiter(ginRateLimitOf(rdb, w), &ratelimit.Options{
				KeyFunc: func(c *gin.Context) string { return userOf(c) + suffix },
			}))
		}
		return chain, nil
	},
}

func ginRateLimitOf(rdb redis.UniversalClient, w window) ratelimit.Store {
	return ratelimit.RedisStore(&ratelimit.RedisOptions{
		RedisClient: rdb.(*redis.Client),
		Rate:        w.length,
		Limit:       uint(w.limit),
		PanicOnErr:  true,
	})
}
