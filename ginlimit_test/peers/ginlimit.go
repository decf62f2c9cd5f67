package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers"
)

// ginlimitSeparate asks for each window by a call of its own: one script on an exact log.
var ginlimitSeparate = limiter{
	name:      "ginlimit",
	commands:  map[string]float64{"evalsha": 1},
	plainOnly: true,
	one: func(rdb redis.UniversalClient, w window) (decide, error) {
		return check(newGinlimit(rdb), w), nil
	},
	middleware: ginlimitMiddleware(),
}

// ginlimitAlone sends each decision by itself, as on a Cluster. It shows what groups gain.
var ginlimitAlone = limiter{
	name:      "ginlimit, one by one",
	commands:  map[string]float64{"evalsha": 1},
	plainOnly: true,
	one: func(rdb redis.UniversalClient, w window) (decide, error) {
		return check(ginlimit.NewLimiter(rdb, ginlimit.WithHashTags()), w), nil
	},
}

// ginlimitCached repeats known rejections from its memory.
var ginlimitCached = limiter{
	name:      "ginlimit, rejection cache",
	commands:  map[string]float64{"evalsha": 1},
	plainOnly: true,
	one: func(rdb redis.UniversalClient, w window) (decide, error) {
		return check(ginlimit.NewLimiter(rdb, ginlimit.WithRejectionCache(100_000)), w), nil
	},
}

// ginlimitAtomic decides both windows, all or none, in one script. That is the middleware's way, so each
// decision here pays for a request and its answer, without a network.
var ginlimitAtomic = limiter{
	name:       "ginlimit, atomic",
	commands:   map[string]float64{"evalsha": 1},
	plainOnly:  true,
	all:        throughGin,
	middleware: ginlimitMiddleware(ginlimit.WithAtomicWindows()),
}

func check(l *ginlimit.Limiter, w window) decide {
	return func(ctx context.Context, user string) (verdict, error) {
		d, err := l.Check(ctx, user, w.limit, w.length)
		return verdict{allowed: d.Allowed}, err
	}
}

// throughGin decides by the middleware, in a Gin engine that answers nobody.
func throughGin(rdb redis.UniversalClient, windows []window) (decide, error) {
	limited, err := ginlimitMiddleware(ginlimit.WithAtomicWindows())(rdb, windows)
	if err != nil {
		return nil, err
	}
	router := newRouter(limited)
	return func(ctx context.Context, user string) (verdict, error) {
		r := &http.Request{Method: http.MethodGet, URL: root, Header: http.Header{userHeader: {user}}}
		r = r.WithContext(ctx)
		w := nobody{header: http.Header{}}
		router.ServeHTTP(&w, r)
		if w.status != http.StatusOK && w.status != http.StatusTooManyRequests {
			return verdict{}, fmt.Errorf("status %d", w.status)
		}
		return verdict{allowed: w.status == http.StatusOK}, nil
	}, nil
}

var root = &url.URL{Path: "/"}

// nobody is a ResponseWriter that keeps only the status.
type nobody struct {
	header http.Header
	status int
}

func (n *nobody) Header() http.Header         { return n.header }
func (n *nobody) Write(b []byte) (int, error) { return len(b), nil }
func (n *nobody) WriteHeader(status int)      { n.status = status }

// newGinlimit sets a long timeout if the client heeds deadlines, since on a busy machine a call may take
// longer than a request should wait.
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
