package chaos

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// metronome notes how late this process was because its machine had no processor for it. Whatever bound a timer keeps
// is exceeded by as much, so allow adds that: a busy machine neither fails a run nor, when it is idle again, excuses one.
type metronome struct {
	mu     sync.Mutex
	beats  []beat
	waited map[string]time.Duration // of each thread
}

// beat is a moment, and how much was waited for in vain since the beat before.
type beat struct {
	at   time.Time
	late time.Duration
}

func newMetronome(t *testing.T) *metronome {
	t.Helper()
	m := &metronome{}
	m.beat(time.Now())
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			due := time.Now().Add(5 * time.Millisecond)
			time.Sleep(time.Until(due))
			m.beat(due)
		}
	})
	t.Cleanup(func() {
		stop()
		wg.Wait()
	})
	return m
}

// beat notes how late it comes itself, or how long a thread of this process was ready to run and did not, whichever is more.
func (m *metronome) beat(due time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	waited := threads()
	now := beat{at: time.Now()}
	if m.waited != nil {
		now.late = max(0, now.at.Sub(due))
		for thread, d := range waited {
			now.late = max(now.late, d-m.waited[thread])
		}
	}
	m.beats, m.waited = append(m.beats, now), waited
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

// allow is a bound as this machine could keep it during s. Computing, under the race detector on a busy machine, may take
// 100 ms, a thirtieth of what go-redis waits by default; and whatever is bounded here is a chain of less than eight waits,
// each of which may have met one of the worst delays.
func (m *metronome) allow(bound time.Duration, s span) time.Duration {
	return bound + 100*time.Millisecond + m.late(s)
}

// late is the sum of those delays. A beat must have been noted since s.
func (m *metronome) late(s span) (sum time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	index := func(at time.Time) int {
		i, _ := slices.BinarySearchFunc(m.beats, at, func(b beat, at time.Time) int { return b.at.Compare(at) })
		return i
	}
	var worst []time.Duration
	for _, b := range m.beats[index(s.begin):min(len(m.beats), index(s.end)+1)] {
		worst = append(worst, b.late)
	}
	slices.Sort(worst)
	for _, late := range worst[max(0, len(worst)-8):] {
		sum += late
	}
	return sum
}

// excuse is what may have been lost to decisions that failed for the lateness of this machine alone: each took its time,
// and opened the breaker for half a second.
func (m *metronome) excuse(failed []span) (sum time.Duration) {
	for _, s := range failed {
		if m.late(s) > 20*time.Millisecond {
			sum += s.length() + 500*time.Millisecond
		}
	}
	return sum
}
