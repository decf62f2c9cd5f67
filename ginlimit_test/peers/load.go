package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"
)

// stride is the way from one user to the next, so that neighbours are far apart in memory. It is prime, and
// no number of users that is asked for is a multiple of it.
const stride = 7919

// caller decides in a closed loop, visit by visit, over its part of the users.
type caller struct {
	decide    decide
	users     []string
	latencies *hdrhistogram.Histogram // in ns
}

// callersOf divides the users. Where there are fewer users than callers, some share one.
func callersOf(decisions []decide, users []string) (callers []*caller) {
	part := partOf(len(users), len(decisions))
	for i, decide := range decisions {
		c := &caller{decide, nil, hdrhistogram.New(int64(100*time.Nanosecond), int64(time.Minute), 3)}
		for n := range part {
			c.users = append(c.users, users[(i*part+n)*stride%len(users)])
		}
		callers = append(callers, c)
	}
	return callers
}

// partOf is how many users each caller has.
func partOf(users, callers int) int { return (users + callers - 1) / callers }

// forever is as many visits as there is time for.
const forever = math.MaxInt32

type visitKey struct{}

// run lets every caller visit all its users so often, or until the time is up, and call once at least. The
// callers of one lane take turns, call by call; lanes run at the same time. A verdict that is not wanted, if
// one is, and the first error end the run.
func run(ctx context.Context, lanes [][]*caller, visits int, lasts time.Duration, want *verdict) (
	took time.Duration, err error,
) {
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for _, lane := range lanes {
		group.Go(func() error {
			now := start
			for visit := range visits {
				ctx := context.WithValue(ctx, visitKey{}, visit)
				for n := range lane[0].users {
					for _, c := range lane {
						user := c.users[n]
						v, err := c.decide(ctx, user)
						if err == nil && want != nil && v.allowed != want.allowed {
							err = fmt.Errorf("allowed %t; more -users or a shorter -duration?", v.allowed)
						}
						if err != nil {
							return fmt.Errorf("user %s, visit %d: %w", user, visit, err)
						}
						began := now
						now = time.Now() // one look at the clock a call: what it costs is in every row
						_ = c.latencies.RecordValue(int64(min(now.Sub(began), time.Minute)))
					}
					if now.Sub(start) >= lasts || ctx.Err() != nil {
						return ctx.Err()
					}
				}
			}
			return nil
		})
	}
	err = group.Wait()
	return time.Since(start), err
}
