package request

import (
	"context"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit/internal/budget"
)

// Counter is the part of a limiter that counts. It must not change while requests run.
type Counter struct {
	Store    budget.Store
	Direct   budget.Store  // the same, without a rejection cache
	Local    bool          // the store is this process's memory, which never fails
	Timeout  time.Duration // of a decision; 0: as long as the client takes
	Leases   *Leases
	LogError func(ctx context.Context, message string, err error)
}

// Portion is the part of a caller's own time that a decision may use.
type Portion int

const (
	Whole  Portion = 5 // fifths: of a caller who waits for the decision alone
	Shared Portion = 4 // of an HTTP request, which still has to be answered when Redis does not
)

// Deadline is when a decision that begins now must have ended, giving back included: after the limiter's
// timeout, or earlier where the caller has less time. The zero time is no deadline.
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

// lessReserve is the deadline of a decision that may have something to give back. A fifth of the time is kept
// for giving back: if this Redis hangs, limiters before this one may use another Redis, and there the request
// must cost nothing.
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

// Ended returns ctx's error. It also looks at the deadline itself, since the timer of ctx may be later than
// that of the socket.
func Ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}
