package ginlimittest

import (
	"sync/atomic"
	"time"
)

// Clock is a clock that only a test moves. It begins at 2026-01-01, 12:00 UTC. It is safe for concurrent use.
type Clock struct{ ns atomic.Int64 }

// NewClock returns a clock, for ginlimit.WithClock of your own limiter.
func NewClock() *Clock {
	c := &Clock{}
	c.ns.Store(time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}

// Now is the clock's time.
func (c *Clock) Now() time.Time { return time.Unix(0, c.ns.Load()).UTC() }

// Advance moves the clock by d; a negative d moves it back.
func (c *Clock) Advance(d time.Duration) { c.ns.Add(int64(d)) }
