// Package ginlimittest helps to test your handlers behind a limiter. It has a limiter in a known state, with
// a clock that the test moves, and assertions on answers. It needs no Redis and no sleeps:
//
//	limits := ginlimittest.New(t)
//	router := newRouter(limits.Limiter) // yours, with ginlimit.New in it
//	limits.Take("alice", 5)             // all of free's minute
//	wait := ginlimittest.Do(t, router, request).Rejected("minute")
//	limits.Clock.Advance(wait)
//	ginlimittest.Do(t, router, request).Admitted(4)
package ginlimittest

import (
	"context"
	"math"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit"
)

// T is what the helpers need from a test; *testing.T and *testing.B implement it.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Limiter is a memory limiter with its own clock. Pass its field Limiter to ginlimit.New.
type Limiter struct {
	*ginlimit.Limiter
	Clock *Clock
	t     T
}

// New returns a limiter from which nothing was taken. It ignores RATE_LIMIT_DISABLED; SetDisabled works. You
// may pass further options, but not WithClock: the limiter would no longer use its Clock.
func New(t T, opts ...ginlimit.LimiterOption) *Limiter {
	clock := NewClock()
	all := []ginlimit.LimiterOption{
		ginlimit.WithClock(clock.Now), ginlimit.WithKillSwitch(func() bool { return false }),
	}
	return &Limiter{ginlimit.NewMemoryLimiter(append(all, opts...)...), clock, t}
}

// Scope returns the limiter of a scope, with the same clock, for a budget of WithScope or Limiter.Scope.
func (l *Limiter) Scope(name string) *Limiter {
	return &Limiter{l.Limiter.Scope(name), l.Clock, l.t}
}

// Take takes n requests of a user now, with any limits. Without windows it takes them from the minute and the
// day. The user is the id that the resolver returns; an id such as "ip/203.0.113.7" is the caller of
// ByClientIP, not another user with that name. It does not take from windows of WithBoundedWindows.
func (l *Limiter) Take(userID string, n int, windows ...time.Duration) {
	l.t.Helper()
	if len(windows) == 0 {
		windows = []time.Duration{time.Minute, 24 * time.Hour}
	}
	for _, window := range windows {
		for range n {
			d, err := l.Check(context.Background(), userID, math.MaxInt, window)
			if err != nil {
				l.t.Fatalf("Take: %v", err)
			}
			if !d.Allowed {
				l.t.Fatalf("Take: %v of %s is full", window, userID)
			}
		}
	}
}
