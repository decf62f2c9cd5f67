package ginlimit

import (
	"sync/atomic"
	"time"
)

// logRate allows one line in a period, the first at once. It is safe for concurrent use.
type logRate struct {
	every time.Duration
	last  atomic.Int64 // Unix nanoseconds; 0 = never
}

func newLogRate(every time.Duration) *logRate { return &logRate{every: every} }

func (r *logRate) allow(now time.Time) bool {
	at, last := now.UnixNano(), r.last.Load()
	// If the clock is set back by a step, lines must not be suppressed for as long as the step.
	if last != 0 && at >= last && at-last < int64(r.every) {
		return false
	}
	return r.last.CompareAndSwap(last, at)
}
