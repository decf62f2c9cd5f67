package request

import (
	"context"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// Counter is the part of a limiter that counts. It must not change while requests are in progress.
type Counter struct {
	Store    budget.Store
	Direct   budget.Store  // the same, without a rejection cache
	Local    bool          // the store is this process's memory, which never fails
	Timeout  time.Duration // of a decision; 0: no bound but the client's own
	Leases   *Leases
	LogError func(ctx context.Context, message string, err error)
}

// Portion is the part of the caller's remaining time that a decision may use.
type Portion int

const (
	Whole  Portion = 5 // fifths: for a caller that waits only for the decision
	Shared Portion = 4 // for an HTTP request, which must be answered even if Redis does not answer
)

// Deadline is when a decision that begins now must have ended, including giving back: after the limiter's
// timeout, or earlier if the caller has less time. The zero time means no deadline.
func (l *Counter) Deadline(ctx context.Context, p Portion) time.Time {
	callers, bounded := ctx.Deadline()
	if l.Local || l.Timeout <= 0 && !bounded {
		return time.Time{}
	}
	now := time.Now()
	left := l.Timeout
	if bounded {
		callersLeft := callers.Sub(now) / 5 * time.Duration(p)
		if left <= 0 || callersLeft < left {
			left = callersLeft
		}
	}
	return now.Add(left)
}

// lessReserve is the deadline of a decision that may have something to give back. It keeps a fifth of the
// time for that: if this Redis hangs, earlier limiters may use another Redis, and there the request must cost
// nothing.
func lessReserve(deadline time.Time) time.Time {
	if deadline.IsZero() {
		return deadline
	}
	return deadline.Add(-time.Until(deadline) / 5)
}

// Bounded returns ctx with a deadline, if there is one.
func Bounded(ctx context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	if deadline.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline)
}

// Ended returns ctx's error. It also compares the deadline with the time, because ctx's timer may be later
// than that of the socket.
func Ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}
