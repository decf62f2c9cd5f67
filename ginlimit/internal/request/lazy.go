package request

import (
	"context"
	"sync"
	"time"
)

// Bounded returns ctx with a deadline, if there is one. With a rejection cache, no timer starts until
// somebody waits: a timer costs more than an answer of the cache.
func (l *Counter) Bounded(ctx context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	if l.Store == l.Direct || deadline.IsZero() {
		return Bounded(ctx, deadline)
	}
	lazy := &lazyDeadline{parent: ctx, deadline: deadline}
	return lazy, lazy.cancel
}

// lazyDeadline is a context whose timer starts at the first call of any method but Deadline.
type lazyDeadline struct {
	parent   context.Context
	deadline time.Time // sooner than the parent's

	begin sync.Once
	timed context.Context
	stop  context.CancelFunc
}

func (l *lazyDeadline) context() context.Context {
	l.begin.Do(func() { l.timed, l.stop = context.WithDeadline(l.parent, l.deadline) })
	if l.timed == nil { // it was canceled before it began
		ctx, cancel := context.WithCancel(l.parent)
		cancel()
		return ctx
	}
	return l.timed
}

func (l *lazyDeadline) cancel() {
	l.begin.Do(func() {})
	if l.stop != nil {
		l.stop()
	}
}

func (l *lazyDeadline) Deadline() (time.Time, bool) { return l.deadline, true }
func (l *lazyDeadline) Done() <-chan struct{}       { return l.context().Done() }
func (l *lazyDeadline) Err() error                  { return l.context().Err() }
func (l *lazyDeadline) Value(key any) any           { return l.context().Value(key) }
