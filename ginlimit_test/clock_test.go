package ginlimit_test

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

func TestRetryAfterIsExact(t *testing.T) {
	c := newClock()
	for name, newLimiter := range map[string]func(*testing.T) *ginlimit.Limiter{
		"redis": func(t *testing.T) *ginlimit.Limiter {
			return ginlimit.NewLimiter(redistest.Client(t), ginlimit.WithClock(c.now))
		},
		"memory": func(*testing.T) *ginlimit.Limiter {
			return ginlimit.NewMemoryLimiter(ginlimit.WithClock(c.now))
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, id := newLimiter(t), redistest.ID(t)
			for _, gap := range []time.Duration{0, 3, 700, 1_501, 20_000} {
				c.advance(gap * time.Millisecond)
				_, err := l.Check(t.Context(), id, 5, time.Minute)
				require.NoError(t, err)
			}
			for _, limit := range []int{5, 3, 1} { // lowered under a fuller window, too
				d, err := l.Check(t.Context(), id, limit, time.Minute)
				require.NoError(t, err)
				require.False(t, d.Allowed)
				require.Equal(t, int(math.Ceil(d.RetryAfter.Seconds())), d.RetryAfterSeconds())

				c.advance(d.RetryAfter - time.Millisecond)
				early, err := l.Peek(t.Context(), id, limit, time.Minute)
				require.NoError(t, err)
				require.False(t, early.Allowed, "limit %d: one millisecond less does not admit", limit)
				require.Equal(t, time.Millisecond, early.RetryAfter)

				c.advance(time.Millisecond)
				on, err := l.Peek(t.Context(), id, limit, time.Minute)
				require.NoError(t, err)
				require.True(t, on.Allowed, "limit %d: waiting exactly RetryAfter admits", limit)
				c.advance(-d.RetryAfter)
			}
		})
	}
}

// The server's own clock cannot be moved, so this one waits, as a client would.
func TestRetryAfterByTheServersClock(t *testing.T) {
	l := ginlimit.NewLimiter(redistest.Client(t))
	id := redistest.ID(t)
	check := func() ginlimit.Decision {
		d, err := l.Check(t.Context(), id, 1, time.Second)
		require.NoError(t, err)
		return d
	}
	require.True(t, check().Allowed)
	rejected := check()
	require.False(t, rejected.Allowed)
	require.LessOrEqual(t, rejected.RetryAfter, time.Second)
	<-time.After(rejected.RetryAfter)
	require.True(t, check().Allowed, "waiting RetryAfter = %v admits", rejected.RetryAfter)
}

func TestRetryAfterSeconds(t *testing.T) {
	for _, tt := range []struct {
		d    ginlimit.Decision
		want int
	}{
		{ginlimit.Decision{}, 1},
		{ginlimit.Decision{Allowed: true}, 0},
		{ginlimit.Decision{RetryAfter: time.Millisecond}, 1},
		{ginlimit.Decision{RetryAfter: time.Second}, 1},
		{ginlimit.Decision{RetryAfter: 1001 * time.Millisecond}, 2},
		{ginlimit.Decision{RetryAfter: 24 * time.Hour}, 86_400},
		{ginlimit.Decision{RetryAfter: math.MaxInt64}, 9_223_372_037},
	} {
		require.Equal(t, tt.want, tt.d.RetryAfterSeconds(), "%+v", tt.d)
	}
}

// Only the server's clock counts, whatever the clocks of the app's hosts say: the call carries no time, and
// the entries carry the server's.
func TestHostClocksDoNotMatter(t *testing.T) {
	srv := redistest.Start(t)
	id := redistest.ID(t)
	var sent sentTimes
	limiters := make([]*ginlimit.Limiter, 2)
	for i := range limiters {
		rdb := srv.Client(t)
		rdb.AddHook(&sent)
		limiters[i] = ginlimit.NewLimiter(rdb)
	}
	before := serverTime(t, srv)
	require.EqualValues(t, 10, storm(t, 60, 10, id, limiters...))
	require.Equal(t, []any{""}, slices.Collect(maps.Keys(sent.seen())))
	after := serverTime(t, srv)
	for _, score := range scores(t, srv.Client(t), "ratelimit:"+id+":60") {
		require.True(t, before <= int64(score) && int64(score) <= after, "stamped by the server, %d to %d: %f",
			before, after, score)
	}

	// With clocks of their own, hosts 61 s apart admit twice the limit: what the default prevents.
	c := newClock()
	ahead := func() time.Time { return c.now().Add(61 * time.Second) }
	id = redistest.ID(t)
	require.EqualValues(t, 10, storm(t, 20, 10, id, ginlimit.NewLimiter(srv.Client(t),
		ginlimit.WithClock(c.now))))
	require.EqualValues(t, 10, storm(t, 20, 10, id, ginlimit.NewLimiter(srv.Client(t),
		ginlimit.WithClock(ahead))))
}

// sentTimes is a go-redis hook that counts the now argument of script calls.
type sentTimes struct {
	mu    sync.Mutex
	times map[any]int
}

func (s *sentTimes) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *sentTimes) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s *sentTimes) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			s.mu.Lock()
			if s.times == nil {
				s.times = map[any]int{}
			}
			keys := cmd.Args()[2].(int)
			s.times[cmd.Args()[3+keys]]++ // evalsha, hash, keys, key, …, now
			s.mu.Unlock()
		}
		return next(ctx, cmd)
	}
}

func (s *sentTimes) seen() map[any]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.times
}

func scores(t *testing.T, rdb *redis.Client, key string) (scores []float64) {
	t.Helper()
	entries, err := rdb.ZRangeWithScores(t.Context(), key, 0, -1).Result()
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	for _, e := range entries {
		scores = append(scores, e.Score)
	}
	return scores
}

func serverTime(t *testing.T, srv *redistest.Server) int64 {
	t.Helper()
	now, err := srv.Client(t).Time(t.Context()).Result()
	require.NoError(t, err)
	return now.UnixMilli()
}
