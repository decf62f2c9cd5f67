package ginlimit_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// A call that timed out may count when its server wakes: nobody can take back what is on its way. It counts
// at most once in each window, however often the client has sent it, in either form. R41.
func TestACallThatTimedOutCountsAtMostOnce(t *testing.T) {
	captureLogs(t)
	const timeout = 300 * time.Millisecond
	for client, connect := range map[string]func(*testing.T, *redistest.Server) redis.Scripter{
		"redisclient": func(t *testing.T, srv *redistest.Server) redis.Scripter {
			return limiterClient(t, srv.URL()+"?read_timeout=30s")
		},
		"redisclient, with repeats": func(t *testing.T, srv *redistest.Server) redis.Scripter {
			return limiterClient(t, srv.URL()+"?read_timeout=30ms&max_retries=5")
		},
		"go-redis, with repeats": func(t *testing.T, srv *redistest.Server) redis.Scripter {
			rdb := redis.NewClient(&redis.Options{Addr: srv.Addr, ReadTimeout: 30 * time.Millisecond})
			t.Cleanup(func() { _ = rdb.Close() })
			return rdb
		},
	} {
		for mode, opts := range modes {
			t.Run(client+", "+mode, func(t *testing.T) {
				t.Parallel()
				srv := redistest.Start(t)
				l := ginlimit.NewLimiter(connect(t, srv), ginlimit.WithTimeout(timeout))
				api := serve(t, ginlimit.New(l, resolver, opts...))
				require.Eventually(t, func() bool { return api.as("bob").StatusCode == http.StatusOK }, 10*time.Second,
					time.Millisecond) // there is a connection, and the script
				srv.ResetStats(t)

				srv.Pause()
				require.Equal(t, http.StatusServiceUnavailable, api.as("alice").StatusCode)
				srv.Resume()
				require.Eventually(t, func() bool { return srv.Calls(t, "evalsha") > 0 }, 10*time.Second,
					5*time.Millisecond, "it was on its way")

				rdb := srv.Client(t)
				minute := rdb.ZRange(t.Context(), "ratelimit:alice:60", 0, -1).Val()
				day := rdb.ZRange(t.Context(), "ratelimit:alice:86400", 0, -1).Val()
				require.Len(t, minute, 1, "what the docs warn of")
				if opts != nil {
					require.Equal(t, minute, day)
				} else {
					require.Empty(t, day, "nobody asked for it any more")
				}
			})
		}
	}
}
