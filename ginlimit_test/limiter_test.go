package ginlimit_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

func TestOneCheckIsOneScriptExecution(t *testing.T) {
	srv := redistest.Start(t)
	rdb := srv.Client(t)
	l := ginlimit.NewLimiter(rdb)
	_, err := l.Check(t.Context(), "warm-up", 1, time.Minute) // loads the script, once
	require.NoError(t, err)

	srv.ResetStats(t)
	for i := range 3 {
		d, err := l.Check(t.Context(), "alice", 2, time.Minute)
		require.NoError(t, err)
		require.Equal(t, i < 2, d.Allowed)
		require.Equal(t, max(0, 1-i), d.Remaining)
		require.Equal(t, !d.Allowed, d.RetryAfter > 0)
	}
	for command, want := range map[string]int{
		"evalsha": 3, "eval": 0, "multi": 0, "zremrangebyscore": 3, "zcard": 3, "zadd": 2, "expire": 2,
		"pexpire": 0, "incr": 0,
	} {
		require.Equal(t, want, srv.Calls(t, command), command)
	}
}

// storm makes calls at once, spread over the limiters, and returns how many were admitted.
func storm(t *testing.T, calls, limit int, id string, limiters ...*ginlimit.Limiter) (admitted int64) {
	t.Helper()
	var n atomic.Int64
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range calls {
		wg.Go(func() {
			<-start
			d, err := limiters[i%len(limiters)].Check(t.Context(), id, limit, time.Minute)
			if err != nil {
				t.Error(err)
			} else if d.Allowed {
				n.Add(1)
			}
		})
	}
	close(start)
	wg.Wait()
	return n.Load()
}

func TestExactUnderLoad(t *testing.T) {
	srv := redistest.Start(t)
	c := newClock()
	a, b := srv.Client(t), srv.Client(t)
	moved := []*ginlimit.Limiter{ginlimit.NewLimiter(a, ginlimit.WithClock(c.now)),
		ginlimit.NewLimiter(b, ginlimit.WithClock(c.now))}
	served := []*ginlimit.Limiter{ginlimit.NewLimiter(a), ginlimit.NewLimiter(b)}
	for range 20 {
		id := redistest.ID(t)
		require.EqualValues(t, 10, storm(t, 20, 10, id, moved...), "limit 10, 20 concurrent calls, two clients")
		c.advance(61 * time.Second)
		require.EqualValues(t, 10, storm(t, 20, 10, id, moved...), "61 s later another 10")
		require.EqualValues(t, 10, storm(t, 20, 10, redistest.ID(t), served...), "by the server's clock")
	}
	require.EqualValues(t, 10, storm(t, 200, 10, redistest.ID(t), served...))
	require.EqualValues(t, 100, storm(t, 100, 1000, redistest.ID(t), served...), "none within the limit fails")
}

func TestMembersAreDistinctAndReadable(t *testing.T) {
	rdb := redistest.Client(t)
	id := redistest.ID(t)
	c := newClock()
	l := ginlimit.NewLimiter(rdb, ginlimit.WithClock(c.now))
	require.EqualValues(t, 5, storm(t, 50, 5, id, l))
	entries, err := rdb.ZRangeWithScores(t.Context(), "ratelimit:"+id+":60", 0, -1).Result()
	require.NoError(t, err)
	require.Len(t, entries, 5, "50 calls in one millisecond")
	for _, e := range entries {
		require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, e.Member,
			"a UUID4")
		require.EqualValues(t, c.now().UnixMilli(), e.Score)
	}
}

func TestBadArguments(t *testing.T) {
	for name, newLimiter := range map[string]func(*testing.T) *ginlimit.Limiter{
		// which nothing is asked
		"redis":    func(t *testing.T) *ginlimit.Limiter { return ginlimit.NewLimiter(deadRedis(t)) },
		"memory":   func(*testing.T) *ginlimit.Limiter { return ginlimit.NewMemoryLimiter() },
		"disabled": func(*testing.T) *ginlimit.Limiter { return disabled(ginlimit.NewMemoryLimiter()) },
	} {
		t.Run(name, func(t *testing.T) {
			captureLogs(t)
			l := newLimiter(t)
			for _, window := range []time.Duration{0, -time.Second, 500 * time.Millisecond, 1500 * time.Millisecond, 1,
				math.MaxInt64, math.MinInt64} {
				_, err := l.Check(t.Context(), "alice", 1, window)
				require.ErrorIs(t, err, ginlimit.ErrInvalidWindow, "%v", window)
				_, err = l.Peek(t.Context(), "alice", 1, window)
				require.ErrorIs(t, err, ginlimit.ErrInvalidWindow)
				require.ErrorIs(t, l.Reset(t.Context(), "alice", time.Minute, window), ginlimit.ErrInvalidWindow)
			}
			_, err := l.Check(t.Context(), "", 1, time.Minute)
			require.ErrorIs(t, err, ginlimit.ErrInvalidUserID)
			_, err = l.Peek(t.Context(), "", 1, time.Minute)
			require.ErrorIs(t, err, ginlimit.ErrInvalidUserID)
			require.ErrorIs(t, l.Reset(t.Context(), ""), ginlimit.ErrInvalidUserID)
		})
	}
}

func disabled(l *ginlimit.Limiter) *ginlimit.Limiter {
	l.SetDisabled(true)
	return l
}

func TestNilsPanicAtStart(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{})
	defer rdb.Close()
	l := ginlimit.NewMemoryLimiter()
	for name, f := range map[string]func(){
		"NewLimiter: rdb":               func() { ginlimit.NewLimiter(nil) },
		"NewLimiter: rdb ":              func() { ginlimit.NewLimiter((*redis.Client)(nil)) },
		"NewLimiter: option":            func() { ginlimit.NewLimiter(rdb, nil) },
		"WithClock: now":                func() { ginlimit.WithClock(nil) },
		"WithKillSwitch: on":            func() { ginlimit.WithKillSwitch(nil) },
		"New: limiter":                  func() { ginlimit.New(nil, resolver) },
		"New: resolver":                 func() { ginlimit.New(l, nil) },
		"New: resolver ":                func() { ginlimit.New(l, ginlimit.TierResolverFunc(nil)) },
		"New: option":                   func() { ginlimit.New(l, resolver, nil) },
		"WithTiers: store":              func() { ginlimit.WithTiers(nil) },
		"WithScope: store":              func() { ginlimit.WithScope("a", nil) },
		"WithObserver: observer":        func() { ginlimit.WithObserver(nil) },
		"WithObserver: observer ":       func() { ginlimit.WithObserver(ginlimit.ObserverFunc(nil)) },
		"FailLocal: limiter is nil":     func() { ginlimit.FailLocal(nil) },
		"FailLocal: limiter is not one": func() { ginlimit.FailLocal(ginlimit.NewLimiter(rdb)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				require.Contains(t, fmt.Sprint(recover()), "ginlimit: "+strings.TrimSpace(name))
			}()
			f()
		})
	}
}

func TestContradictoryScopesPanicAtStart(t *testing.T) {
	l := ginlimit.NewMemoryLimiter()
	s := table(t, 1, 1)
	require.Panics(t, func() { ginlimit.New(l, resolver, ginlimit.WithScope("", s)) })
	require.Panics(t, func() { ginlimit.New(l.Scope("a"), resolver, ginlimit.WithScope("a", s)) })
	require.Panics(t, func() {
		ginlimit.New(l, resolver, ginlimit.WithScope("a", s), ginlimit.WithScope("a", s))
	})
	require.NotPanics(t, func() { ginlimit.New(l.Scope("a"), resolver, ginlimit.WithScope("b", s)) })
}

func TestRedisErrorsAreReturned(t *testing.T) {
	srv := redistest.Start(t)
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr, MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = rdb.Close() })
	l := ginlimit.NewLimiter(rdb)
	require.NoError(t, rdb.Set(t.Context(), "ratelimit:alice:60", "text", 0).Err())
	d, err := l.Check(t.Context(), "alice", 1, time.Minute)
	require.ErrorContains(t, err, "WRONGTYPE")
	require.Zero(t, d)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = l.Check(ctx, "bob", 1, time.Minute)
	require.ErrorIs(t, err, context.Canceled)

	srv.Kill()
	for _, err := range []error{
		func() error { _, err := l.Check(t.Context(), "bob", 1, time.Minute); return err }(),
		func() error { _, err := l.Peek(t.Context(), "bob", 1, time.Minute); return err }(),
		l.Reset(t.Context(), "bob"),
	} {
		require.Error(t, err)
		require.False(t, errors.Is(err, ginlimit.ErrInvalidUserID) || errors.Is(err, ginlimit.ErrInvalidWindow))
	}
}

func TestScriptFlushBetweenCalls(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	l := ginlimit.NewLimiter(rdb)
	for i := range 3 {
		require.NoError(t, rdb.ScriptFlush(t.Context()).Err())
		d, err := l.Check(t.Context(), "alice", 2, time.Minute)
		require.NoError(t, err)
		require.Equal(t, i < 2, d.Allowed)
	}
}
