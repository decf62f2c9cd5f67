package luascripts_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

func TestPeekTellsWhatAdmitWouldFind(t *testing.T) {
	rdb := redistest.Client(t)
	key := redistest.ID(t)
	run(t, rdb, key, epoch, time.Minute, 3, "a")
	run(t, rdb, key, epoch+10_000, time.Minute, 3, "b")
	run(t, rdb, key, epoch+20_000, time.Minute, 3, "c")

	for _, tt := range []struct {
		at    int64
		limit int
		want  reply
	}{
		{20_000, 4, reply{Allowed: true, Count: 3}},
		{20_000, 3, reply{Count: 3, RetryAfter: 40 * time.Second}},
		{20_000, 1, reply{Count: 3, RetryAfter: 60 * time.Second}},
		{20_000, 0, reply{Count: 3, RetryAfter: 60 * time.Second}},
		{59_999, 3, reply{Count: 3, RetryAfter: time.Millisecond}},
		{60_000, 3, reply{Allowed: true, Count: 2}},
		{70_000, 1, reply{Count: 1, RetryAfter: 10 * time.Second}},
		{90_000, 1, reply{Allowed: true}},
	} {
		replies, err := callPeek(t.Context(), rdb, strconv.FormatInt(epoch+tt.at, 10), []string{key},
			[]budget{newBudget(tt.limit, time.Minute)})
		require.NoError(t, err)
		require.Equal(t, []reply{tt.want}, replies, "at %d ms, limit %d", tt.at, tt.limit)
	}
	require.EqualValues(t, 3, rdb.ZCard(t.Context(), key).Val(), "a peek does not even trim")
}

func TestPeekReportsEveryWindowAndWritesNothing(t *testing.T) {
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	run(t, rdb, "k:60", epoch, time.Minute, 1, "a")
	dirty := func() string {
		return rdb.InfoMap(t.Context(), "persistence").Val()["Persistence"]["rdb_changes_since_last_save"]
	}
	before := dirty()

	replies, err := callPeek(t.Context(), rdb, strconv.Itoa(epoch+1), []string{"k:60", "k:86400"},
		[]budget{newBudget(1, time.Minute), newBudget(1, 24*time.Hour)})
	require.NoError(t, err)
	require.Equal(t, []reply{{Count: 1, RetryAfter: 59_999 * time.Millisecond}, {Allowed: true}}, replies)
	require.NotEmpty(t, before)
	require.Equal(t, before, dirty(), "the server counts no change")
}

func TestPeekServerTime(t *testing.T) {
	rdb := redistest.Client(t)
	key := redistest.ID(t)
	run(t, rdb, key, serverTime, time.Hour, 1, "a")
	replies, err := callPeek(t.Context(), rdb, serverTime, []string{key}, []budget{newBudget(1, time.Hour)})
	require.NoError(t, err)
	require.False(t, replies[0].Allowed)
	require.InDelta(t, time.Hour, replies[0].RetryAfter, float64(10*time.Second))
}
