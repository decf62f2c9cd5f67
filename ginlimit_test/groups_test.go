package ginlimit_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// clients are one of go-redis's default settings, and redisclient's, which heeds deadlines.
var clients = map[string]func(t *testing.T, addr string) redis.UniversalClient{
	"go-redis": func(t *testing.T, addr string) redis.UniversalClient {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = rdb.Close() })
		return rdb
	},
	"redisclient": func(t *testing.T, addr string) redis.UniversalClient {
		rdb, err := redisclient.New("redis://" + addr + "?max_retries=3&max_retry_backoff=1ms")
		require.NoError(t, err)
		t.Cleanup(func() { _ = rdb.Close() })
		return rdb
	},
}

func TestGroupsAreExact(t *testing.T) {
	captureLogs(t)
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t)
			a, b := ginlimit.NewLimiter(client(t, srv.Addr)), ginlimit.NewLimiter(client(t, srv.Addr))
			for range 5 {
				require.EqualValues(t, 10, storm(t, 100, 10, redistest.ID(t), a, b))
				require.NoError(t, srv.Client(t).ScriptFlush(t.Context()).Err())
				require.EqualValues(t, 10, storm(t, 100, 10, redistest.ID(t), a, b),
					"NOSCRIPT loads the script")
			}
		})
	}
}

func TestGroupsShareRoundTrips(t *testing.T) {
	captureLogs(t)
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t)
			admin, l := srv.Client(t), ginlimit.NewLimiter(client(t, srv.Addr))
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
		})
	}
}

func TestGroupsErrors(t *testing.T) {
	captureLogs(t)
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t)
			l := ginlimit.NewLimiter(client(t, srv.Addr))
			require.NoError(t, srv.Client(t).Set(t.Context(), "ratelimit:alice:60", "text", 0).Err())
			_, err := l.Check(t.Context(), "alice", 1, time.Minute)
			require.ErrorContains(t, err, "WRONGTYPE")
			d, err := l.Check(t.Context(), "bob", 1, time.Minute)
			require.NoError(t, err)
			require.True(t, d.Allowed, "an error is its own call's")
		})
	}
}

func TestGroupsLostReplies(t *testing.T) {
	captureLogs(t)
	for name, client := range clients {
		for lost := 1; lost <= 3; lost++ {
			t.Run(fmt.Sprint(name, " ", lost), func(t *testing.T) {
				srv := redistest.Start(t)
				proxy := redistest.NewProxy(t, srv.Addr)
				l := ginlimit.NewLimiter(client(t, proxy.Addr))
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
