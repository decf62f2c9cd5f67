package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// HeedsDeadlines tells whether a client ends a call at its context's deadline by itself. This is known only
// of go-redis's own clients, and of clients that show the same options.
func HeedsDeadlines(rdb redis.Scripter) (heeds, known bool) {
	switch c := rdb.(type) {
	case interface{ Options() *redis.Options }:
		return c.Options().ContextTimeoutEnabled, true
	case interface{ Options() *redis.ClusterOptions }:
		return c.Options().ContextTimeoutEnabled, true
	case interface{ Options() *redis.RingOptions }:
		return c.Options().ContextTimeoutEnabled, true
	case *redis.AutoPipeliner:
		return false, true
	}
	return false, false
}

// deadline ends a call at its context's deadline for a client that does not. It costs a goroutine a call,
// where there is a deadline. A call that was given up goes on by itself until its client gives up too.
type deadline struct{ next runner }

// run waits for the reply until ctx's deadline. As with a client that heeds deadlines, a caller that leaves
// before learns what was counted, and may give it back. A panic of the call is the caller's.
func (d deadline) run(ctx context.Context, script *redis.Script, keys []string, args []any) (any, error) {
	until, ok := ctx.Deadline()
	if !ok {
		return d.next.run(ctx, script, keys, args)
	}
	if err := over(ctx); err != nil {
		return nil, err
	}
	ended, cancel := context.WithDeadline(context.WithoutCancel(ctx), until)
	defer cancel()

	type outcome struct {
		reply any
		err   error
		panic any
	}
	done := make(chan outcome, 1) // its reader may have left
	go func() {
		o := outcome{err: errNoReturn}
		defer func() {
			o.panic = recover()
			done <- o
		}()
		o.reply, o.err = d.next.run(ctx, script, keys, args)
	}()
	select {
	case o := <-done:
		if o.panic != nil {
			panic(o.panic)
		}
		return o.reply, o.err
	case <-ended.Done():
		return nil, ended.Err()
	}
}

// over returns ctx's error. It also looks at the deadline itself, since the timer may be late.
func over(ctx context.Context) error {
	if until, ok := ctx.Deadline(); ok && !time.Now().Before(until) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// errNoReturn is the error of a call that ended its goroutine.
var errNoReturn = errors.New("the call did not return")
