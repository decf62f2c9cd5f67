package ginlimit_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

func TestScopesHaveKeysOfTheirOwn(t *testing.T) {
	rdb := redistest.Client(t)
	l := ginlimit.NewLimiter(rdb)
	id := redistest.ID(t)
	for _, scoped := range []*ginlimit.Limiter{l, l.Scope("images"), l.Scope("a:b"), l.Scope("60")} {
		d, err := scoped.Check(t.Context(), id, 1, time.Minute)
		require.NoError(t, err)
		require.True(t, d.Allowed)
	}
	for _, same := range []*ginlimit.Limiter{l.Scope(""), l.Scope("a").Scope("images"), l.Scope("a").Scope("")} {
		d, err := same.Check(t.Context(), id, 1, time.Minute)
		require.NoError(t, err)
		require.False(t, d.Allowed, "a second Scope replaces the first, and an empty one is none")
	}
	require.NoError(t, l.Scope("images").Reset(t.Context(), id))
	d, err := l.Scope("images").Check(t.Context(), id, 1, time.Minute)
	require.NoError(t, err)
	require.True(t, d.Allowed)
	d, err = l.Check(t.Context(), id, 1, time.Minute)
	require.NoError(t, err)
	require.False(t, d.Allowed, "a reset clears its own scope only")
}

func TestResetClearsMinuteAndDay(t *testing.T) {
	rdb := redistest.Client(t)
	l := ginlimit.NewLimiter(rdb)
	id := redistest.ID(t)
	windows := []time.Duration{time.Minute, 24 * time.Hour, time.Hour}
	for _, window := range windows {
		_, err := l.Check(t.Context(), id, 1, window)
		require.NoError(t, err)
	}
	require.NoError(t, l.Reset(t.Context(), id))
	for i, window := range windows {
		d, err := l.Peek(t.Context(), id, 1, window)
		require.NoError(t, err)
		require.Equal(t, i < 2, d.Allowed, "%v", window)
	}
	require.NoError(t, l.Reset(t.Context(), id, time.Hour))
	d, err := l.Peek(t.Context(), id, 1, time.Hour)
	require.NoError(t, err)
	require.True(t, d.Allowed)
}

// Concurrent resets and calls leave both windows consistent: never one cleared and the other not.
func TestResetUnderConcurrency(t *testing.T) {
	rdb := redistest.Client(t)
	l := ginlimit.NewLimiter(rdb)
	id := redistest.ID(t)
	api := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 1000, 1000)),
		ginlimit.WithAtomicWindows()))
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			if i%20 == 0 {
				if err := l.Reset(t.Context(), id); err != nil {
					t.Error(err)
				}
				return
			}
			api.as(id)
		})
	}
	wg.Wait()
	minute, err := l.Peek(t.Context(), id, 1000, time.Minute)
	require.NoError(t, err)
	day, err := l.Peek(t.Context(), id, 1000, 24*time.Hour)
	require.NoError(t, err)
	require.Equal(t, minute.Remaining, day.Remaining)
}

// 10,000 mixed calls: every key has a TTL within its window and the slack.
func TestEveryKeyHasATTL(t *testing.T) {
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	l := ginlimit.NewLimiter(rdb)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 1250 {
				id := fmt.Sprint("user", (i*7+w)%50)
				var err error
				switch i % 10 {
				case 8:
					_, err = l.Peek(t.Context(), id, 20, time.Minute)
				case 9:
					if i%50 == 9 {
						err = l.Reset(t.Context(), id)
					}
				case 6, 7:
					_, err = l.Scope("s").Check(t.Context(), id, 3, time.Hour)
				default:
					_, err = l.Check(t.Context(), id, 20, time.Minute)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	keys, err := rdb.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.NotEmpty(t, keys)
	for _, key := range keys {
		window := time.Minute
		if strings.HasSuffix(key, ":3600") {
			window = time.Hour
		}
		ttl := rdb.PTTL(t.Context(), key).Val()
		require.Positive(t, ttl, key)
		require.LessOrEqual(t, ttl, window+time.Second, key)
	}
}

// A key is gone within window + 1 s of the last admitted call, and rejected calls do not keep it.
func TestIdleKeysGo(t *testing.T) {
	rdb := redistest.Client(t)
	l := ginlimit.NewLimiter(rdb)
	id := redistest.ID(t)
	key := "ratelimit:" + id + ":1"
	d, err := l.Check(t.Context(), id, 1, time.Second)
	require.NoError(t, err)
	require.True(t, d.Allowed)
	ttl := rdb.PTTL(t.Context(), key).Val()
	require.Greater(t, ttl, time.Second)
	require.LessOrEqual(t, ttl, 2*time.Second)

	d, err = l.Check(t.Context(), id, 1, time.Second)
	require.NoError(t, err)
	require.False(t, d.Allowed)
	require.LessOrEqual(t, rdb.PTTL(t.Context(), key).Val(), ttl, "a rejected call extends nothing")
	require.Eventually(t, func() bool { return rdb.Exists(t.Context(), key).Val() == 0 }, ttl+time.Second,
		20*time.Millisecond)
}

func TestHostileIDs(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	l := ginlimit.NewLimiter(rdb)
	ids := []string{"a b", "a\x00b", "a\r\nDEL x\r\n", "\xff\xfe", "{a}", "a:60", "a", "é", "sha256-", "*",
		"../..", "%",
		strings.Repeat("x", 1<<20), strings.Repeat("x", 1<<20) + "y"}
	for _, id := range ids {
		for _, wantAllowed := range []bool{true, false} {
			d, err := l.Check(t.Context(), id, 1, time.Minute)
			require.NoError(t, err)
			require.Equal(t, wantAllowed, d.Allowed, "%.20q", id)
		}
	}
	keys, err := rdb.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.Len(t, keys, len(ids))
	for _, key := range keys {
		require.Regexp(t, `^ratelimit:[A-Za-z0-9_.@+=/%-]{1,128}:60$`, key)
	}
}
