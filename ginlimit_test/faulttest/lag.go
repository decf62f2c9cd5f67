package faulttest

import (
	"context"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Lag measures how late this process is because its machine has no processor for it. Whatever bound a timer
// keeps is exceeded by as much, so Allow adds that: a busy machine does not fail a test, and an idle one
// excuses nothing. Its methods are safe for concurrent use.
type Lag struct {
	mu      sync.Mutex
	samples []sample
	waited  map[string]time.Duration // of each thread
	ready   []uint64                 // of goroutines, by how long
}

// sample is a moment, and the longest wait for a processor since the sample before.
type sample struct {
	at   time.Time
	late time.Duration
}

// interval is the time between samples.
const interval = 5 * time.Millisecond

// MeasureLag measures until the test ends.
func MeasureLag(tb testing.TB) *Lag {
	tb.Helper()
	l := &Lag{}
	l.sample(time.Now())
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			due := time.Now().Add(interval)
			time.Sleep(interval)
			l.sample(due)
		}
	})
	tb.Cleanup(func() {
		stop()
		wg.Wait()
	})
	return l
}

// sample notes the longest that anything had to wait for a processor since the last one: the sample itself, a
// goroutine that Go's scheduler had ready, or a thread that the system had.
func (l *Lag) sample(due time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	waited, ready := threads(), goroutines()
	now := sample{at: time.Now()}
	if l.waited != nil {
		now.late = max(0, now.at.Sub(due))
		for thread, d := range waited {
			now.late = max(now.late, d-l.waited[thread])
		}
		for i, n := range ready.Counts {
			if n > l.ready[i] && i > 0 { // the first bucket begins at minus infinity
				now.late = max(now.late, time.Duration(ready.Buckets[i]*float64(time.Second)))
			}
		}
	}
	l.samples, l.waited, l.ready = append(l.samples, now), waited, ready.Counts
}

// goroutines tells how many of them were ready to run, and did not, for how long: since the process began.
func goroutines() *metrics.Float64Histogram {
	samples := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(samples)
	return samples[0].Value.Float64Histogram()
}

// threads tells how long each was ready to run and did not: the second field of Linux's schedstat, in
// nanoseconds.
func threads() map[string]time.Duration {
	waited := map[string]time.Duration{}
	names, _ := filepath.Glob("/proc/self/task/*/schedstat")
	for _, name := range names {
		raw, _ := os.ReadFile(name)
		if fields := strings.Fields(string(raw)); len(fields) == 3 {
			ns, _ := strconv.ParseInt(fields[1], 10, 64)
			waited[name] = time.Duration(ns)
		}
	}
	return waited
}

const (
	// Computing is what a decision may take besides waiting, under the race detector.
	Computing = 20 * time.Millisecond

	// probeInterval is that of ginlimit's circuit breaker.
	probeInterval = 250 * time.Millisecond

	// maxWaits is how many waits at most come one after another in what is bounded: for a timer, a processor, a
	// lock.
	maxWaits = 8
)

// Allow is a bound as this machine could keep it during s. Each decision that failed within s only because
// the machine was late adds what it cost: its own time, and that until the circuit breaker's next probe.
func (l *Lag) Allow(bound time.Duration, s Span, failed ...Span) time.Duration {
	allowed := bound + Computing + l.During(s)
	for _, f := range failed {
		if l.During(f) > Computing {
			allowed += f.Length() + probeInterval
		}
	}
	return allowed
}

// During returns the longest that the machine may have delayed what took s: the sum of the worst delays, one
// for each of its waits.
func (l *Lag) During(s Span) (sum time.Duration) {
	if l.last().Before(s.End) {
		l.sample(time.Now())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	index := func(at time.Time) int {
		i, _ := slices.BinarySearchFunc(l.samples, at, func(s sample, at time.Time) int { return s.at.Compare(at) })
		return i
	}
	var late []time.Duration
	for _, s := range l.samples[index(s.Begin):min(len(l.samples), index(s.End)+1)] {
		late = append(late, s.late)
	}
	slices.Sort(late)
	for _, d := range late[max(0, len(late)-maxWaits):] {
		sum += d
	}
	return sum
}

func (l *Lag) last() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.samples[len(l.samples)-1].at
}
