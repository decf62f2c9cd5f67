package ginlimit

import (
	"fmt"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// LimiterOption adjusts a Limiter. The defaults suit most programs.
type LimiterOption func(*limiterConfig)

type limiterConfig struct {
	clock      func() time.Time
	killSwitch func() bool
	names      budget.Names
	timeout    time.Duration
	replicas   int
	rejections int // of WithRejectionCache; 0 = none
}

// WithClock makes the limiter take the time, to the millisecond, from now instead of the Redis server's
// clock. It is for tests and replays: processes whose clocks differ admit too much. Its times must not be
// before the Unix epoch. It panics on nil.
func WithClock(now func() time.Time) LimiterOption {
	mustNotBeNil("WithClock: now", now)
	return func(c *limiterConfig) { c.clock = now }
}

// WithKillSwitch replaces the environment variable RATE_LIMIT_DISABLED: while on returns true, every call is
// allowed and Redis is not called. The limiter calls on at most once per decision, from many goroutines at
// once. It panics on nil.
func WithKillSwitch(on func() bool) LimiterOption {
	mustNotBeNil("WithKillSwitch: on", on)
	return func(c *limiterConfig) { c.killSwitch = on }
}

// WithHashTags puts the user part of every key in literal braces, so that all keys of a user share a Cluster
// slot. A *redis.ClusterClient and a *redis.Ring have them anyway. The option is for any other Scripter that
// spreads keys over servers, such as a client of a proxy; decisions are then sent one by one. It changes the
// keys, so counts start anew. Memory limiters ignore it.
func WithHashTags() LimiterOption {
	return func(c *limiterConfig) { c.names.HashTags = true }
}

// WithHashTagOf lets users share a Cluster slot: tagOf returns the hash tag of a user, such as the
// organisation "acme" of "acme/alice". Keys then begin with ratelimit:{acme}acme/alice instead of
// ratelimit:{acme/alice}. If the id of the subject of a WithScopeFor is that tag, one script call decides
// both. If tagOf returns "", the tag is the id itself.
//
// tagOf is called for every id, by many goroutines at once, also by Reset and Usage. It must always return
// the same tag for an id, because another tag means another key. All users of a tag are on one node, so no
// tag should have a large part of the traffic. The option has an effect only if keys have tags: on a Cluster,
// on a Ring and with WithHashTags. It panics on nil.
func WithHashTagOf(tagOf func(userID string) string) LimiterOption {
	mustNotBeNil("WithHashTagOf: function", tagOf)
	return func(c *limiterConfig) { c.names.TagOf = tagOf }
}

// WithKeyPrefix replaces "ratelimit" at the beginning of all keys, so that staging and production can share a
// Redis. A prefix has letters, digits, _ - . @ + = / and, not at its ends, colons, 1 to 128 bytes; it panics
// on anything else. If one prefix is "a", do not use "a:b" as another. Memory limiters ignore it.
func WithKeyPrefix(prefix string) LimiterOption {
	if err := budget.CheckPrefix(prefix); err != nil {
		panic("ginlimit: WithKeyPrefix: " + err.Error())
	}
	return func(c *limiterConfig) { c.names.Prefix = prefix }
}

// WithTimeout bounds how long a decision waits for Redis, from connecting to giving back. If there may be
// something to give back, a fifth of d is kept for that; a slot that could not be given back in time stays
// counted until it leaves its window.
//
// The default is DefaultTimeout for a client that obeys a deadline, such as those of redisclient.New, and
// none for other clients: see ContextTimeoutEnabled of go-redis. For another client the option costs a
// goroutine per call; a call that was given up goes on there until the client gives up, too.
//
// If a request's own deadline is sooner, it bounds the decision, too, with any client: at four fifths of the
// time left, so that the failure policy can still answer. Memory limiters ignore the option. It panics unless
// d is positive.
func WithTimeout(d time.Duration) LimiterOption {
	if d <= 0 {
		panic(fmt.Sprintf("ginlimit: WithTimeout: %v is not positive", d))
	}
	return func(c *limiterConfig) { c.timeout = d }
}

// WithReplicas divides every limit by n, for a memory limiter that is one of n replicas behind a load
// balancer: together they admit no more than the limit. It rounds down, but not below 1, so with a limit
// below n they admit up to n in all. A request that needs more than a divided limit never passes; with
// FailLocal it takes the whole of it. It panics unless n is positive. NewLimiter panics on it: Redis counts
// for all replicas.
func WithReplicas(n int) LimiterOption {
	if n <= 0 {
		panic(fmt.Sprintf("ginlimit: WithReplicas: %d is not positive", n))
	}
	return func(c *limiterConfig) { c.replicas = n }
}

// WithRejectionCache remembers the latest rejections of up to size keys in this process. A caller who hammers
// then costs Redis about one call a second per process, not one per request. A rejection is repeated without
// Redis, with a Retry-After that counts down, for at most a second and never after Retry-After has passed. A
// change of tier takes effect at once; so does what this process gives back, refunds or resets. What another
// process gives back may be seen up to a second later. About 300 bytes per key. It panics unless size is
// positive.
func WithRejectionCache(size int) LimiterOption {
	if size <= 0 {
		panic(fmt.Sprintf("ginlimit: WithRejectionCache: %d is not positive", size))
	}
	return func(c *limiterConfig) { c.rejections = size }
}

func newLimiterConfig(constructor string, opts []LimiterOption) limiterConfig {
	c := limiterConfig{replicas: 1}
	for _, opt := range opts {
		mustNotBeNil(constructor+": option", opt)
		opt(&c)
	}
	return c
}
