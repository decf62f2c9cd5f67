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
		"evalsha": 3, "eval": 0, "multi": 0, "zremrangebyscore": 3, "zcard": 3, "zadd": 2, "expire": 2, "pexpire": 0, "incr": 0,
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
	moved := []*ginlimit.Limiter{ginlimit.NewLimiter(a, ginlimit.WithClock(c.now)), ginlimit.NewLimiter(b, ginlimit.WithClock(c.now))}
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
		require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, e.Member, "a UUID4")
		require.EqualValues(t, c.now().UnixMilli(), e.Score)
	}
}

func TestRetryAfterIsExact(t *testing.T) {
	c := newClock()
	for name, newLimiter := range map[string]func(*testing.T) *ginlimit.Limiter{
		"redis": func(t *testing.T) *ginlimit.Limiter {
			return ginlimit.NewLimiter(redistest.Client(t), ginlimit.WithClock(c.now))
		},
		"memory": func(*testing.T) *ginlimit.Limiter { return ginlimit.NewMemoryLimiter(ginlimit.WithClock(c.now)) },
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

func TestBadArguments(t *testing.T) {
	for name, newLimiter := range map[string]func(*testing.T) *ginlimit.Limiter{
		"redis":    func(t *testing.T) *ginlimit.Limiter { return ginlimit.NewLimiter(deadRedis(t)) }, // which nothing is asked
		"memory":   func(*testing.T) *ginlimit.Limiter { return ginlimit.NewMemoryLimiter() },
		"disabled": func(*testing.T) *ginlimit.Limiter { return disabled(ginlimit.NewMemoryLimiter()) },
	} {
		t.Run(name, func(t *testing.T) {
			captureLogs(t)
			l := newLimiter(t)
			for _, window := range []time.Duration{0, -time.Second, 500 * time.Millisecond, 1500 * time.Millisecond, 1, math.MaxInt64, math.MinInt64} {
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
	require.Panics(t, func() { ginlimit.New(l, resolver, ginlimit.WithScope("a", s), ginlimit.WithScope("a", s)) })
	require.NotPanics(t, func() { ginlimit.New(l.Scope("a"), resolver, ginlimit.WithScope("b", s)) })
}

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
	api := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 1000, 1000)), ginlimit.WithAtomicWindows()))
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

// Whatever the clocks of the app's hosts say, the server's counts: the call carries no time,
// and the entries carry the server's.
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
	require.Equal(t, map[any]int{"": 60}, sent.seen())
	after := serverTime(t, srv)
	for _, score := range scores(t, srv.Client(t), "ratelimit:"+id+":60") {
		require.True(t, before <= int64(score) && int64(score) <= after, "stamped by the server, %d to %d: %f", before, after, score)
	}

	// With clocks of their own, hosts 61 s apart admit twice the limit: what the default prevents.
	c := newClock()
	ahead := func() time.Time { return c.now().Add(61 * time.Second) }
	id = redistest.ID(t)
	require.EqualValues(t, 10, storm(t, 20, 10, id, ginlimit.NewLimiter(srv.Client(t), ginlimit.WithClock(c.now))))
	require.EqualValues(t, 10, storm(t, 20, 10, id, ginlimit.NewLimiter(srv.Client(t), ginlimit.WithClock(ahead))))
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
			s.times[cmd.Args()[4]]++ // evalsha, hash, 1, key, now
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
	require.Eventually(t, func() bool { return rdb.Exists(t.Context(), key).Val() == 0 }, ttl+time.Second, 20*time.Millisecond)
}

func TestHostileIDs(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	l := ginlimit.NewLimiter(rdb)
	ids := []string{"a b", "a\x00b", "a\r\nDEL x\r\n", "\xff\xfe", "{a}", "a:60", "a", "é", "sha256-", "*", "../..", "%",
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
