// Package ginlimittest helps to test your own handlers behind a limiter: a limiter in a known state, on a
// clock that the test moves, and assertions on what comes back. There is no Redis and no sleeping:
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

// T is what the helpers need of a test; *testing.T and *testing.B have it.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Limiter is a memory limiter on a clock of its own. Hand its Limiter to ginlimit.New.
type Limiter struct {
	*ginlimit.Limiter
	Clock *Clock
	t     T
}

// New returns a limiter of which nothing was taken. It does not look at RATE_LIMIT_DISABLED; SetDisabled
// works. Options are for more, but WithClock would part it from its Clock.
func New(t T, opts ...ginlimit.LimiterOption) *Limiter {
	clock := NewClock()
	all := []ginlimit.LimiterOption{
		ginlimit.WithClock(clock.Now), ginlimit.WithKillSwitch(func() bool { return false }),
	}
	return &Limiter{ginlimit.NewMemoryLimiter(append(all, opts...)...), clock, t}
}

// Scope returns the limiter of a scope, on the same clock, for a budget of WithScope or of a limiter's Scope.
func (l *Limiter) Scope(name string) *Limiter {
	return &Limiter{l.Limiter.Scope(name), l.Clock, l.t}
}

// Take takes n requests of a user, now, whatever the limits are. Without windows they are taken of the minute
// and the day. The user is as resolvers name it, and an address as "ip/203.0.113.7" cannot be taken for a
// caller of ByClientIP: let it make its requests. Windows of WithBoundedWindows are kept apart, too.
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
