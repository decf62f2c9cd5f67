package ginlimit

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/luascripts"
)

// clock is a time that a test moves.
type clock struct{ ms atomic.Int64 }

// epoch is where the clock of a test starts.
const epoch = 1_732_883_722_123

func newClock() *clock {
	c := &clock{}
	c.set(0)
	return c
}

func (c *clock) now() time.Time { return time.UnixMilli(c.ms.Load()) }
func (c *clock) set(at int64)   { c.ms.Store(epoch + at) } // milliseconds after epoch

// The conformance suite: every store makes the same decisions.
func TestConformance(t *testing.T) {
	for name, newLimiter := range map[string]func(*testing.T, ...LimiterOption) *Limiter{
		"redis": func(t *testing.T, opts ...LimiterOption) *Limiter { return NewLimiter(redistest.Client(t), opts...) },
		"ring": func(t *testing.T, opts ...LimiterOption) *Limiter {
			ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": redistest.Start(t).Addr, "b": redistest.Start(t).Addr}})
			t.Cleanup(func() { _ = ring.Close() })
			return NewLimiter(ring, opts...)
		},
		"cluster": func(t *testing.T, opts ...LimiterOption) *Limiter {
			return NewLimiter(redistest.StartCluster(t, 3, 0).Client(t), opts...)
		},
		"sentinel": func(t *testing.T, opts ...LimiterOption) *Limiter {
			return NewLimiter(redistest.StartSentinel(t).Client(t, &redis.Options{}), opts...)
		},
		"memory": func(_ *testing.T, opts ...LimiterOption) *Limiter { return NewMemoryLimiter(opts...) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClock()
			conform(t, newLimiter(t, WithClock(c.now)), c)
		})
	}
}

func conform(t *testing.T, l *Limiter, c *clock) {
	t.Run("timelines", func(t *testing.T) { conformTimelines(t, l, c) })
	t.Run("several windows", func(t *testing.T) { conformSeveralWindows(t, l, c) })
	t.Run("give back", func(t *testing.T) { conformGiveBack(t, l, c) })
	t.Run("many at once", func(t *testing.T) { conformManyAtOnce(t, l, c) })
}

func conformTimelines(t *testing.T, l *Limiter, c *clock) {
	const check, peek, reset = "check", "peek", "reset"
	type row struct {
		at            int64 // ms
		do            string
		limit         int
		wantAllowed   bool
		wantRemaining int
		wantRetry     time.Duration
	}
	for name, rows := range map[string][]row{
		"the edge of the window": {
			{0, check, 1, true, 0, 0},
			{59_999, check, 1, false, 0, time.Millisecond},
			{60_000, check, 1, true, 0, 0},
			{60_000, check, 1, false, 0, time.Minute},
		},
		"a steady caller at the limit is never rejected": {
			{0, check, 2, true, 1, 0},
			{30_000, check, 2, true, 0, 0},
			{60_000, check, 2, true, 0, 0},
			{90_000, check, 2, true, 0, 0},
			{120_000, check, 2, true, 0, 0},
		},
		"a rejected call takes nothing": {
			{0, check, 1, true, 0, 0},
			{20_000, check, 1, false, 0, 40 * time.Second},
			{40_000, check, 1, false, 0, 20 * time.Second},
			{60_000, check, 1, true, 0, 0},
		},
		"a limit that is lowered, then raised": {
			{0, check, 3, true, 2, 0},
			{1_000, check, 3, true, 1, 0},
			{2_000, check, 3, true, 0, 0},
			{3_000, check, 1, false, 0, 59 * time.Second},
			{3_000, peek, 2, false, 0, 58 * time.Second},
			{3_000, check, 5, true, 1, 0},
		},
		"no limit at all": {
			{0, check, 0, false, 0, time.Minute},
			{0, check, -1, false, 0, time.Minute},
			{0, check, math.MinInt, false, 0, time.Minute},
			{0, peek, 0, false, 0, time.Minute},
			{0, check, 1, true, 0, 0},
			{1_000, check, 0, false, 0, time.Minute},
		},
		"a peek takes nothing": {
			{0, peek, 1, true, 1, 0},
			{0, peek, 1, true, 1, 0},
			{0, check, 1, true, 0, 0},
			{1_000, peek, 1, false, 0, 59 * time.Second},
			{60_000, peek, 1, true, 1, 0},
		},
		"a reset forgets": {
			{0, check, 1, true, 0, 0},
			{0, check, 1, false, 0, time.Minute},
			{0, reset, 0, false, 0, 0},
			{0, check, 1, true, 0, 0},
		},
		"a clock set back one hour": {
			{3_600_000, check, 2, true, 1, 0},
			{0, check, 2, true, 0, 0},
			{0, check, 2, false, 0, time.Minute},
			{0, peek, 2, false, 0, time.Minute},
		},
	} {
		t.Run(name, func(t *testing.T) {
			id := redistest.ID(t)
			for i, r := range rows {
				c.set(r.at)
				var got Decision
				var err error
				switch r.do {
				case check:
					got, err = l.Check(t.Context(), id, r.limit, time.Minute)
				case peek:
					got, err = l.Peek(t.Context(), id, r.limit, time.Minute)
				case reset:
					require.NoError(t, l.Reset(t.Context(), id))
					continue
				}
				require.NoError(t, err)
				want := Decision{Allowed: r.wantAllowed, Limit: r.limit, Remaining: r.wantRemaining, RetryAfter: r.wantRetry, Window: time.Minute}
				require.Equal(t, want, got, "step %d: %s at %d ms, limit %d", i, r.do, r.at, r.limit)
			}
		})
	}
}

// twoWindows are the keys and budgets of a user's minute and day.
func twoWindows(t *testing.T, l *Limiter) (keys []string, budgets func(perMinute, perDay int) []luascripts.Budget) {
	id := redistest.ID(t)
	return []string{l.names.key(id, minute), l.names.key(id, day)},
		func(perMinute, perDay int) []luascripts.Budget {
			return []luascripts.Budget{luascripts.NewBudget(perMinute, minute), luascripts.NewBudget(perDay, day)}
		}
}

func conformSeveralWindows(t *testing.T, l *Limiter, c *clock) {
	keys, budgets := twoWindows(t, l)
	for i, r := range []struct {
		at     int64
		member string
		minute int
		day    int
		want   []luascripts.Reply
	}{
		{0, "a", 2, 3, []luascripts.Reply{{Allowed: true, Count: 1}, {Allowed: true, Count: 1}}},
		{0, "a", 2, 3, []luascripts.Reply{{Allowed: true, Count: 1}, {Allowed: true, Count: 1}}}, // a repeat
		{0, "a", 1, 1, []luascripts.Reply{{Allowed: true, Count: 1}, {Allowed: true, Count: 1}}}, // that finds both full
		{1_000, "b", 2, 3, []luascripts.Reply{{Allowed: true, Count: 2}, {Allowed: true, Count: 2}}},
		{2_000, "c", 2, 2, []luascripts.Reply{{Count: 2, RetryAfter: 58 * time.Second}}}, // both full: the minute
		{2_000, "c", 3, 2, []luascripts.Reply{{Allowed: true, Count: 2}, {Count: 2, RetryAfter: day - 2*time.Second}}},
		{2_000, "c", 3, 3, []luascripts.Reply{{Allowed: true, Count: 3}, {Allowed: true, Count: 3}}},
		{60_000, "d", 3, 4, []luascripts.Reply{{Allowed: true, Count: 3}, {Allowed: true, Count: 4}}},
		{61_000, "a", 3, 4, []luascripts.Reply{{Allowed: true, Count: 3}, {Allowed: true, Count: 4}}}, // left the minute, is in the day
	} {
		c.set(r.at)
		got, err := l.store.admit(t.Context(), r.member, keys, budgets(r.minute, r.day))
		require.NoError(t, err)
		require.Equal(t, r.want, got, "step %d: %s at %d ms", i, r.member, r.at)
	}
	got, err := l.store.peek(t.Context(), keys, budgets(3, 5))
	require.NoError(t, err)
	require.Equal(t, []luascripts.Reply{{Count: 3, RetryAfter: time.Second}, {Allowed: true, Count: 4}}, got, "a peek speaks of every window")
}

func conformGiveBack(t *testing.T, l *Limiter, c *clock) {
	keys, budgets := twoWindows(t, l)
	b := budgets(2, 2)
	c.set(0)
	for _, member := range []string{"a", "b"} {
		_, err := l.store.admit(t.Context(), member, keys, b)
		require.NoError(t, err)
	}
	for range 2 { // safe to repeat
		require.NoError(t, l.store.giveBack(t.Context(), "a", keys, b))
	}
	require.NoError(t, l.store.giveBack(t.Context(), "never there", keys, b))
	got, err := l.store.admit(t.Context(), "c", keys, b)
	require.NoError(t, err)
	require.Equal(t, []luascripts.Reply{{Allowed: true, Count: 2}, {Allowed: true, Count: 2}}, got)

	for _, member := range []string{"b", "c"} {
		require.NoError(t, l.store.giveBack(t.Context(), member, keys, b))
	}
	got, err = l.store.peek(t.Context(), keys, b)
	require.NoError(t, err)
	require.Equal(t, []luascripts.Reply{{Allowed: true}, {Allowed: true}}, got)
}

// 100 goroutines on two windows: exactly limit are admitted.
func conformManyAtOnce(t *testing.T, l *Limiter, c *clock) {
	c.set(0)
	keys, budgets := twoWindows(t, l)
	b := budgets(10, 10)
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			replies, err := l.store.admit(t.Context(), fmt.Sprint(i), keys, b)
			if err != nil {
				t.Error(err)
			} else if replies[len(replies)-1].Allowed {
				admitted.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 10, admitted.Load())
	got, err := l.store.peek(t.Context(), keys, budgets(11, 11))
	require.NoError(t, err)
	require.Equal(t, []luascripts.Reply{{Allowed: true, Count: 10}, {Allowed: true, Count: 10}}, got)
}
