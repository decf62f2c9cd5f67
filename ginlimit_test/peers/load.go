package main

import (
	"context"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"
)

// stride is the way from one user to the next, so that neighbours are far apart in memory. It is prime, and
// no number of users that is asked for is a multiple of it.
const stride = 7919

// load lets its workers decide, each in a closed loop over all users from a place of its own on.
type load struct {
	workers   []decide
	users     []string
	latencies []*hdrhistogram.Histogram // of each worker, in ns; made before what is measured
}

func newLoad(workers []decide, users []string) *load {
	l := &load{workers: workers, users: users}
	for range workers {
		l.latencies = append(l.latencies, hdrhistogram.New(int64(time.Microsecond), int64(time.Minute), 2))
	}
	return l
}

// turn is how many calls of each worker let all of them together see everybody: once, where the workers
// divide the users.
func (l *load) turn() int { return (len(l.users) + len(l.workers) - 1) / len(l.workers) }

// reset forgets all latencies.
func (l *load) reset() {
	for _, h := range l.latencies {
		h.Reset()
	}
}

// all is the latencies of all workers since reset.
func (l *load) all() *hdrhistogram.Histogram {
	sum := hdrhistogram.New(int64(time.Microsecond), int64(time.Minute), 2)
	for _, h := range l.latencies {
		sum.Merge(h)
	}
	return sum
}

// tally is what loads came to.
type tally struct {
	allowed, rejected int
	took              time.Duration
}

func (t tally) plus(u tally) tally {
	return tally{t.allowed + u.allowed, t.rejected + u.rejected, t.took + u.took}
}

// run goes on until the time is up or each worker has made so many calls (0 = no bound), at least one. The
// first error ends it.
func (l *load) run(ctx context.Context, lasts time.Duration, calls int) (sum tally, _ error) {
	tallies := make([]tally, len(l.workers))
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for i, decide := range l.workers {
		group.Go(func() error {
			t, first, now := &tallies[i], i*len(l.users)/len(l.workers), start
			for n := 0; n == 0 || now.Sub(start) < lasts && (calls == 0 || n < calls); n++ {
				user, began := l.users[(first+n)*stride%len(l.users)], time.Now()
				v, err := decide(ctx, user)
				now = time.Now()
				if err == nil && n%64 == 0 {
					err = ctx.Err()
				}
				if err != nil {
					return fmt.Errorf("user %s, call %d: %w", user, n, err)
				}
				_ = l.latencies[i].RecordValue(int64(min(now.Sub(began), time.Minute)))
				if v.allowed {
					t.allowed++
				} else {
					t.rejected++
				}
			}
			return nil
		})
	}
	err := group.Wait()
	for _, t := range tallies {
		sum = sum.plus(t)
	}
	sum.took = time.Since(start)
	return sum, err
}
