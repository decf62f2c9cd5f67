package chaos

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gin-tiers/ratelimit/ginlimit"
)

// fault is one row of the run.
type fault struct {
	name     string
	bound    bound
	opens    bool             // Redis does not answer, so the breaker opens
	promoted bool             // enforcement is back when a replica was promoted, and clients have learned of it
	victims  func(*user) bool // whom it concerns; nil is everybody
	clusters bool             // it needs run.cluster
	deadline time.Duration    // of the requests themselves; 0 is none
	inject   func(*run)       // serves, inflicts, heals
	verify   func(*run)       // asserts what is peculiar to it
}

func (f fault) concerns(u *user) bool { return f.victims == nil || f.victims(u) }

// decidesWithin is the longest that a decision takes: of a request's own time a fifth is left for its answer.
func (f fault) decidesWithin() time.Duration {
	if f.deadline > 0 {
		return f.deadline * 4 / 5
	}
	return ginlimit.DefaultTimeout
}

func (f fault) backWithin() time.Duration {
	if f.promoted {
		return 5 * time.Second
	}
	return 2 * time.Second
}

// bound is by how much a fault may raise what is admitted above the limit of a window.
type bound struct {
	text string
	of   func(r *run, u *user, limit int) int
}

var (
	nothing = bound{"0", func(*run, *user, int) int { return 0 }}

	// The counts are gone, once.
	lostAll = bound{"limit", func(_ *run, _ *user, limit int) int { return limit }}

	// What was not yet on disk is gone. Redis writes it at the end of its event loop, but waits for an fsync of
	// the last second that is still going on, for two seconds at most.
	lostLastSecond = bound{"admitted in the last second", func(r *run, u *user, _ int) (n int) {
		for _, c := range r.load.all() {
			lately := c.sent.Before(r.began) && c.back.After(r.began.Add(-2*time.Second))
			if lately && c.user == u && c.byRedis() && c.verdict.outcome == ginlimit.Admitted {
				n++
			}
		}
		return n
	}}
)

// faults is the whole run.
var faults = slices.Concat(serverFaults, networkFaults, clusterFaults)

// every calls f again and again until the function that it returns is called.
func every(interval time.Duration, f func()) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			f()
			time.Sleep(interval)
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}
