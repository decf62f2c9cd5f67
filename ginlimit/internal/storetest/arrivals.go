package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// Arrivals checks rules that hold for any arrival times of calls.
func Arrivals(t *testing.T, newSubject func() Subject) {
	t.Run("random arrivals", func(t *testing.T) { randomArrivals(t, newSubject) })
	t.Run("a lone caller within the limit", func(t *testing.T) { loneCaller(t, newSubject) })
	t.Run("steady load at the limit", func(t *testing.T) { steadyLoad(t, newSubject) })
	t.Run("one call a second", func(t *testing.T) { oneCallASecond(t, newSubject) })
}

// call admits one request with a new member.
func (s Subject) call(t require.TestingT, limit int, window time.Duration) budget.Verdict {
	claims := []budget.Claim{{Key: s.Key, Budget: requests(limit, window)}}
	replies, _, err := s.Admit(context.Background(), uuid.NewString(), claims)
	require.NoError(t, err)
	return replies[0]
}

// For any arrival times, no span of a window's length has more admissions than the limit, and no call is
// rejected while its span has room.
func randomArrivals(t *testing.T, newSubject func() Subject) {
	rapid.Check(t, func(t *rapid.T) {
		limit, window, s := rapid.IntRange(1, 6).Draw(t, "limit"), drawWindow(t), newSubject()
		var now int64
		var admitted []int64
		for i, gap := range rapid.SliceOfN(drawGap(window, limit), 10, 60).Draw(t, "gaps") {
			now += gap
			s.Clock.Set(now)
			r := s.call(t, limit, window)
			if r.Allowed {
				admitted = append(admitted, now)
			}
			span := 0 // admissions in (now-window, now]
			for _, at := range admitted {
				if at > now-window.Milliseconds() {
					span++
				}
			}
			require.LessOrEqual(t, span, limit, "call %d at %d ms: limit %d in %v, admitted at %v",
				i, now, limit, window, admitted)
			require.True(t, r.Allowed || span == limit,
				"call %d at %d ms is refused: limit %d in %v, admitted at %v", i, now, limit, window, admitted)
		}
	})
}

// A single caller who never exceeds the limit in any span is never rejected, even with bursts.
func loneCaller(t *testing.T, newSubject func() Subject) {
	rapid.Check(t, func(t *rapid.T) {
		limit, window, s := rapid.IntRange(1, 6).Draw(t, "limit"), drawWindow(t), newSubject()
		var calls []int64
		var now int64
		for i, gap := range rapid.SliceOfN(drawGap(window, limit), 10, 60).Draw(t, "gaps") {
			now += gap
			if i >= limit {
				now = max(now, calls[i-limit]+window.Milliseconds())
			}
			calls = append(calls, now)
			s.Clock.Set(now)
			require.True(t, s.call(t, limit, window).Allowed, "limit %d in %v, the last of %v", limit, window, calls)
		}
	})
}

func drawWindow(t *rapid.T) time.Duration {
	return time.Duration(rapid.IntRange(1, 5).Draw(t, "window")) * time.Second
}

// drawGap draws the milliseconds between two calls, often at an edge.
func drawGap(window time.Duration, limit int) *rapid.Generator[int64] {
	w := window.Milliseconds()
	edges := rapid.SampledFrom([]int64{0, 0, 1, w / int64(limit), w - 1, w, w + 1})
	return rapid.OneOf(edges, rapid.Int64Range(0, w/int64(limit)))
}

// Steady load at exactly the limit, for three windows, is never rejected: evenly spread, or all requests of a
// window at once.
func steadyLoad(t *testing.T, newSubject func() Subject) {
	for _, b := range []budget.Budget{
		requests(1, time.Second), requests(7, 3*time.Second), requests(5, budget.Minute),
		requests(60, budget.Minute), requests(100, budget.Day),
	} {
		w, limit := b.Window.Milliseconds(), int64(b.Limit)
		for name, at := range map[string]func(i int64) int64{
			"spread":   func(i int64) int64 { return (i*w + limit - 1) / limit },
			"in burst": func(i int64) int64 { return i / limit * w },
		} {
			s := newSubject()
			for i := range 3 * limit {
				s.Clock.Set(at(i))
				r := s.call(t, b.Limit, b.Window)
				require.True(t, r.Allowed, "%s, limit %d in %v: call %d at %d ms: %+v",
					name, limit, b.Window, i, at(i), r)
			}
		}
	}
}

// One call a second, more than the limit: the first calls of each window are admitted, always, although each
// call renews the TTL. A rejected call leaves no trace.
func oneCallASecond(t *testing.T, newSubject func() Subject) {
	for _, tt := range []struct{ limit, window, seconds, wantAdmitted int }{{2, 4, 20, 10}, {10, 60, 180, 30}} {
		s, admitted := newSubject(), 0
		for at := range tt.seconds {
			s.Clock.Set(int64(at) * 1000)
			before := s.Look(s.Key).Log
			r := s.call(t, tt.limit, time.Duration(tt.window)*time.Second)
			require.Equal(t, at%tt.window < tt.limit, r.Allowed, "at %d s, limit %d in %d s", at, tt.limit, tt.window)
			if r.Allowed {
				admitted++
			} else {
				require.Equal(t, before, s.Look(s.Key).Log, "at %d s", at)
			}
		}
		require.Equal(t, tt.wantAdmitted, admitted)
	}
}
