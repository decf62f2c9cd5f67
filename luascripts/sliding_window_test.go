package luascripts_test

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/luascripts"
)

// epoch is an arbitrary now of the caller's clock; rows of the tests count milliseconds from it.
const epoch = 1_732_883_722_123

// run executes sliding_window.lua on one key and returns its raw reply.
func run(
	t *testing.T, rdb redis.Scripter, key string, now any, window time.Duration, limit int, member string,
) []int64 {
	t.Helper()
	reply, err := luascripts.SlidingWindow.Run(t.Context(), rdb, []string{key},
		now, window.Milliseconds(), limit, member, int(window.Seconds())+1).Int64Slice()
	require.NoError(t, err)
	return reply
}

// A row is a point of a timeline.
func TestSlidingWindowTimelines(t *testing.T) {
	type row struct {
		at     int64 // ms after epoch
		limit  int
		member string
		want   []int64 // allowed, count, retry_after_ms
	}
	const W = time.Minute
	for name, rows := range map[string][]row{
		"an entry exactly one window old is out": {
			{0, 1, "a", []int64{1, 1, 0}},
			{59_999, 1, "b", []int64{0, 1, 1}},
			{60_000, 1, "c", []int64{1, 1, 0}},
		},
		"the same millisecond counts each member": {
			{0, 2, "a", []int64{1, 1, 0}},
			{0, 2, "b", []int64{1, 2, 0}},
			{0, 2, "c", []int64{0, 2, 60_000}},
		},
		"a burst across a fixed boundary gains nothing": {
			{59_900, 2, "a", []int64{1, 1, 0}},
			{59_900, 2, "b", []int64{1, 2, 0}},
			{60_100, 2, "c", []int64{0, 2, 59_800}},
		},
		"the oldest entry's exit is the retry-after": {
			{0, 2, "a", []int64{1, 1, 0}},
			{10_000, 2, "b", []int64{1, 2, 0}},
			{20_000, 2, "c", []int64{0, 2, 40_000}},
			{60_000, 2, "d", []int64{1, 2, 0}},
			{60_001, 2, "e", []int64{0, 2, 9_999}},
		},
		"a lowered limit waits for the entry that makes room": {
			{0, 3, "a", []int64{1, 1, 0}},
			{10_000, 3, "b", []int64{1, 2, 0}},
			{20_000, 3, "c", []int64{1, 3, 0}},
			{30_000, 1, "d", []int64{0, 3, 50_000}},
			{79_999, 1, "e", []int64{0, 1, 1}},
			{80_000, 1, "f", []int64{1, 1, 0}},
		},
		"a raised limit admits at once": {
			{0, 1, "a", []int64{1, 1, 0}},
			{1, 1, "b", []int64{0, 1, 59_999}},
			{2, 2, "c", []int64{1, 2, 0}},
		},
		"limit 0 rejects for a window":          {{0, 0, "a", []int64{0, 0, 60_000}}},
		"a negative limit rejects for a window": {{0, -1, "a", []int64{0, 0, 60_000}}},
		"limit 0 over a filled window": {
			{0, 1, "a", []int64{1, 1, 0}},
			{1, 0, "b", []int64{0, 1, 60_000}},
		},
		"a repeat is counted once and keeps its score": {
			{0, 2, "a", []int64{1, 1, 0}},
			{500, 2, "a", []int64{1, 1, 0}},
			{59_999, 1, "b", []int64{0, 1, 1}},
			{60_000, 1, "b", []int64{1, 1, 0}},
		},
		"a repeat that finds the window full is admitted": {
			{0, 1, "a", []int64{1, 1, 0}},
			{500, 1, "a", []int64{1, 1, 0}},
			{500, 1, "b", []int64{0, 1, 59_500}},
		},
		"a clock set back one hour never waits longer than the window": {
			{3_600_000, 1, "a", []int64{1, 1, 0}},
			{0, 1, "b", []int64{0, 1, 60_000}},
			{0, 2, "c", []int64{1, 2, 0}},
		},
		"the Unix epoch is a time like any other": {
			{-epoch, 1, "a", []int64{1, 1, 0}},
			{-epoch + 59_999, 1, "b", []int64{0, 1, 1}},
			{-epoch + 60_000, 1, "c", []int64{1, 1, 0}},
		},
		"the largest limit is no error": {{0, 1<<63 - 1, "a", []int64{1, 1, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Client(t)
			key := redistest.ID(t)
			for i, r := range rows {
				got := run(t, rdb, key, epoch+r.at, W, r.limit, r.member)
				require.Equal(t, r.want, got, "step %d, at %d ms, limit %d, member %s", i, r.at, r.limit, r.member)
			}
		})
	}
}

func TestSlidingWindowSmallestLimit(t *testing.T) {
	rdb := redistest.Client(t)
	key := redistest.ID(t)
	run(t, rdb, key, serverTime, time.Minute, 1, "a")
	budgets := []budget{newBudget(math.MinInt, time.Minute)}
	replies, err := callAdmit(t.Context(), rdb, serverTime, "b", []string{key}, budgets)
	require.NoError(t, err)
	require.Equal(t, []reply{{Count: 1, RetryAfter: time.Minute}}, replies)
	replies, err = callPeek(t.Context(), rdb, serverTime, []string{key}, budgets)
	require.NoError(t, err)
	require.Equal(t, []reply{{Count: 1, RetryAfter: time.Minute}}, replies)
}

// The script's own callers may send what no Budget holds: a limit that is no number limits.
func TestSlidingWindowLimitThatIsNaN(t *testing.T) {
	rdb := redistest.Client(t)
	key := redistest.ID(t)
	for range 2 {
		reply, err := luascripts.SlidingWindow.Run(t.Context(), rdb, []string{key},
			epoch, 60_000, "nan", "a", 61).Int64Slice()
		require.NoError(t, err)
		require.Equal(t, []int64{0, 0, 60_000}, reply)
	}
	require.Zero(t, rdb.Exists(t.Context(), key).Val())
}

func TestSlidingWindowLargestWindow(t *testing.T) {
	rdb := redistest.Client(t)
	key := redistest.ID(t)
	const largest = (1<<63 - 1) / time.Second * time.Second
	one := newBudget(1, largest)
	for i, wantAllowed := range []bool{true, false} {
		replies, err := callAdmit(t.Context(), rdb, serverTime, strconv.Itoa(i), []string{key}, []budget{one})
		require.NoError(t, err)
		require.Equal(t, wantAllowed, replies[0].Allowed)
	}
}

func TestSlidingWindowKey(t *testing.T) {
	rdb := redistest.Client(t)
	key := redistest.ID(t)

	run(t, rdb, key, epoch, time.Minute, 2, "a")
	run(t, rdb, key, epoch+1, time.Minute, 2, "b")
	entries, err := rdb.ZRangeWithScores(t.Context(), key, 0, -1).Result()
	require.NoError(t, err)
	require.Equal(t, []redis.Z{{Score: epoch, Member: "a"}, {Score: epoch + 1, Member: "b"}}, entries,
		"scores are Unix milliseconds to the digit")
	ttl, err := rdb.PTTL(t.Context(), key).Result()
	require.NoError(t, err)
	require.InDelta(t, 61*time.Second, ttl, float64(time.Second), "EXPIRE is window + 1 s")
}

func TestSlidingWindowRejectionLeavesTheKeyAlone(t *testing.T) {
	rdb := redistest.Client(t)
	key := redistest.ID(t)
	run(t, rdb, key, epoch, time.Minute, 1, "a")
	require.NoError(t, rdb.PExpire(t.Context(), key, 7*time.Second).Err())

	for i := range 100 {
		require.EqualValues(t, 0, run(t, rdb, key, epoch+1, time.Minute, 1, fmt.Sprint("r", i))[0])
	}
	require.EqualValues(t, 1, rdb.ZCard(t.Context(), key).Val(), "a rejected call adds nothing")
	require.LessOrEqual(t, rdb.PTTL(t.Context(), key).Val(), 7*time.Second, "a rejected call extends nothing")
	require.Positive(t, rdb.PTTL(t.Context(), key).Val())
}

func TestSlidingWindowRejectionOnAnEmptyKeyCreatesNothing(t *testing.T) {
	rdb := redistest.Client(t)
	key := redistest.ID(t)
	run(t, rdb, key, epoch, time.Minute, 0, "a")
	require.Zero(t, rdb.Exists(t.Context(), key).Val(), "no husk is left")
}

func TestSlidingWindowServerTime(t *testing.T) {
	rdb := redistest.Client(t)
	key := redistest.ID(t)
	before, err := rdb.Time(t.Context()).Result()
	require.NoError(t, err)
	run(t, rdb, key, serverTime, time.Minute, 1, "a")
	after, err := rdb.Time(t.Context()).Result()
	require.NoError(t, err)

	score, err := rdb.ZScore(t.Context(), key, "a").Result()
	require.NoError(t, err)
	require.GreaterOrEqual(t, int64(score), before.UnixMilli())
	require.LessOrEqual(t, int64(score), after.UnixMilli())
	require.Equal(t, score, float64(int64(score)), "whole milliseconds")
}

// The server gives its microseconds without leading zeros: every count of digits must come out right. The
// prelude itself is run, on times that a test cannot wait for.
func TestServerTimeDigits(t *testing.T) {
	rdb := redistest.Client(t)
	clock, err := os.ReadFile("clock.lua")
	require.NoError(t, err)
	require.Contains(t, string(clock), "redis.call('TIME')")
	onArguments := "local time = ARGV; local ARGV = {''}\n" +
		strings.Replace(string(clock), "redis.call('TIME')", "time", 1) + "return now"
	for usec, want := range map[string]string{
		"0": "1732883722000", "9": "1732883722000", "999": "1732883722000", "1000": "1732883722001",
		"12345": "1732883722012", "99999": "1732883722099", "100000": "1732883722100", "123456": "1732883722123",
		"999999": "1732883722999",
	} {
		got, err := rdb.Eval(t.Context(), onArguments, nil, "1732883722", usec).Text()
		require.NoError(t, err)
		require.Equal(t, want, got, "usec %s", usec)
	}
}

func TestSlidingWindowAllOrNone(t *testing.T) {
	rdb := redistest.Client(t)
	id := redistest.ID(t)
	minute, day := id+":60", id+":86400"
	keys := []string{minute, day}
	budgets := func(perMinute, perDay int) []budget {
		return []budget{newBudget(perMinute, time.Minute), newBudget(perDay, 24*time.Hour)}
	}
	admit := func(at int64, member string, b []budget) []reply {
		t.Helper()
		replies, err := callAdmit(t.Context(), rdb, strconv.FormatInt(epoch+at, 10), member, keys, b)
		require.NoError(t, err)
		return replies
	}
	cards := func() [2]int64 {
		return [2]int64{rdb.ZCard(t.Context(), minute).Val(), rdb.ZCard(t.Context(), day).Val()}
	}

	require.Equal(t, []reply{{Allowed: true, Count: 1}, {Allowed: true, Count: 1}}, admit(0, "a", budgets(2, 2)))
	both := []reply{{Allowed: true, Count: 1}, {Allowed: true, Count: 1}}
	require.Equal(t, both, admit(5, "a", budgets(2, 2)), "a repeat")
	require.Equal(t, both, admit(5, "a", budgets(1, 1)), "a repeat that finds both full")
	require.Equal(t, [2]int64{1, 1}, cards())

	require.Equal(t, []reply{{Count: 1, RetryAfter: 59 * time.Second}}, admit(1_000, "b", budgets(1, 1)),
		"the minute is the first full window")
	require.Equal(t, []reply{{Allowed: true, Count: 1}, {Count: 1, RetryAfter: 86_399 * time.Second}},
		admit(1_000, "b", budgets(2, 1)), "only the day is full")
	require.Equal(t, [2]int64{1, 1}, cards(), "a rejection takes nothing anywhere")

	// The minute's entry has left, the day's has not: the day's key must not be asked for a minute rejection.
	require.Equal(t, []reply{{Allowed: true, Count: 1}, {Allowed: true, Count: 2}},
		admit(60_000, "b", budgets(1, 2)))
	require.InDelta(t, 61*time.Second, rdb.PTTL(t.Context(), minute).Val(), float64(time.Second))
	require.InDelta(t, 86_401*time.Second, rdb.PTTL(t.Context(), day).Val(), float64(time.Second))
}

// Each of several windows has its own length, limit and TTL.
func TestSlidingWindowFourWindows(t *testing.T) {
	rdb := redistest.Client(t)
	windows := []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}
	var keys []string
	budgets := func(third int) (b []budget) {
		for i, w := range windows {
			limit := 10 + i
			if i == 2 {
				limit = third
			}
			b = append(b, newBudget(limit, w))
		}
		return b
	}
	for i := range windows {
		keys = append(keys, fmt.Sprint(redistest.ID(t), ":", i))
	}
	admit := func(at int64, member string, b []budget) []reply {
		t.Helper()
		replies, err := callAdmit(t.Context(), rdb, strconv.FormatInt(epoch+at, 10), member, keys, b)
		require.NoError(t, err)
		return replies
	}
	admitted := func(counts ...int) (r []reply) {
		for _, n := range counts {
			r = append(r, reply{Allowed: true, Count: n})
		}
		return r
	}

	require.Equal(t, admitted(1, 1, 1, 1), admit(0, "a", budgets(12)))
	require.Equal(t, admitted(1, 2, 2, 2), admit(2_000, "b", budgets(12)), "the second has passed")
	for i, key := range keys {
		require.InDelta(t, windows[i]+time.Second, rdb.PTTL(t.Context(), key).Val(), float64(time.Second),
			"window %d", i)
	}
	require.Equal(t, append(admitted(0, 2), reply{Count: 2, RetryAfter: time.Hour - 3*time.Second}),
		admit(3_000, "c", budgets(2)), "the hour is full, and the reply ends there")
	require.Equal(t, admitted(1, 2, 3, 3), admit(60_000, "c", budgets(12)),
		"nothing was taken, and the minute has lost its oldest")
}

func TestSlidingWindowDoesNotTouchTheKeyBehindTheFullOne(t *testing.T) {
	rdb := redistest.Client(t)
	id := redistest.ID(t)
	minute, other := id+":60", id+":86400"
	require.NoError(t, rdb.Set(t.Context(), other, "of another type", time.Minute).Err())
	b := []budget{newBudget(0, time.Minute), newBudget(9, 24*time.Hour)}

	replies, err := callAdmit(t.Context(), rdb, serverTime, "a", []string{minute, other}, b)
	require.NoError(t, err, "a look at the other key would be WRONGTYPE")
	require.Len(t, replies, 1)

	b[0] = newBudget(1, time.Minute)
	_, err = callAdmit(t.Context(), rdb, serverTime, "a", []string{minute, other}, b)
	require.ErrorContains(t, err, "WRONGTYPE")
	require.Zero(t, rdb.Exists(t.Context(), minute).Val(), "it failed before the first write")
}

// One Check is one script call with four commands in it, and none of them is sent by the client.
func TestSlidingWindowCommands(t *testing.T) {
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	require.NoError(t, luascripts.SlidingWindow.Load(t.Context(), rdb).Err())
	b := []budget{newBudget(1, time.Minute)}
	commands := func(further ...string) map[string]int { // beside those of every decision
		calls := map[string]int{"eval": 0, "zadd": 0, "expire": 0, "zscore": 0, "zrange": 0}
		for _, command := range append(further, "evalsha", "time", "zremrangebyscore", "zcard") {
			calls[command] = 1
		}
		return calls
	}
	for _, tt := range []struct {
		name, member string
		want         map[string]int
	}{
		{"admitted", "a", commands("zadd", "expire")},
		{"rejected", "b", commands("zscore", "zrange")},
		{"repeated", "a", commands("zadd", "zscore")},
	} {
		srv.ResetStats(t)
		_, err := callAdmit(t.Context(), rdb, serverTime, tt.member, []string{"k"}, b)
		require.NoError(t, err)
		for command, want := range tt.want {
			require.Equal(t, want, srv.Calls(t, command), "%s: calls of %s", tt.name, command)
		}
	}
}

func TestScriptFlushLosesNothing(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	b := []budget{newBudget(10, time.Minute)}
	for i := range 5 {
		require.NoError(t, rdb.ScriptFlush(t.Context()).Err())
		replies, err := callAdmit(t.Context(), rdb, serverTime, strconv.Itoa(i), []string{"k"}, b)
		require.NoError(t, err)
		require.Equal(t, i+1, replies[0].Count, "one charge a call")
	}
}

func TestWrongArityIsAnErrorAndWritesNothing(t *testing.T) {
	rdb := redistest.Client(t)
	key := redistest.ID(t)
	for _, args := range [][]any{{}, {epoch}, {epoch, 60_000}, {epoch, "x", 1, "m", 61},
		{epoch, 60_000, "x", "m", 61},
		{epoch, 60_000, 1, "m"}, {epoch, 60_000, 1, "m", "x"}, {epoch, 60_000, 1, "m", 61, 7},
		{"x", 60_000, 1, "m", 61}} {
		require.Error(t, luascripts.SlidingWindow.Run(t.Context(), rdb, []string{key}, args...).Err(), "%v", args)
	}
	require.Zero(t, rdb.Exists(t.Context(), key).Val())
}

func TestMemoryFullStillLimits(t *testing.T) {
	srv := redistest.Start(t, "--maxmemory", "3mb", "--maxmemory-policy", "noeviction")
	rdb := srv.Client(t)
	filler := make([]byte, 100_000)
	for i := 0; ; i++ {
		require.Less(t, i, 1_000, "memory never filled up")
		if err := rdb.Set(t.Context(), fmt.Sprint("filler", i), filler, 0).Err(); err != nil {
			require.True(t, redis.IsOOMError(err), "%v", err)
			break
		}
	}
	b := []budget{newBudget(3, time.Minute)}
	for i := range 5 {
		replies, err := callAdmit(t.Context(), rdb, serverTime, strconv.Itoa(i), []string{"k"}, b)
		require.NoError(t, err)
		require.Equal(t, i < 3, replies[0].Allowed)
	}
}
