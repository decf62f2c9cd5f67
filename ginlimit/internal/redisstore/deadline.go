package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// HeedsDeadlines reports whether a client itself ends a call at its context's deadline. This is known only
// for go-redis's clients, and for clients with the same options.
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

// deadline ends a call at its context's deadline, for a client that does not. It costs a goroutine for each
// call with a deadline. A call that was given up goes on until its client gives up, too.
type deadline struct{ next runner }

// run waits for the reply until ctx's deadline. As with a client that heeds deadlines, it goes on waiting if
// the caller leaves before, so that what was counted can be given back. It passes on a panic of the call.
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

// over returns ctx's error. It also compares the deadline with the time, because the timer may be late.
func over(ctx context.Context) error {
	if until, ok := ctx.Deadline(); ok && !time.Now().Before(until) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// errNoReturn is the error of a call that ended its goroutine.
var errNoReturn = errors.New("the call did not return")
