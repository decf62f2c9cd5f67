package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// stride is the way from one user to the next, so that neighbours are far apart in memory. It is
// prime, and no number of users that is asked for is a multiple of it.
const stride = 7919

// tally is what a load came to.
type tally struct {
	allowed, rejected int
	latencies         histogram
	took              time.Duration
}

func (t tally) decisions() int { return t.allowed + t.rejected }

// load lets the workers decide, each in a closed loop over all users from a place of its own on, until
// the time is up or each has made so many calls (0 = no bound), at least one.
type load struct {
	workers  []decide
	users    []string
	duration time.Duration
	calls    int
}

func (l load) run(ctx context.Context) (tally, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var stop atomic.Bool
	timer := time.AfterFunc(l.duration, func() { stop.Store(true) })
	defer timer.Stop()

	tallies := make([]tally, len(l.workers))
	var wg sync.WaitGroup
	start := time.Now()
	for i, ask := range l.workers {
		wg.Go(func() {
			t := &tallies[i]
			first := i * len(l.users) / len(l.workers)
			for n := 0; n == 0 || !stop.Load() && (l.calls == 0 || n < l.calls); n++ {
				user := l.users[(first+n)*stride%len(l.users)]
				began := time.Now()
				allowed, err := ask(ctx, user)
				if err != nil {
					cancel(fmt.Errorf("user %s, call %d: %w", user, n, err))
					return
				}
				t.latencies.add(time.Since(began))
				if allowed {
					t.allowed++
				} else {
					t.rejected++
				}
				if n%64 == 0 && ctx.Err() != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	sum := tally{took: time.Since(start)}
	for i := range tallies {
		t := &tallies[i]
		sum.allowed += t.allowed
		sum.rejected += t.rejected
		sum.latencies.merge(&t.latencies)
	}
	if err := context.Cause(ctx); err != nil {
		return sum, err
	}
	return sum, nil
}
