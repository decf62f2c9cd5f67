package ginlimit_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// A Redis whose memory is full, with maxmemory-policy noeviction, refuses others' writes and still decides:
// admissions are written, above maxmemory, since the scripts' first write is one that frees memory. New users
// are no exception, nor is a script that has to be loaded again. R46.
func TestMemoryFull(t *testing.T) {
	captureLogs(t)
	for mode, opts := range modes {
		t.Run(mode, func(t *testing.T) {
			srv := redistest.Start(t)
			rdb := srv.Client(t)
			l := ginlimit.NewLimiter(rdb)
			api := serve(t, ginlimit.New(l, resolver, append(opts[:len(opts):len(opts)],
				ginlimit.WithTiers(table(t, 3, 3)))...))
			require.Equal(t, "3 2 minute", api.as("alice").limits(t))
			fillMemory(t, rdb)
			used := usedMemory(t, rdb)

			for _, user := range []string{"alice", "bob"} { // one with a key, and one without
				for api.as(user).StatusCode == http.StatusOK {
					require.LessOrEqual(t, api.Handled.Load(), int64(6))
				}
				minute, day := "ratelimit:"+user+":60", "ratelimit:"+user+":86400"
				require.EqualValues(t, 3, rdb.ZCard(t.Context(), minute).Val())
				require.EqualValues(t, 3, rdb.ZCard(t.Context(), day).Val())
				require.Positive(t, rdb.TTL(t.Context(), minute).Val())
			}
			require.EqualValues(t, 6, api.Handled.Load(), "three each, one of them before")

			left, err := l.Usage(t.Context(), "bob", tiers.Limits{PerMinute: 3, PerDay: 3})
			require.NoError(t, err)
			require.Equal(t, []int{0, 0}, []int{left[0].Remaining, left[1].Remaining})
			require.NoError(t, rdb.Del(t.Context(), "ratelimit:bob:60").Err())
			require.Equal(t, "3 0 day", api.as("bob").limits(t))
			require.Zero(t, rdb.Exists(t.Context(), "ratelimit:bob:60").Val(), "the rejected minute went back")
			require.NoError(t, l.Reset(t.Context(), "bob"))
			require.NoError(t, rdb.ScriptFlush(t.Context()).Err())
			require.Equal(t, "3 2 minute", api.as("bob").limits(t))

			for range 500 { // its bound is the number of users, not maxmemory
				require.Equal(t, http.StatusOK, api.as(redistest.ID(t)).StatusCode)
			}
			require.Greater(t, usedMemory(t, rdb), used)
			require.True(t, redis.IsOOMError(rdb.Set(t.Context(), "key", "value", 0).Err()), "it is full still")
		})
	}
}

// Any other policy makes room by evicting counts: users that had nothing left are admitted. R46.
func TestMemoryFullWithEviction(t *testing.T) {
	captureLogs(t)
	for _, policy := range []string{"allkeys-lru", "volatile-ttl"} {
		t.Run(policy, func(t *testing.T) {
			rdb := redistest.Start(t, "--maxmemory-policy", policy).Client(t)
			l := ginlimit.NewLimiter(rdb)
			rejected := func() bool {
				d, err := l.Check(t.Context(), "alice", 1, time.Minute)
				require.NoError(t, err)
				return !d.Allowed
			}
			require.False(t, rejected())
			require.True(t, rejected())
			require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
			require.Eventually(t, func() bool { return !rejected() }, 5*time.Second, time.Millisecond)
		})
	}
}

// fillMemory makes the server's memory full: there is nothing that it could evict.
func fillMemory(t *testing.T, rdb *redis.Client) {
	t.Helper()
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	require.True(t, redis.IsOOMError(rdb.Set(t.Context(), "key", "value", 0).Err()))
}

// usedMemory is how many bytes the server's data take.
func usedMemory(t *testing.T, rdb *redis.Client) int64 {
	t.Helper()
	var used int64
	for _, key := range rdb.Keys(t.Context(), "ratelimit:*").Val() {
		used += rdb.MemoryUsage(t.Context(), key).Val()
	}
	return used
}
