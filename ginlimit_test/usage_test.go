package ginlimit_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

var minuteAndDay = tiers.Limits{PerMinute: 3, PerDay: 5}

// Usage tells of every budget what a call now would find, shortest window first, in Redis and in memory.
func TestUsage(t *testing.T) {
	c := newClock()
	for name, l := range map[string]*ginlimit.Limiter{
		"redis":  ginlimit.NewLimiter(redistest.Start(t).Client(t), ginlimit.WithClock(c.now)),
		"memory": ginlimit.NewMemoryLimiter(ginlimit.WithClock(c.now)),
	} {
		t.Run(name, func(t *testing.T) {
			captureLogs(t)
			usage := func(l *ginlimit.Limiter, limits tiers.Limits) []ginlimit.Decision {
				t.Helper()
				decisions, err := l.Usage(t.Context(), "alice", limits)
				require.NoError(t, err)
				return decisions
			}
			minute := ginlimit.Decision{Allowed: true, Limit: 3, Remaining: 3, Window: time.Minute}
			day := ginlimit.Decision{Allowed: true, Limit: 5, Remaining: 5, Window: 24 * time.Hour}
			require.Equal(t, []ginlimit.Decision{minute, day}, usage(l, minuteAndDay), "nothing taken")

			admit := func(l *ginlimit.Limiter) {
				api := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 3, 5)),
					ginlimit.WithAtomicWindows()))
				require.Equal(t, 200, api.as("alice").StatusCode)
			}
			admit(l)
			admit(l)
			minute.Remaining, day.Remaining = 1, 3
			require.Equal(t, []ginlimit.Decision{minute, day}, usage(l, minuteAndDay))
			require.Equal(t, []ginlimit.Decision{minute, day}, usage(l, minuteAndDay), "it takes nothing")

			c.advance(10 * time.Second)
			admit(l)
			minute.Allowed, minute.Remaining, minute.RetryAfter = false, 0, 50*time.Second
			day.Remaining = 2
			require.Equal(t, []ginlimit.Decision{minute, day}, usage(l, minuteAndDay), "a full one hides no other")

			images := l.Scope("images")
			admit(images)
			of := usage(images, minuteAndDay)
			require.Equal(t, []int{2, 4}, []int{of[0].Remaining, of[1].Remaining})
			require.Equal(t, "images", of[0].Scope)
			require.Equal(t, []ginlimit.Decision{minute, day}, usage(l, minuteAndDay), "scopes do not meet")

			day.Limit, day.Remaining, day.Allowed, day.RetryAfter = 2, 0, false, 24*time.Hour-10*time.Second
			lowered := usage(l, tiers.Limits{PerMinute: 3, PerDay: 2})
			require.Equal(t, []ginlimit.Decision{minute, day}, lowered, "a limit below what was taken")
			require.Empty(t, usage(l, tiers.Limits{}), "no budget")

			l.SetDisabled(true)
			defer l.SetDisabled(false)
			for i, d := range usage(l, minuteAndDay) {
				require.True(t, d.Allowed)
				require.Equal(t, []int{3, 5}[i], d.Remaining, "the kill switch")
			}
			_, err := l.Usage(t.Context(), "", minuteAndDay)
			require.ErrorIs(t, err, ginlimit.ErrInvalidUserID, "which lets no bad argument pass")
			c.advance(-10 * time.Second)
		})
	}
}

// Usage is one round trip for all budgets, and writes nothing at all.
func TestUsageIsOneRoundTrip(t *testing.T) {
	captureLogs(t)
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	l := ginlimit.NewLimiter(rdb)
	for range 2 {
		_, err := l.Check(t.Context(), "alice", 3, time.Minute)
		require.NoError(t, err)
	}
	_, err := l.Usage(t.Context(), "warm-up", minuteAndDay) // loads the script, once
	require.NoError(t, err)
	// An entry that has left the window, and that a call would trim.
	minute := "ratelimit:alice:60"
	left := time.Now().Add(-2 * time.Minute).UnixMilli()
	require.NoError(t, rdb.Do(t.Context(), "zadd", minute, left, "long ago").Err())

	dirty := func() string {
		stats, err := rdb.InfoMap(t.Context(), "persistence").Result()
		require.NoError(t, err)
		return stats["Persistence"]["rdb_changes_since_last_save"]
	}
	changes := dirty()
	srv.ResetStats(t)
	for range 3 {
		decisions, err := l.Usage(t.Context(), "alice", minuteAndDay)
		require.NoError(t, err)
		require.Equal(t, []int{1, 5}, []int{decisions[0].Remaining, decisions[1].Remaining})
	}
	require.Equal(t, 3, srv.Calls(t, "evalsha"))
	for _, command := range []string{"eval", "multi", "zremrangebyscore", "zadd", "zrem", "expire", "pexpire"} {
		require.Zero(t, srv.Calls(t, command), command)
	}
	require.Equal(t, changes, dirty())
	require.EqualValues(t, 3, rdb.ZCard(t.Context(), minute).Val(), "not even the trim")
	require.EqualValues(t, 1, rdb.Exists(t.Context(), minute, "ratelimit:alice:86400").Val())

	srv.ResetStats(t)
	_, err = l.Usage(t.Context(), "alice", tiers.Limits{})
	require.NoError(t, err)
	require.Zero(t, srv.Calls(t, "evalsha"), "nothing to ask")
}

// Usage fails as Check does: it tells nothing that it does not know.
func TestUsageErrors(t *testing.T) {
	captureLogs(t)
	dead := ginlimit.NewLimiter(deadRedis(t))
	for i := range 10 {
		decisions, err := dead.Usage(t.Context(), "alice", minuteAndDay)
		require.ErrorContains(t, err, "ginlimit: ")
		require.Nil(t, decisions)
		if i > 5 {
			require.ErrorIs(t, err, ginlimit.ErrUnavailable, "the breaker is open")
		}
	}
	dead.SetDisabled(true)
	_, err := dead.Usage(t.Context(), "alice", minuteAndDay)
	require.NoError(t, err, "the kill switch asks nobody")

	rdb := redistest.Start(t).Client(t)
	l := ginlimit.NewLimiter(rdb)
	require.NoError(t, rdb.Set(t.Context(), "ratelimit:alice:86400", "text", 0).Err())
	decisions, err := l.Usage(t.Context(), "alice", minuteAndDay)
	require.ErrorContains(t, err, "WRONGTYPE")
	require.Nil(t, decisions, "not half of the answer")
	gone, leave := context.WithCancel(t.Context())
	leave()
	_, err = l.Usage(gone, "bob", minuteAndDay)
	require.ErrorIs(t, err, context.Canceled)
}
