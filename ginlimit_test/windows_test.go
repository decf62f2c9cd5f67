package ginlimit_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

func TestShortestWindowFirst(t *testing.T) {
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			srv := redistest.Start(t)
			rdb := srv.Client(t)
			l := ginlimit.NewLimiter(rdb, ginlimit.WithClock(c.now))
			api := serve(t, ginlimit.New(l, resolver, append(opts, ginlimit.WithTiers(table(t, 2, 2)))...))
			const minute, day = "ratelimit:alice:60", "ratelimit:alice:86400"
			api.as("alice")
			c.advance(30 * time.Second)
			api.as("alice")

			// Both are full: the minute is reported, and the day's key is left alone. A key of
			// another type in its place would be an error for whoever looks at it.
			require.NoError(t, rdb.Rename(t.Context(), day, "aside").Err())
			require.NoError(t, rdb.Set(t.Context(), day, "not a log", 0).Err())
			r := api.as("alice")
			require.Equal(t, "2 0 minute", r.limits(t))
			require.Equal(t, "30", r.Header.Get("Retry-After"))
			require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
			require.NoError(t, rdb.Rename(t.Context(), "aside", day).Err())

			// The minute has room: the day rejects, and the minute stays as it was.
			c.advance(30 * time.Second)
			require.NoError(t, rdb.ZRemRangeByScore(t.Context(), minute, "0",
				strconv.FormatInt(c.now().Add(-time.Minute).UnixMilli(), 10)).Err())
			require.NoError(t, rdb.PExpire(t.Context(), minute, 25*time.Second).Err())
			before, err := rdb.ZRangeWithScores(t.Context(), minute, 0, -1).Result()
			require.NoError(t, err)
			for range 20 {
				r = api.as("alice")
				require.Equal(t, "2 0 day", r.limits(t))
				require.Equal(t, strconv.Itoa(86_400-60), r.Header.Get("Retry-After"))
			}
			after, err := rdb.ZRangeWithScores(t.Context(), minute, 0, -1).Result()
			require.NoError(t, err)
			require.Equal(t, before, after, "a rejection by the day costs the minute nothing")
			require.Len(t, after, 1)
			require.LessOrEqual(t, rdb.PTTL(t.Context(), minute).Val(), 31*time.Second, "nor does it extend it")
			require.Positive(t, rdb.PTTL(t.Context(), minute).Val())
			require.EqualValues(t, 2, api.Handled.Load())
		})
	}
}

// Under concurrency an atomic decision admits exactly what there is, and rejections leave no trace,
// not even for a moment in which others would be rejected.
func TestAtomicDecisionsUnderConcurrency(t *testing.T) {
	srv := redistest.Start(t)
	first, second := ginlimit.NewLimiter(srv.Client(t)), ginlimit.NewLimiter(srv.Client(t))
	opts := []ginlimit.Option{ginlimit.WithTiers(table(t, 50, 50)),
		ginlimit.WithScope("images", table(t, 10, 20))}
	apis := []*api{serve(t, ginlimit.New(first, resolver, opts...)),
		serve(t, ginlimit.New(second, resolver, opts...))}
	for round := range 5 {
		id := fmt.Sprint("user", round)
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() { apis[i%2].as(id) })
		}
		wg.Wait()
		for _, key := range []string{":60", ":86400", ":images:60", ":images:86400"} {
			require.EqualValues(t, 10, srv.Client(t).ZCard(t.Context(), "ratelimit:"+id+key).Val(), key)
		}
	}
	require.EqualValues(t, 50, apis[0].Handled.Load()+apis[1].Handled.Load())
}

// A separate call that fails gives back what the calls before it took, whoever decides then.
func TestAFailedDayGivesTheMinuteBack(t *testing.T) {
	captureLogs(t)
	for name, tt := range map[string]struct {
		policy ginlimit.FailurePolicy
		want   int
	}{
		"closed": {ginlimit.FailClosed(), http.StatusServiceUnavailable},
		"open":   {ginlimit.FailOpen(), http.StatusOK},
		"local":  {ginlimit.FailLocal(ginlimit.NewMemoryLimiter()), http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			rdb := redistest.Client(t)
			id := redistest.ID(t)
			require.NoError(t, rdb.Set(t.Context(), "ratelimit:"+id+":86400", "text", time.Minute).Err())
			api := serve(t, ginlimit.New(ginlimit.NewLimiter(rdb), resolver, ginlimit.WithFailurePolicy(tt.policy)))
			require.Equal(t, tt.want, api.as(id).StatusCode)
			require.Zero(t, rdb.Exists(t.Context(), "ratelimit:"+id+":60").Val())
		})
	}
}

// slowScripter answers late, as over a slow link.
type slowScripter struct{ redis.Scripter }

func (s slowScripter) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	<-time.After(60 * time.Millisecond)
	return s.Scripter.EvalSha(ctx, sha, keys, args...)
}

// A client without a deadline has none for giving back either.
func TestGivingBackOverASlowLink(t *testing.T) {
	rdb := redistest.Client(t)
	l := ginlimit.NewLimiter(slowScripter{rdb})
	id := redistest.ID(t)
	_, err := l.Check(t.Context(), id, 1, 24*time.Hour)
	require.NoError(t, err)
	api := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 1, 1))))
	require.Equal(t, "1 0 day", api.as(id).limits(t))
	require.Zero(t, rdb.Exists(t.Context(), "ratelimit:"+id+":60").Val())
}

// Where two windows have as much left, the shorter one is told.
func TestATieIsTheShorterWindows(t *testing.T) {
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			api := serve(t, ginlimit.New(ginlimit.NewMemoryLimiter(), resolver,
				append(opts, ginlimit.WithTiers(table(t, 3, 3)))...))
			require.Equal(t, "3 2 minute", api.as("alice").limits(t))
		})
	}
	l := ginlimit.NewMemoryLimiter()
	outer := ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 9, 9)))
	inner := ginlimit.New(l.Scope("images"), resolver, ginlimit.WithTiers(table(t, 9, 9)))
	require.Equal(t, "9 8 minute", serve(t, outer, inner).as("alice").limits(t))
}
