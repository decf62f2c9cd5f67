package main

import (
	"context"

	ratelimit "github.com/JGLTechnologies/gin-rate-limit"
	"github.com/gin-gonic/gin"
	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	goredisstore "github.com/throttled/throttled/v2/store/goredisstore.v9"
	ulule "github.com/ulule/limiter/v3"
	mgin "github.com/ulule/limiter/v3/drivers/middleware/gin"
	sredis "github.com/ulule/limiter/v3/drivers/store/redis"
)

// redisRate is GCRA: one script, GET and SET, on a float in a string; the server's clock. It spaces requests
// out rather than counting them: an approximation of a window.
var redisRate = limiter{
	name:     "redis_rate",
	commands: map[string]float64{"evalsha": 1},
	one: func(rdb redis.UniversalClient, w window) decide {
		l := redis_rate.NewLimiter(rdb)
		limit := redis_rate.Limit{Rate: w.limit, Burst: w.limit, Period: w.length}
		suffix := ":" + w.length.String()
		return func(ctx context.Context, user string) (verdict, error) {
			r, err := l.Allow(ctx, user+suffix, limit)
			if err != nil {
				return verdict{}, err
			}
			return verdict{r.Allowed > 0, r.Remaining, r.RetryAfter}, nil
		}
	},
}

// ululeLimiter is a fixed window: one script, INCRBY and PTTL or PEXPIRE. At the edge of a window it admits
// up to twice the limit, and what it rejects is counted.
var ululeLimiter = limiter{
	name:     "ulule/limiter",
	commands: map[string]float64{"evalsha": 1},
	one: func(rdb redis.UniversalClient, w window) decide {
		l := ululeOf(rdb, w)
		return func(ctx context.Context, user string) (verdict, error) {
			r, err := l.Get(ctx, user)
			return verdict{allowed: !r.Reached}, err
		}
	},
	mount: each(func(rdb redis.UniversalClient, w window) gin.HandlerFunc {
		user := func(c *gin.Context) string { return c.GetString(userKey) }
		return mgin.NewMiddleware(ululeOf(rdb, w), mgin.WithKeyGetter(user))
	}),
}

// ululeOf gives each window a store of its own: the key is the same in all.
func ululeOf(rdb redis.UniversalClient, w window) *ulule.Limiter {
	store := must(sredis.NewStoreWithOptions(rdb.(sredis.Client), ulule.StoreOptions{
		Prefix:   ulule.DefaultPrefix + ":" + w.length.String(),
		MaxRetry: ulule.DefaultMaxRetry,
	}))
	return ulule.New(store, ulule.Rate{Limit: int64(w.limit), Period: w.length})
}

// throttledGCRA is GCRA by compare-and-set: TIME and GET in a pipeline, then a script, sent in full each
// time, that sets if nobody else did; again if somebody did. Two round trips. Its own middleware is for
// net/http.
var throttledGCRA = limiter{
	name: "throttled",
	// Of two GETs, one is the script's own. A key lives no longer than the burst takes to refill; a new one is
	// made by SETNX and EXPIRE, in two round trips more.
	commands: map[string]float64{"time": 1, "get": 0.5, "eval": 1, "setnx": 1, "expire": 1},
	one: func(rdb redis.UniversalClient, w window) decide {
		store := must(goredisstore.NewCtx(rdb, "throttled:"+w.length.String()+":"))
		l := must(throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
			MaxRate:  throttled.PerDuration(w.limit, w.length),
			MaxBurst: w.limit - 1,
		}))
		return func(ctx context.Context, user string) (verdict, error) {
			limited, r, err := l.RateLimitCtx(ctx, user, 1)
			return verdict{!limited, r.Remaining, r.RetryAfter}, err
		}
	},
}

// ginRateLimit is a window that starts anew when nobody called for its length. It reads two keys in a
// pipeline and writes them in another: two round trips, and calls at the same moment may all be admitted.
var ginRateLimit = limiter{
	name:     "gin-rate-limit",
	clients:  []client{plain}, // no other has its type
	commands: map[string]float64{"get": 1, "set": 1, "incr": 1, "expire": 1},
	one: func(rdb redis.UniversalClient, w window) decide {
		store, suffix := ginRateLimitOf(rdb, w), ":"+w.length.String()
		return func(_ context.Context, user string) (verdict, error) {
			return verdict{allowed: !store.Limit(user+suffix, nil).RateLimited}, nil
		}
	},
	mount: each(func(rdb redis.UniversalClient, w window) gin.HandlerFunc {
		suffix := ":" + w.length.String()
		return ratelimit.RateLimiter(ginRateLimitOf(rdb, w), &ratelimit.Options{
			KeyFunc: func(c *gin.Context) string { return c.GetString(userKey) + suffix },
		})
	}),
}

func ginRateLimitOf(rdb redis.UniversalClient, w window) ratelimit.Store {
	return ratelimit.RedisStore(&ratelimit.RedisOptions{
		RedisClient: rdb.(*redis.Client),
		Rate:        w.length,
		Limit:       uint(w.limit),
		PanicOnErr:  true,
	})
}
