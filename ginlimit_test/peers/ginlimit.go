package main

import (
	"context"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers"
)

var (
	// ginlimitSeparate asks for each window by a call of its own.
	ginlimitSeparate = ours("ginlimit", nil)

	// ginlimitAlone sends each decision by itself, as on a Cluster. It shows what groups gain.
	ginlimitAlone = ours("ginlimit, one by one", []ginlimit.LimiterOption{ginlimit.WithHashTags()})

	// ginlimitCached repeats known rejections from its memory.
	ginlimitCached = ours("ginlimit, rejection cache",
		[]ginlimit.LimiterOption{ginlimit.WithRejectionCache(100_000)})

	// ginlimitAtomic decides both windows, all or none, in one script. That is the middleware's way.
	ginlimitAtomic = ours("ginlimit, atomic", nil, ginlimit.WithAtomicWindows())
)

// ours is ginlimit with these options: an exact log, one script.
func ours(name string, limits []ginlimit.LimiterOption, opts ...ginlimit.Option) limiter {
	open := func(rdb redis.UniversalClient) *ginlimit.Limiter {
		opts := limits
		if rdb.(*redis.Client).Options().ContextTimeoutEnabled {
			opts = append(opts[:len(opts):len(opts)], ginlimit.WithTimeout(patience))
		}
		return ginlimit.NewLimiter(rdb, opts...)
	}
	return limiter{
		name:     name,
		clients:  []client{plain, deadlines},
		commands: map[string]float64{"evalsha": 1},
		tiered:   true,
		one: func(rdb redis.UniversalClient, w window) decide {
			l := open(rdb)
			return func(ctx context.Context, user string) (verdict, error) {
				d, err := l.Check(ctx, user, w.limit, w.length)
				return verdict{allowed: d.Allowed}, err
			}
		},
		mount: func(rdb redis.UniversalClient, windows []window) []gin.HandlerFunc {
			table := must(tiers.NewStore(tierOfAll, map[tiers.Tier]tiers.Limits{
				tierOfAll: {PerMinute: windows[0].limit, PerDay: windows[1].limit},
			}))
			opts := append(opts[:len(opts):len(opts)], ginlimit.WithTiers(table))
			return []gin.HandlerFunc{ginlimit.New(open(rdb), ginlimit.FromContext(userKey, tierKey), opts...)}
		},
	}
}
