package main

import (
	"context"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	goredisstore "github.com/throttled/throttled/v2/store/goredisstore.v9"
)

// throttledGCRA is GCRA by compare-and-set: TIME and GET in a pipeline, then a script, sent in full
// each time, that sets if nobody else did; again if somebody did. Two round trips.
var throttledGCRA = limiter{
	name: "throttled",
	// Of two GETs, one is the script's own. A key lives no longer than the burst takes to refill; a
	// new one is made by SETNX and EXPIRE, in two round trips more.
	server: map[string]float64{"time": 1, "get": 0.5, "eval": 1, "setnx": 1, "expire": 1},
	open: func(rdb redis.UniversalClient, windows []window) (decide, error) {
		var all []decide
		for _, w := range windows {
			l, err := throttledOf(rdb, w)
			if err != nil {
				return nil, err
			}
			all = append(all, func(ctx context.Context, user string) (bool, error) {
				limited, _, err := l.RateLimitCtx(ctx, user, 1)
				return !limited, err
			})
		}
		return inTurn(all), nil
	},
	// Its own middleware is for net/http and ends the request itself: Gin's users write this.
	middleware: func(rdb redis.UniversalClient, windows []window) ([]gin.HandlerFunc, error) {
		var chain []gin.HandlerFunc
		for _, w := range windows {
			l, err := throttledOf(rdb, w)
			if err != nil {
				return nil, err
			}
			chain = append(chain, func(c *gin.Context) {
				limited, result, err := l.RateLimitCtx(c.Request.Context(), c.GetString(userKey), 1)
				if err != nil {
					unavailable(c)
					return
				}
				answer(c, !limited, w.limit, result.Remaining, result.RetryAfter)
			})
		}
		return chain, nil
	},
}

func throttledOf(rdb redis.UniversalClient, w window) (*throttled.GCRARateLimiterCtx, error) {
	store, err := goredisstore.NewCtx(rdb, "throttled:"+w.length.String()+":")
	if err != nil {
		return nil, err
	}
	return throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
		MaxRate:  throttled.PerDuration(w.limit, w.length),
		MaxBurst: w.limit - 1,
	})
}
