package ginlimit

import (
	"fmt"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// LimiterOption adjusts a Limiter. The defaults suit almost everybody.
type LimiterOption func(*limiterConfig)

type limiterConfig struct {
	clock      func() time.Time
	killSwitch func() bool
	names      budget.Names
	timeout    time.Duration
	replicas   int
	rejections int // of WithRejectionCache; 0 = none
}

// WithClock makes the limiter take the time, to the millisecond, from now instead of the Redis
// server's clock. It is for tests and replays: processes whose clocks differ admit too much. Its
// times are at or after the Unix epoch. It panics on nil.
func WithClock(now func() time.Time) LimiterOption {
	mustNotBeNil("WithClock: now", now)
	return func(c *limiterConfig) { c.clock = now }
}

// WithKillSwitch replaces the environment variable RATE_LIMIT_DISABLED: while on returns true,
// every call is allowed and Redis is not asked. It is called at most once for each decision, by
// many goroutines at once. It panics on nil.
func WithKillSwitch(on func() bool) LimiterOption {
	mustNotBeNil("WithKillSwitch: on", on)
	return func(c *limiterConfig) { c.killSwitch = on }
}

// WithHashTags puts the user part of every key in literal braces, so that all keys of a user share
// a Cluster slot. A *redis.ClusterClient and a *redis.Ring get them anyway; the option is for a
// Scripter that hides one, such as a proxy that spreads keys over servers: decisions are then sent one by
// one. It changes the keys, so counts start anew. Memory limiters ignore it.
func WithHashTags() LimiterOption {
	return func(c *limiterConfig) { c.names.HashTags = true }
}

// WithHashTagOf lets users share a Cluster slot: tagOf names the hash tag of a user, such as the organisation
// in "acme/alice", and the keys begin with ratelimit:{acme}acme%2Falice in place of ratelimit:{acme%2Falice}.
// A user and the subject of a WithScopeFor whose id is that tag are then decided in one script call. "" is the
// id itself. TagOf is called for every id, by many goroutines at once, also by Reset and Usage. It must always
// give an id the same tag: another tag is another key. All users of a tag are on one node, so a tag should be
// a small part of all traffic. On a single server and in memory, keys have no tags and the option does
// nothing. It panics on nil.
func WithHashTagOf(tagOf func(userID string) string) LimiterOption {
	mustNotBeNil("WithHashTagOf: function", tagOf)
	return func(c *limiterConfig) { c.names.TagOf = tagOf }
}

// WithKeyPrefix replaces "ratelimit", with which all keys begin, so that staging and production can share
// a Redis. It is made of letters, digits, _ - . @ + = / and, between others, colons; no prefix should be
// another one with a colon and more behind it. Memory limiters have no use for it. It panics on anything
// else.
func WithKeyPrefix(prefix string) LimiterOption {
	if err := budget.CheckPrefix(prefix); err != nil {
		panic("ginlimit: WithKeyPrefix: " + err.Error())
	}
	return func(c *limiterConfig) { c.names.Prefix = prefix }
}

// WithTimeout bounds how long a decision waits for Redis, from connecting to giving back. Where there
// may be something to give back a fifth of d is kept for it; a slot that could not be given back
// in time stays counted until it leaves its window.
//
// The default is DefaultTimeout for a client that keeps to a deadline, as redisclient.New makes them,
// and none for other clients: see ContextTimeoutEnabled of go-redis. Given for another client, it
// costs a goroutine a call, and a call that was given up goes on there until the client gives up too.
//
// A request whose own deadline is sooner bounds its decision too, with any client: at four fifths of the
// time that it has left, so that the failure policy can still answer. Memory limiters ignore the option.
// It panics unless d is positive.
func WithTimeout(d time.Duration) LimiterOption {
	if d <= 0 {
		panic(fmt.Sprintf("ginlimit: WithTimeout: %v is not positive", d))
	}
	return func(c *limiterConfig) { c.timeout = d }
}

// WithReplicas divides every limit by n, for a memory limiter that is one of n replicas behind a
// load balancer: together they then admit no more than the limit. It rounds down, but to no less
// than 1, so a limit below n admits up to n in all. It panics unless n is positive, and NewLimiter
// panics on it: Redis counts for all replicas.
func WithReplicas(n int) LimiterOption {
	if n <= 0 {
		panic(fmt.Sprintf("ginlimit: WithReplicas: %d is not positive", n))
	}
	return func(c *limiterConfig) { c.replicas = n }
}

// WithRejectionCache remembers the latest rejections of up to size keys in this process, so that a caller who
// hammers costs Redis about one call a second and process instead of one a request. A request that is known
// to be rejected until a moment is answered without Redis, for a second at most, and never later than that
// moment; its Retry-After runs down. Another limit is another question, so a change of tier counts at once;
// so does what this process gives back, refunds or resets. Room that another process makes may be seen up to
// a second later. About 300 bytes a key. It panics unless size is positive.
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
