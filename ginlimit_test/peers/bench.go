package main

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// bench is what all rows share: one server, one client with go-redis's default settings and its
// AutoPipeliner with redisclient's, which suit all rows, and how they are loaded.
type bench struct {
	rdb     *redis.Client
	auto    redis.UniversalClient // rdb's AutoPipeliner
	ours    redis.UniversalClient // what ginlimit's users have in its place
	control *redis.Client         // for what is not measured
	writes  *atomic.Int64         // by rdb and auto, on all connections

	users       int // of each row, with keys of its own
	concurrency int
	duration    time.Duration // of a cell
}

func newBench(tb testing.TB, srv *redistest.Server, o options) (*bench, error) {
	b := &bench{
		control:     srv.Client(tb),
		writes:      new(atomic.Int64),
		users:       o.users,
		concurrency: o.concurrency,
		duration:    o.duration,
	}
	b.rdb = redis.NewClient(&redis.Options{
		Addr:                  srv.Addr,
		Dialer:                b.dial,
		ContextTimeoutEnabled: o.deadlines,
		AutoPipelineOptions:   &redis.AutoPipelineOptions{MaxBatchSize: 16, MaxConcurrentBatches: 4, Unordered: true},
	})
	tb.Cleanup(func() { _ = b.rdb.Close() })
	auto, err := b.rdb.AutoPipeline()
	if err != nil {
		return nil, err
	}
	b.auto, b.ours = auto, auto
	if o.deadlines {
		pipeline, err := redisclient.AutoPipeline(b.rdb)
		if err != nil {
			return nil, err
		}
		tb.Cleanup(func() { _ = pipeline.Close() })
		b.ours = pipeline.(redis.UniversalClient) // it is an AutoPipeliner with deadlines
	}
	return b, nil
}

// client is the row's: both stand on the same options.
func (b *bench) client(r row) redis.UniversalClient {
	switch {
	case r.auto && r.limiter.ours:
		return b.ours
	case r.auto:
		return b.auto
	}
	return b.rdb
}

// usersOf are the row's own users.
func (b *bench) usersOf(r row) []string {
	n := b.users
	if r.full {
		n = max(1, n/r.windows[0].limit) // as many calls fill their windows
	}
	users := make([]string, n)
	for i := range users {
		users[i] = fmt.Sprintf("user_%d_%d", r.number, i)
	}
	return users
}

// dial is go-redis's, with a count.
func (b *bench) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 5 * time.Minute}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &countedConn{conn, b.writes}, nil
}

// countedConn counts what go-redis flushes: one write is one round trip, of a command or of a
// pipeline. A hook would count too, but AutoPipeline does more work when there is one.
type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}
