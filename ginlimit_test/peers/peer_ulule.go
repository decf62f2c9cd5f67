package main

import (
	"context"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	ulule "github.com/ulule/limiter/v3"
	mgin "github.com/ulule/limiter/v3/drivers/middleware/gin"
	sredis "github.com/ulule/limiter/v3/drivers/store/redis"
)

// ululeLimiter is a fixed window: one script, INCRBY and PTTL or PEXPIRE. At the edge of a window it
// admits up to twice the limit, and what it rejects is counted.
var ululeLimiter = limiter{
	name:   "ulule/limiter",
	server: map[string]float64{"evalsha": 1},
	open: func(rdb redis.UniversalClient, windows []window) (decide, error) {
		var all []decide
		for _, w := range windows {
			l, err := ululeOf(rdb, w)
			if err != nil {
				return nil, err
			}
			all = append(all, func(ctx context.Context, user string) (bool, error) {
				result, err := l.Get(ctx, user)
				return !result.Reached, err
			})
		}
		return inTurn(all), nil
	},
	middleware: func(rdb redis.UniversalClient, windows []window) ([]gin.HandlerFunc, error) {
		var chain []gin.HandlerFunc
		for _, w := range windows {
			l, err := ululeOf(rdb, w)
			if err != nil {
				return nil, err
			}
			chain = append(chain, mgin.NewMiddleware(l, mgin.WithKeyGetter(userOf)))
		}
		return chain, nil
	},
}

// ululeOf gives each window a store of its own: the key is the same in all.
func ululeOf(rdb redis.UniversalClient, w window) (*ulule.Limiter, error) {
	store, err := sredis.NewStoreWithOptions(rdb.(sredis.Client), ulule.StoreOptions{
		Prefix:   ulule.DefaultPrefix + ":" + w.length.String(),
		MaxRetry: ulule.DefaultMaxRetry,
	})
	if err != nil {
		return nil, err
	}
	return ulule.New(store, ulule.Rate{Limit: int64(w.limit), Period: w.length}), nil
}
