package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// bench is what all rows share: one server, one client with go-redis's default settings, an AutoPipeliner of
// it, and how they are loaded.
type bench struct {
	options
	rdb     *redis.Client
	auto    redis.UniversalClient
	control *redis.Client // for what is not measured
}

func newBench(tb testing.TB, srv *redistest.Server, o options) (*bench, error) {
	b := &bench{options: o, control: srv.Client(tb)}
	b.rdb = redis.NewClient(&redis.Options{
		Addr: srv.Addr,
		// A wrapped connection spares all rows go-redis's look at the socket before each call, as in results.md.
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			return struct{ net.Conn }{conn}, err
		},
		AutoPipelineOptions: &redis.AutoPipelineOptions{MaxBatchSize: 16, MaxConcurrentBatches: 4, Unordered: true},
	})
	tb.Cleanup(func() { _ = b.rdb.Close() })
	var err error
	b.auto, err = b.rdb.AutoPipeline()
	return b, err
}

// usersOf are the row's own users.
func (b *bench) usersOf(r row) []string {
	n := b.users
	switch {
	case r.users > 0:
		n = r.users
	case r.full:
		n = max(1, n/r.windows[0].limit) // as many calls fill their windows
	}
	users := make([]string, n)
	for i := range users {
		users[i] = fmt.Sprintf("user_%d_%d", r.number, i)
	}
	return users
}

// with opens the row, gives f its load, and closes it.
func (b *bench) with(r row, f func(*load) error) error {
	callers, rdb := b.concurrency, redis.UniversalClient(b.rdb)
	if r.callers > 0 {
		callers = r.callers
	}
	if r.auto {
		rdb = b.auto
	}
	if !r.http {
		decision, err := r.limiter.open(rdb, r.windows)
		if err != nil {
			return err
		}
		return f(newLoad(slices.Repeat([]decide{decision}, callers), b.usersOf(r)))
	}
	addr, stop, err := serve(r.limiter, rdb, r.windows)
	if err != nil {
		return err
	}
	defer stop()
	client := &fasthttp.HostClient{Addr: addr, MaxConns: callers}
	defer client.CloseIdleConnections()
	workers := make([]decide, callers)
	for i := range workers {
		workers[i] = get(client)
	}
	return f(newLoad(workers, b.usersOf(r)))
}

// warmLimit bounds a warming up.
const warmLimit = 30 * time.Second

// warm lets every user of the row decide once, or as often as fills the window, if the logs stay as they are
// then.
func (b *bench) warm(ctx context.Context, r row) error {
	return b.with(r, func(l *load) error {
		turn := l.turn()
		switch {
		case r.remade():
			turn = 1
		case r.full:
			turn *= r.windows[0].limit
		}
		_, err := l.run(ctx, warmLimit, turn)
		return err
	})
}

// verify fails unless the row limits: of six calls of a new user, one after the other, three are admitted
// where the limit is three, and none after the first rejection. What looks fast because it does not limit
// would be found here.
func (b *bench) verify(ctx context.Context, r row) error {
	trials := [][]int{{3, 100}, {100, 3}}
	if r.visits > 0 {
		return nil // whose verdicts are known beforehand
	}
	if len(r.windows) < 2 || r.http || r.limiter.all != nil { // a tier's day is never tighter than its minute
		trials = trials[:min(1, len(r.windows))]
	}
	for _, limits := range trials {
		if err := b.control.FlushAll(ctx).Err(); err != nil {
			return err
		}
		err := b.with(r.withLimits(limits...), func(l *load) error {
			for call := range 6 {
				v, err := l.workers[call%len(l.workers)](ctx, "new_user")
				if err == nil && v.allowed != (call < 3) {
					err = fmt.Errorf("limits %v: call %d of a new user: allowed %t", limits, call+1, v.allowed)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
