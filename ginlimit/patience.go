package ginlimit

import (
	"context"
	"time"
)

// portion is the part of a caller's own time that a decision may use.
type portion int

const (
	whole  portion = 5 // fifths: of a caller who waits for the decision alone
	shared portion = 4 // of an HTTP request, which still has to be answered when Redis does not
)

// deadline is when a decision that begins now must have ended, giving back included: after the limiter's
// timeout, or earlier where the caller has less time. The zero time is no deadline.
func (l *Limiter) deadline(ctx context.Context, p portion) time.Time {
	callers, bounded := ctx.Deadline()
	if l.local || l.timeout <= 0 && !bounded {
		return time.Time{}
	}
	now := time.Now()
	left := l.timeout
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

// bounded returns ctx with a deadline, if there is one.
func bounded(ctx context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	if deadline.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, deadline)
}

// ended returns ctx's error. It also looks at the deadline itself, since the timer of ctx may be later than
// that of the socket.
func ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}
