// Package storetest is the suite that every budget.Store passes: fixed timelines (Conform), random histories
// compared with a slow and obviously right model (Model), and rules for random arrivals (Arrivals).
package storetest

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// Clock is a clock that a test moves.
type Clock struct{ ms atomic.Int64 }

// Epoch is where a Clock starts, in Unix milliseconds.
const Epoch = 1_732_883_722_123

// NewClock returns a clock at Epoch.
func NewClock() *Clock {
	c := &Clock{}
	c.Set(0)
	return c
}

// Now is the time.
func (c *Clock) Now() time.Time { return time.UnixMilli(c.ms.Load()) }

// Set moves the clock to so many milliseconds after Epoch.
func (c *Clock) Set(at int64) { c.ms.Store(Epoch + at) }

// requests is a budget of so many requests.
func requests(limit int, window time.Duration) budget.Budget {
	return budget.Budget{Dimension: budget.Dimension{Window: window}, Limit: limit}
}

// newKey is the beginning of keys that no other test uses, all in one slot of a Cluster.
func newKey(testing.TB) string { return "test:{" + uuid.NewString() + "}" }

// Conform runs the timelines on a store whose clock is c.
func Conform(t *testing.T, s budget.Store, c *Clock) {
	t.Run("timelines", func(t *testing.T) { conformTimelines(t, s, c) })
	t.Run("several windows", func(t *testing.T) { conformSeveralWindows(t, s, c) })
	t.Run("give back", func(t *testing.T) { conformGiveBack(t, s, c) })
	t.Run("many at once", func(t *testing.T) { conformManyAtOnce(t, s, c) })
	t.Run("leases", func(t *testing.T) { conformLeases(t, s, c) })
	t.Run("repeats", func(t *testing.T) { conformRepeats(t, s, c) })
	t.Run("sums", func(t *testing.T) { conformSums(t, s, c) })
}

func conformTimelines(t *testing.T, s budget.Store, c *Clock) {
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
		// R40: after the step back, the wait of a rejected call is true.
		"a clock an hour ahead that came back": {
			{0, check, 3, true, 2, 0},
			{3_600_000, check, 2, true, 1, 0}, // the earlier entry has left
			{3_600_000, check, 2, true, 0, 0},
			{1_000, peek, 2, false, 0, time.Minute},
			{2_000, check, 2, false, 0, time.Minute},
			{3_000, check, 2, false, 0, 59 * time.Second},
			{3_000, check, 3, true, 0, 0},
			{61_999, check, 2, false, 0, time.Millisecond},
			{62_000, check, 2, true, 0, 0},
		},
		"a clock ahead that came back, under a lowered limit": {
			{0, check, 9, true, 8, 0},
			{50_000, check, 9, true, 7, 0},
			{50_000, check, 9, true, 6, 0},
			{1_000, check, 1, false, 0, time.Minute},
			{2_000, check, 1, false, 0, 59 * time.Second},
			{60_999, check, 1, false, 0, time.Millisecond},
			{61_000, check, 1, true, 0, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			key := newKey(t)
			for i, r := range rows {
				c.Set(r.at)
				claims := []budget.Claim{{Key: key, Budget: requests(r.limit, budget.Minute)}}
				var got []budget.Verdict
				var err error
				switch r.do {
				case check:
					got, _, err = s.Admit(t.Context(), uuid.NewString(), claims)
				case peek:
					got, err = s.Peek(t.Context(), claims)
				case reset:
					require.NoError(t, s.Reset(t.Context(), []string{key}))
					continue
				}
				step := fmt.Sprintf("step %d: %s at %d ms, limit %d", i, r.do, r.at, r.limit)
				require.NoError(t, err, step)
				require.Len(t, got, 1, step)
				require.Equal(t, r.wantAllowed, got[0].Allowed, step)
				require.Equal(t, r.wantRemaining, got[0].Remaining(r.limit), step)
				require.Equal(t, r.wantRetry, got[0].RetryAfter, step)
			}
		})
	}
}

// twoWindows are the claims on a user's minute and day.
func twoWindows(t *testing.T) func(perMinute, perDay int) []budget.Claim {
	user := newKey(t)
	return func(perMinute, perDay int) []budget.Claim {
		return []budget.Claim{
			{Key: user + ":60", Budget: requests(perMinute, budget.Minute)},
			{Key: user + ":86400", Budget: requests(perDay, budget.Day)},
		}
	}
}

func conformSeveralWindows(t *testing.T, s budget.Store, c *Clock) {
	claims := twoWindows(t)
	for i, r := range []struct {
		at     int64
		member string
		minute int
		day    int
		want   []budget.Verdict
	}{
		{0, "a", 2, 3, []budget.Verdict{{Allowed: true, Used: 1}, {Allowed: true, Used: 1}}},
		{0, "a", 2, 3, []budget.Verdict{{Allowed: true, Used: 1}, {Allowed: true, Used: 1}}}, // a repeat
		// Another repeat, which finds both full.
		{0, "a", 1, 1, []budget.Verdict{{Allowed: true, Used: 1}, {Allowed: true, Used: 1}}},
		{1_000, "b", 2, 3, []budget.Verdict{{Allowed: true, Used: 2}, {Allowed: true, Used: 2}}},
		{2_000, "c", 2, 2, []budget.Verdict{{Used: 2, RetryAfter: 58 * time.Second}}}, // both full: the minute
		{2_000, "c", 3, 2,
			[]budget.Verdict{{Allowed: true, Used: 2}, {Used: 2, RetryAfter: budget.Day - 2*time.Second}}},
		{2_000, "c", 3, 3, []budget.Verdict{{Allowed: true, Used: 3}, {Allowed: true, Used: 3}}},
		{60_000, "d", 3, 4, []budget.Verdict{{Allowed: true, Used: 3}, {Allowed: true, Used: 4}}},
		// It has left the minute, but is still in the day.
		{61_000, "a", 3, 4, []budget.Verdict{{Allowed: true, Used: 3}, {Allowed: true, Used: 4}}},
	} {
		c.Set(r.at)
		got, _, err := s.Admit(t.Context(), r.member, claims(r.minute, r.day))
		require.NoError(t, err)
		require.Equal(t, r.want, got, "step %d: %s at %d ms", i, r.member, r.at)
	}
	got, err := s.Peek(t.Context(), claims(3, 5))
	require.NoError(t, err)
	require.Equal(t, []budget.Verdict{{Used: 3, RetryAfter: time.Second}, {Allowed: true, Used: 4}}, got,
		"a peek speaks of every window")
}

func conformGiveBack(t *testing.T, s budget.Store, c *Clock) {
	claims := twoWindows(t)
	b := claims(2, 2)
	c.Set(0)
	for _, member := range []string{"a", "b"} {
		_, _, err := s.Admit(t.Context(), member, b)
		require.NoError(t, err)
	}
	for range 2 { // safe to repeat
		require.NoError(t, s.Finish(t.Context(), budget.Admission{ID: "a", Claims: b}, nil))
	}
	require.NoError(t, s.Finish(t.Context(), budget.Admission{ID: "never there", Claims: b}, nil))
	got, _, err := s.Admit(t.Context(), "c", b)
	require.NoError(t, err)
	require.Equal(t, []budget.Verdict{{Allowed: true, Used: 2}, {Allowed: true, Used: 2}}, got)

	for _, member := range []string{"b", "c"} {
		require.NoError(t, s.Finish(t.Context(), budget.Admission{ID: member, Claims: b}, nil))
	}
	got, err = s.Peek(t.Context(), b)
	require.NoError(t, err)
	require.Equal(t, []budget.Verdict{{Allowed: true}, {Allowed: true}}, got)
}

// 100 goroutines on two windows: exactly limit are admitted.
func conformManyAtOnce(t *testing.T, s budget.Store, c *Clock) {
	c.Set(0)
	claims := twoWindows(t)
	b := claims(10, 10)
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			verdicts, _, err := s.Admit(t.Context(), fmt.Sprint(i), b)
			if err != nil {
				t.Error(err)
			} else if verdicts[len(verdicts)-1].Allowed {
				admitted.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 10, admitted.Load())
	got, err := s.Peek(t.Context(), claims(11, 11))
	require.NoError(t, err)
	require.Equal(t, []budget.Verdict{{Allowed: true, Used: 10}, {Allowed: true, Used: 10}}, got)
}
