package ginlimit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// go-redis sends a script again when its reply was lost, up to three times by default. However
// often the server ran it, the request is counted once and told the right remainder.
func TestLostReplies(t *testing.T) {
	for _, clock := range []string{"the server's", "the caller's"} {
		for _, limit := range []int{1, 3} {
			for lost := 1; lost <= 3; lost++ {
				t.Run(fmt.Sprintf("%s clock, limit %d, %d lost", clock, limit, lost), func(t *testing.T) {
					t.Parallel()
					srv := redistest.Start(t)
					proxy := redistest.NewProxy(t, srv.Addr)
					rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr}) // default settings
					t.Cleanup(func() { _ = rdb.Close() })
					var opts []ginlimit.LimiterOption
					if clock == "the caller's" {
						opts = append(opts, ginlimit.WithClock(newClock().now))
					}
					l := ginlimit.NewLimiter(rdb, opts...)
					_, err := l.Check(t.Context(), "warm-up", 1, time.Minute) // loads the script
					require.NoError(t, err)
					srv.ResetStats(t)

					for used := 1; used <= limit; used++ {
						proxy.DropReplies(lost)
						d, err := l.Check(t.Context(), "alice", limit, time.Minute)
						require.NoError(t, err)
						require.True(t, d.Allowed, "call %d", used)
						require.Equal(t, limit-used, d.Remaining)
					}
					require.Equal(t, limit*lost, proxy.Dropped())
					require.Equal(t, limit*(lost+1), srv.Calls(t, "evalsha"), "the server ran each of them again")
					require.EqualValues(t, limit, srv.Client(t).ZCard(t.Context(), "ratelimit:alice:60").Val())

					proxy.DropReplies(lost)
					d, err := l.Check(t.Context(), "alice", limit, time.Minute)
					require.NoError(t, err)
					require.False(t, d.Allowed, "a rejection is repeated as a rejection")
				})
			}
		}
	}
}

func TestLostRepliesOfARequest(t *testing.T) {
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			proxy := redistest.NewProxy(t, srv.Addr)
			rdb := redis.NewClient(&redis.Options{Addr: proxy.Addr})
			t.Cleanup(func() { _ = rdb.Close() })
			api := serve(t, ginlimit.New(ginlimit.NewLimiter(rdb), resolver,
				append(opts, ginlimit.WithTiers(table(t, 1, 2)))...))
			proxy.DropReplies(3)
			require.Equal(t, "1 0 minute", api.as("alice").limits(t))
			require.Equal(t, 3, proxy.Dropped())
			for _, key := range []string{"ratelimit:alice:60", "ratelimit:alice:86400"} {
				require.EqualValues(t, 1, srv.Client(t).ZCard(t.Context(), key).Val())
			}
		})
	}
}
