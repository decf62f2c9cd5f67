package main

import (
	"context"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/luascripts"
	"github.com/gin-tiers/ratelimit/tiers"
)

// ginlimitSeparate asks for each window by a call of its own: one script on an exact log.
var ginlimitSeparate = limiter{
	name:     "ginlimit",
	commands: map[string]float64{"evalsha": 1},
	one: func(rdb redis.UniversalClient, w window) (decide, error) {
		l := newGinlimit(rdb)
		return func(ctx context.Context, user string) (verdict, error) {
			d, err := l.Check(ctx, user, w.limit, w.length)
			return verdict{allowed: d.Allowed}, err
		}, nil
	},
	middleware: ginlimitMiddleware(),
}

// ginlimitAtomic decides both windows, all or none, in one script.
var ginlimitAtomic = limiter{
	name:       "ginlimit, atomic",
	commands:   map[string]float64{"evalsha": 1},
	all:        ginlimitScript,
	middleware: ginlimitMiddleware(ginlimit.WithAtomicWindows()),
}

// ginlimitScript is what the middleware does for a request, less the request: the library has no such call.
func ginlimitScript(rdb redis.UniversalClient, windows []window) (decide, error) {
	return func(ctx context.Context, user string) (verdict, error) {
		keys := make([]string, len(windows))
		args := []any{""} // the server's time
		for i, w := range windows {
			seconds := int(w.length / time.Second)
			keys[i] = "ratelimit:" + user + ":" + strconv.Itoa(seconds)
			args = append(args, w.length.Milliseconds(), w.limit)
			if i == 0 {
				args = append(args, uuid.NewString())
			}
			args = append(args, seconds+1)
		}
		reply, err := luascripts.SlidingWindow.Run(ctx, rdb, keys, args...).Int64Slice()
		return verdict{allowed: len(reply) == 3*len(windows) && reply[len(reply)-3] == 1}, err
	}, nil
}

// newGinlimit has patience where deadlines are heeded: on a busy machine a call may take longer than a
// request should wait.
func newGinlimit(rdb redis.UniversalClient) *ginlimit.Limiter {
	if c, ok := rdb.(interface{ Options() *redis.Options }); ok && c.Options().ContextTimeoutEnabled {
		return ginlimit.NewLimiter(rdb, ginlimit.WithTimeout(10*time.Second))
	}
	return ginlimit.NewLimiter(rdb)
}

func ginlimitMiddleware(opts ...ginlimit.Option) middleware {
	return func(rdb redis.UniversalClient, windows []window) ([]gin.HandlerFunc, error) {
		table, err := tiers.NewStore(tierOfAll, map[tiers.Tier]tiers.Limits{
			tierOfAll: {PerMinute: windows[0].limit, PerDay: windows[1].limit},
		})
		if err != nil {
			return nil, err
		}
		opts := append(opts[:len(opts):len(opts)], ginlimit.WithTiers(table))
		limited := ginlimit.New(newGinlimit(rdb), ginlimit.FromContext(userKey, tierKey), opts...)
		return []gin.HandlerFunc{limited}, nil
	}
}
