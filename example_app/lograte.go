package main

import (
	"sync/atomic"
	"time"
)

// logRate lets a line into the log, and then no other for a second: an outage meets every request. The zero
// value is ready. It is safe for concurrent use.
type logRate struct{ last atomic.Pointer[time.Time] }

func (r *logRate) allow() bool {
	now, last := time.Now(), r.last.Load()
	if last != nil && now.Sub(*last) < time.Second {
		return false
	}
	return r.last.CompareAndSwap(last, &now)
}
