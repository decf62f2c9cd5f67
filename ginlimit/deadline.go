package ginlimit

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
)

// DefaultTimeout bounds a decision on Redis, giving back included, unless WithTimeout says otherwise.
const DefaultTimeout = 100 * time.Millisecond

// deadline is when a decision that begins now must have ended, giving back included.
func (l *Limiter) deadline() time.Time { return time.Now().Add(l.timeout) }

// reserve is the part of a decision's time that is kept for giving back, where there may be
// something to give: a Redis that hangs then costs nothing in limiters before, which may have another.
func (l *Limiter) reserve() time.Duration { return l.timeout / 5 }

// impatientKey marks the context of a caller whose own deadline is ahead of the limiter's.
type impatientKey struct{}

// bounded returns ctx with the deadline of a decision, where that makes a difference.
func (l *Limiter) bounded(ctx context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	if !l.heedsDeadlines {
		return ctx, func() {}
	}
	if callers, ok := ctx.Deadline(); ok && callers.Before(deadline) {
		return context.WithValue(ctx, impatientKey{}, true), func() {}
	}
	return context.WithDeadline(ctx, deadline)
}

// heedsDeadlines tells whether a client ends a call at its context's deadline. Where it does not,
// one warning names the cause; of a Scripter that is not go-redis's own nothing is known.
func heedsDeadlines(rdb redis.Scripter) bool {
	var heeds bool
	switch c := rdb.(type) {
	case interface{ Options() *redis.Options }:
		heeds = c.Options().ContextTimeoutEnabled
	case interface{ Options() *redis.ClusterOptions }:
		heeds = c.Options().ContextTimeoutEnabled
	case interface{ Options() *redis.RingOptions }:
		heeds = c.Options().ContextTimeoutEnabled
	case *redis.AutoPipeliner:
		slog.Warn("ginlimit: an AutoPipeliner does not end a call at a deadline, so a hung Redis may hold " +
			"requests for its client's ReadTimeout; see redisclient.AutoPipeline")
		return false
	default:
		return false
	}
	if !heeds {
		slog.Warn("ginlimit: the Redis client has no ContextTimeoutEnabled, so a hung Redis may hold " +
			"requests for its ReadTimeout and retries; see redisclient.New")
	}
	return heeds
}
