package main

import (
	"context"

	"github.com/gin-gonic/gin"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

// redisRate is GCRA: one script, GET and SET, on a float in a string; the server's clock. It spaces
// requests out rather than counting them: an approximation of a window.
var redisRate = limiter{
	name:   "redis_rate",
	server: map[string]float64{"evalsha": 1},
	open: func(rdb redis.UniversalClient, windows []window) (decide, error) {
		var all []decide
		for _, w := range windows {
			ask := redisRateOf(rdb, w)
			all = append(all, func(ctx context.Context, user string) (bool, error) {
				result, err := ask(ctx, user)
				return err == nil && result.Allowed > 0, err
			})
		}
		return inTurn(all), nil
	},
	// It has no Gin middleware: this is the one that its README's users write.
	middleware: func(rdb redis.UniversalClient, windows []window) ([]gin.HandlerFunc, error) {
		var chain []gin.HandlerFunc
		for _, w := range windows {
			ask := redisRateOf(rdb, w)
			chain = append(chain, func(c *gin.Context) {
				result, err := ask(c.Request.Context(), c.GetString(userKey))
				if err != nil {
					unavailable(c)
					return
				}
				answer(c, result.Allowed > 0, w.limit, result.Remaining, result.RetryAfter)
			})
		}
		return chain, nil
	},
}

func redisRateOf(rdb redis.UniversalClient, w window) func(context.Context, string) (*redis_rate.Result, error) {
	l := redis_rate.NewLimiter(rdb)
	limit := redis_rate.Limit{Rate: w.limit, Burst: w.limit, Period: w.length}
	suffix := ":" + w.length.String()
	return func(ctx context.Context, user string) (*redis_rate.Result, error) {
		return l.Allow(ctx, user+suffix, limit)
	}
}
