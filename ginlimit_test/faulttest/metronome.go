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

// Span is the time from Begin to End.
type Span struct{ Begin, End time.Time }

// Since is the span from begin to now.
func Since(begin time.Time) Span { return Span{begin, time.Now()} }

// Length returns End - Begin.
func (s Span) Length() time.Duration { return s.End.Sub(s.Begin) }

// Metronome notes how late this process is because its machine has no processor for it. Whatever bound a timer keeps is
// exceeded by as much, so Allow adds that: a busy machine does not fail a test, and when it is idle again excuses none.
// Its methods are safe for concurrent use.
type Metronome struct {
	mu     sync.Mutex
	beats  []beat
	waited map[string]time.Duration // of each thread
	ready  []uint64                 // of goroutines, by how long
}

// beat is a moment, and the longest wait for a processor since the beat before.
type beat struct {
	at   time.Time
	late time.Duration
}

// interval is the time between beats.
const interval = 5 * time.Millisecond

// NewMetronome starts a metronome, which ends with the test.
func NewMetronome(tb testing.TB) *Metronome {
	tb.Helper()
	m := &Metronome{}
	m.beat(time.Now())
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			due := time.Now().Add(interval)
			time.Sleep(interval)
			m.beat(due)
		}
	})
	tb.Cleanup(func() {
		stop()
		wg.Wait()
	})
	return m
}

// beat notes the longest that anything had to wait for a processor since the last one: the beat itself, a goroutine that
// Go's scheduler had ready, or a thread that the system had.
func (m *Metronome) beat(due time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	waited, ready := threads(), goroutines()
	now := beat{at: time.Now()}
	if m.waited != nil {
		now.late = max(0, now.at.Sub(due))
		for thread, d := range waited {
			now.late = max(now.late, d-m.waited[thread])
		}
		for i, n := range ready.Counts {
			if n > m.ready[i] && i > 0 { // the first bucket begins at minus infinity
				now.late = max(now.late, time.Duration(ready.Buckets[i]*float64(time.Second)))
			}
		}
	}
	m.beats, m.waited, m.ready = append(m.beats, now), waited, ready.Counts
}

// goroutines tells how many of them were ready to run, and did not, for how long: since the process began.
func goroutines() *metrics.Float64Histogram {
	samples := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(samples)
	return samples[0].Value.Float64Histogram()
}

// threads tells how long each was ready to run and did not: the second field of Linux's schedstat, in nanoseconds.
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

// Computing is what a decision may take besides waiting, under the race detector.
const Computing = 20 * time.Millisecond

// Allow is a bound as this machine could keep it during s.
func (m *Metronome) Allow(bound time.Duration, s Span) time.Duration {
	return bound + Computing + m.Late(s)
}

// chain is how many waits at most come one after another in what is bounded: for a timer, a processor, a lock and so on.
const chain = 8

// Late returns the longest that the machine may have delayed what took s: the sum of the worst delays, one for each of its
// waits.
func (m *Metronome) Late(s Span) (sum time.Duration) {
	if m.last().Before(s.End) {
		m.beat(time.Now())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	index := func(at time.Time) int {
		i, _ := slices.BinarySearchFunc(m.beats, at, func(b beat, at time.Time) int { return b.at.Compare(at) })
		return i
	}
	var late []time.Duration
	for _, b := range m.beats[index(s.Begin):min(len(m.beats), index(s.End)+1)] {
		late = append(late, b.late)
	}
	slices.Sort(late)
	for _, l := range late[max(0, len(late)-chain):] {
		sum += l
	}
	return sum
}

func (m *Metronome) last() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.beats[len(m.beats)-1].at
}

// probeInterval is that of ginlimit's circuit breaker.
const probeInterval = 250 * time.Millisecond

// Excuse is what may have been lost to decisions that failed only because this machine was late: each took its time, and
// kept the circuit breaker open until the next probe.
func (m *Metronome) Excuse(failed []Span) (sum time.Duration) {
	for _, s := range failed {
		if m.Late(s) > Computing {
			sum += s.Length() + probeInterval
		}
	}
	return sum
}
