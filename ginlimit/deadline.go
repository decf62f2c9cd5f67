package ginlimit

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/luascripts"
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

// heedsDeadlines tells whether a client ends a call at its context's deadline, and of one that does
// not, why. Of a Scripter that is not go-redis's own nothing is known.
func heedsDeadlines(rdb redis.Scripter) (heeds bool, why string) {
	const setting = "the Redis client has no ContextTimeoutEnabled; see redisclient.New"
	switch c := rdb.(type) {
	case interface{ Options() *redis.Options }:
		return c.Options().ContextTimeoutEnabled, setting
	case interface{ Options() *redis.ClusterOptions }:
		return c.Options().ContextTimeoutEnabled, setting
	case interface{ Options() *redis.RingOptions }:
		return c.Options().ContextTimeoutEnabled, setting
	case *redis.AutoPipeliner:
		return false, "an AutoPipeliner does not end a call at a deadline; see redisclient.AutoPipeline"
	}
	return false, ""
}

// impatientStore ends a call at its context's deadline, for a client that does not. The call goes on by
// itself until its client gives up.
type impatientStore struct{ next store }

func (s *impatientStore) admit(ctx context.Context, member string, keys []string, budgets []luascripts.Budget) ([]luascripts.Reply, error) {
	return within(ctx, func() ([]luascripts.Reply, error) { return s.next.admit(ctx, member, keys, budgets) })
}

func (s *impatientStore) peek(ctx context.Context, keys []string, budgets []luascripts.Budget) ([]luascripts.Reply, error) {
	return within(ctx, func() ([]luascripts.Reply, error) { return s.next.peek(ctx, keys, budgets) })
}

func (s *impatientStore) giveBack(ctx context.Context, member string, keys []string, budgets []luascripts.Budget) error {
	_, err := within(ctx, func() ([]luascripts.Reply, error) { return nil, s.next.giveBack(ctx, member, keys, budgets) })
	return err
}

func (s *impatientStore) reset(ctx context.Context, keys []string) error {
	_, err := within(ctx, func() ([]luascripts.Reply, error) { return nil, s.next.reset(ctx, keys) })
	return err
}

// within waits for a call until ctx's deadline, which it has. As with a client that heeds deadlines, a
// caller that leaves meanwhile learns what was counted, and may give it back. A panic of the call is
// the caller's.
func within(ctx context.Context, call func() ([]luascripts.Reply, error)) ([]luascripts.Reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	patience, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	defer cancel()

	type outcome struct {
		replies []luascripts.Reply
		err     error
		panic   any
	}
	done := make(chan outcome, 1) // nobody may wait any more
	go func() {
		o := outcome{err: errNoReturn}
		defer func() {
			o.panic = recover()
			done <- o
		}()
		o.replies, o.err = call()
	}()
	select {
	case o := <-done:
		if o.panic != nil {
			panic(o.panic)
		}
		return o.replies, o.err
	case <-patience.Done():
		return nil, patience.Err()
	}
}

// errNoReturn is the error of a call that ended its goroutine.
var errNoReturn = errors.New("ginlimit: the call did not return")

// ended returns ctx's error, also where its deadline has passed and its timer is late: a socket's may
// be first.
func ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}
