package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/valyala/fasthttp"

	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// client is one of the clients that rows share.
type client int

const (
	plain     client = iota // go-redis's default settings
	pipelined               // an AutoPipeliner of it
	deadlines               // of redisclient, by which each of our calls has a deadline
)

func (c client) suffix() string { return [...]string{"", ", AutoPipeline", ", deadlines"}[c] }

// patience is how long a call with a deadline may take. It is far longer than the default, since a busy
// machine must not end the run; what a deadline costs does not depend on its length.
const patience = 10 * time.Second

// bench is what all rows share: one server, its clients, and how they are loaded.
type bench struct {
	options
	clients map[client]redis.UniversalClient
	control *redis.Client // for what is not measured
}

func newBench(tb testing.TB, srv *redistest.Server, o options) (*bench, error) {
	b := &bench{options: o, control: srv.Client(tb)}
	rdb := redis.NewClient(&redis.Options{
		Addr:                srv.Addr,
		AutoPipelineOptions: &redis.AutoPipelineOptions{MaxBatchSize: 16, MaxConcurrentBatches: 4, Unordered: true},
	})
	tb.Cleanup(func() { _ = rdb.Close() })
	auto, err := rdb.AutoPipeline()
	if err != nil {
		return nil, err
	}
	url := "redis://%s?read_timeout=%v&write_timeout=%[2]v&pool_timeout=%[2]v"
	heeding, err := redisclient.New(fmt.Sprintf(url, srv.Addr, patience))
	if err != nil {
		return nil, err
	}
	tb.Cleanup(func() { _ = heeding.Close() })
	b.clients = map[client]redis.UniversalClient{plain: rdb, pipelined: auto, deadlines: heeding}
	return b, nil
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

// open makes the row's callers.
func (b *bench) open(r row) (callers []*caller, stop func()) {
	n, rdb, stop := b.concurrency, b.clients[r.client], func() {}
	if r.callers > 0 {
		n = r.callers
	}
	decisions := make([]decide, n)
	switch r.way {
	case bare:
		w := append(r.windows, window{})[0] // a baseline has none
		decisions = slices.Repeat([]decide{r.limiter.one(rdb, w)}, n)
	case inGin:
		router := newRouter(r.limiter.handlers(rdb, r.windows))
		for i := range decisions {
			decisions[i] = through(router)
		}
	case overHTTP:
		srv := httptest.NewServer(newRouter(r.limiter.handlers(rdb, r.windows)))
		conns := &fasthttp.HostClient{Addr: srv.Listener.Addr().String(), MaxConns: n}
		for i := range decisions {
			decisions[i] = get(conns)
		}
		stop = srv.Close
	}
	return callersOf(decisions, b.usersOf(r)), stop
}

// inParallel gives each caller a lane of its own.
func inParallel(callers []*caller) [][]*caller {
	return slices.Collect(slices.Chunk(callers, 1))
}

// warmLimit bounds a warming up.
const warmLimit = 30 * time.Second

// warm lets every user of the row call, so often as fills the window where it is to be full.
func (b *bench) warm(ctx context.Context, r row) error {
	callers, stop := b.open(r)
	defer stop()
	visits := 1
	if r.full {
		visits = r.windows[0].limit
	}
	_, err := run(ctx, inParallel(callers), visits, warmLimit, nil)
	return err
}

// verify fails unless the row limits: of six calls of a new user, one after the other, three are admitted
// where the limit is three, and none after the first rejection. What looks fast because it does not limit
// would be found here.
func (b *bench) verify(ctx context.Context, r row) error {
	for i := range r.windows {
		if r.visits > 0 || i > 0 && r.limiter.tiered {
			continue // verdicts of visits are known beforehand
		}
		if err := b.control.FlushAll(ctx).Err(); err != nil {
			return err
		}
		trial := r
		trial.full, trial.windows = false, []window{{100, time.Minute}, {100, 24 * time.Hour}}[:len(r.windows)]
		trial.windows[i].limit = 3
		callers, stop := b.open(trial)
		defer stop()
		for call := range 6 {
			v, err := callers[call%len(callers)].decide(ctx, "new_user")
			if err == nil && v.allowed != (call < 3) {
				err = fmt.Errorf("window %d: call %d of a new user: allowed %t", i, call+1, v.allowed)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
