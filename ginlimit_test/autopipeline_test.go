package ginlimit_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// pipelines are the two ways to share round trips: go-redis's own, over a client of default
// settings, and redisclient's, which heeds deadlines.
var pipelines = map[string]func(t *testing.T, addr string) redis.Scripter{
	"go-redis": func(t *testing.T, addr string) redis.Scripter {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		p, err := rdb.AutoPipeline()
		require.NoError(t, err)
		t.Cleanup(func() { _, _ = p.Close(), rdb.Close() })
		return p
	},
	"redisclient": func(t *testing.T, addr string) redis.Scripter {
		address := "redis://" + addr + "?max_retries=3&max_retry_backoff=1ms"
		if base, settings, ok := strings.Cut(addr, "?"); ok {
			address = "redis://" + base + "?" + settings
		}
		rdb, err := redisclient.New(address)
		require.NoError(t, err)
		p, err := redisclient.AutoPipeline(rdb)
		require.NoError(t, err)
		t.Cleanup(func() { _, _ = p.Close(), rdb.Close() })
		return p
	},
}

func TestAutoPipelineIsExact(t *testing.T) {
	captureLogs(t)
	for name, pipeline := range pipelines {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t)
			a, b := ginlimit.NewLimiter(pipeline(t, srv.Addr)), ginlimit.NewLimiter(pipeline(t, srv.Addr))
			for range 5 {
				require.EqualValues(t, 10, storm(t, 100, 10, redistest.ID(t), a, b))
				require.NoError(t, srv.Client(t).ScriptFlush(t.Context()).Err())
				require.EqualValues(t, 10, storm(t, 100, 10, redistest.ID(t), a, b),
					"NOSCRIPT in a pipeline loads the script")
			}
		})
	}
}

func TestAutoPipelineSharesRoundTrips(t *testing.T) {
	captureLogs(t)
	for name, pipeline := range pipelines {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t)
			admin, l := srv.Client(t), ginlimit.NewLimiter(pipeline(t, srv.Addr))
			reads := func() int {
				info, err := admin.InfoMap(t.Context(), "stats").Result()
				require.NoError(t, err)
				n, err := strconv.Atoi(info["Stats"]["total_reads_processed"])
				require.NoError(t, err)
				return n
			}
			_, err := l.Check(t.Context(), "warm-up", 1, time.Minute)
			require.NoError(t, err)
			const callers, each = 64, 20
			before := reads()
			var wg sync.WaitGroup
			for i := range callers {
				wg.Go(func() {
					for range each {
						if _, err := l.Check(t.Context(), fmt.Sprint("user", i), each, time.Minute); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			require.Less(t, reads()-before, callers*each/4)
			if name == "redisclient" {
				clients, err := admin.ClientList(t.Context()).Result()
				require.NoError(t, err)
				require.Greater(t, strings.Count(clients, "cmd=evalsha"), 1, "several batches were on their way at once")
			}
		})
	}
}

func TestAutoPipelineErrors(t *testing.T) {
	captureLogs(t)
	for name, pipeline := range pipelines {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t)
			l := ginlimit.NewLimiter(pipeline(t, srv.Addr))
			require.NoError(t, srv.Client(t).Set(t.Context(), "ratelimit:alice:60", "text", 0).Err())
			_, err := l.Check(t.Context(), "alice", 1, time.Minute)
			require.ErrorContains(t, err, "WRONGTYPE")
			d, err := l.Check(t.Context(), "bob", 1, time.Minute)
			require.NoError(t, err)
			require.True(t, d.Allowed, "an error is its own call's")
		})
	}
}

func TestAutoPipelineLostReplies(t *testing.T) {
	captureLogs(t)
	for name, pipeline := range pipelines {
		for lost := 1; lost <= 3; lost++ {
			t.Run(fmt.Sprint(name, " ", lost), func(t *testing.T) {
				srv := redistest.Start(t)
				proxy := redistest.NewProxy(t, srv.Addr)
				l := ginlimit.NewLimiter(pipeline(t, proxy.Addr))
				_, err := l.Check(t.Context(), "warm-up", 1, time.Minute)
				require.NoError(t, err)
				proxy.DropReplies(lost)
				d, err := l.Check(t.Context(), "alice", 1, time.Minute)
				require.NoError(t, err)
				require.True(t, d.Allowed)
				require.Equal(t, lost, proxy.Dropped())
				require.EqualValues(t, 1, srv.Client(t).ZCard(t.Context(), "ratelimit:alice:60").Val())
			})
		}
	}
}

func TestAutoPipelineHeedsTheTimeout(t *testing.T) {
	captureLogs(t)
	srv := redistest.Start(t)
	l := ginlimit.NewLimiter(pipelines["redisclient"](t, srv.Addr+"?read_timeout=30s"))
	_, err := l.Check(t.Context(), "alice", 9, time.Minute)
	require.NoError(t, err)
	srv.Pause()
	start := time.Now()
	_, err = l.Check(t.Context(), "alice", 9, time.Minute)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(start), 5*time.Second, "the deadline ended it, not ReadTimeout")
	srv.Resume()
	require.Eventually(t, func() bool {
		_, err := l.Check(t.Context(), "alice", 9, time.Minute)
		return err == nil
	}, 5*time.Second, 20*time.Millisecond)
}

func TestAutoPipelineOnACluster(t *testing.T) {
	captureLogs(t)
	cluster := redistest.StartCluster(t, 3, 0)
	rdb, err := redisclient.New(cluster.Addrs()...)
	require.NoError(t, err)
	p, err := redisclient.AutoPipeline(rdb)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = p.Close(), rdb.Close() })
	api := serve(t, ginlimit.New(ginlimit.NewLimiter(p), resolver, ginlimit.WithAtomicWindows()))
	for i := range 20 {
		user := fmt.Sprint("user", i)
		require.Equal(t, "5 4 minute", api.as(user).limits(t))
		require.EqualValues(t, 1, rdb.Exists(t.Context(), "ratelimit:{"+user+"}:60").Val(),
			"hash tags by themselves")
	}
}
