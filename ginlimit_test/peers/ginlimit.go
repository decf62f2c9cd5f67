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
	name:   "ginlimit",
	ours:   true,
	server: map[string]float64{"evalsha": 1},
	open: func(rdb redis.UniversalClient, windows []window) (decide, error) {
		l := newGinlimit(rdb)
		var all []decide
		for _, w := range windows {
			all = append(all, func(ctx context.Context, user string) (bool, error) {
				d, err := l.Check(ctx, user, w.limit, w.length)
				return d.Allowed, err
			})
		}
		return inTurn(all), nil
	},
	middleware: ginlimitMiddleware(),
}

// ginlimitAtomic decides both windows, all or none, in one script.
var ginlimitAtomic = limiter{
	name:    "ginlimit, atomic",
	ours:    true,
	windows: 2,
	server:  map[string]float64{"evalsha": 1},
	// What the middleware does for a request, less the request: the library has no such call.
	open: func(rdb redis.UniversalClient, windows []window) (decide, error) {
		suffixes := make([]string, len(windows))
		for i, w := range windows {
			suffixes[i] = ":" + strconv.Itoa(int(w.length/time.Second))
		}
		return func(ctx context.Context, user string) (bool, error) {
			keys := make([]string, len(suffixes))
			for i, suffix := range suffixes {
				keys[i] = "ratelimit:" + user + suffix
			}
			args := []any{""} // the server's time
			for i, w := range windows {
				args = append(args, w.length.Milliseconds(), w.limit)
				if i == 0 {
					args = append(args, uuid.NewString())
				}
				args = append(args, int64(w.length/time.Second)+1)
			}
			reply, err := luascripts.SlidingWindow.Run(ctx, rdb, keys, args...).Int64Slice()
			return err == nil && len(reply) == 3*len(windows) && reply[len(reply)-3] == 1, err
		}, nil
	},
	middleware: ginlimitMiddleware(ginlimit.WithAtomicWindows()),
}

// newGinlimit has patience where deadlines are heeded: on a busy machine a call may take longer than
// a request should wait.
func newGinlimit(rdb redis.UniversalClient) *ginlimit.Limiter {
	if c, ok := rdb.(interface{ Options() *redis.Options }); ok && c.Options().ContextTimeoutEnabled {
		return ginlimit.NewLimiter(rdb, ginlimit.WithTimeout(10*time.Second))
	}
	return ginlimit.NewLimiter(rdb)
}

func ginlimitMiddleware(opts ...ginlimit.Option) func(redis.UniversalClient, []window) ([]gin.HandlerFunc, error) {
	return func(rdb redis.UniversalClient, windows []window) ([]gin.HandlerFunc, error) {
		table, err := tiers.NewStore(tierOfAll, map[tiers.Tier]tiers.Limits{
			tierOfAll: {PerMinute: windows[0].limit, PerDay: windows[1].limit},
		})
		if err != nil {
			return nil, err
		}
		resolver := ginlimit.FromContext(userKey, tierKey)
		return []gin.HandlerFunc{ginlimit.New(newGinlimit(rdb), resolver, append(opts, ginlimit.WithTiers(table))...)}, nil
	}
}
