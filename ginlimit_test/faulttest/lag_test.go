package faulttest

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLagAllows(t *testing.T) {
	base := time.Now()
	at := func(ms int) time.Time { return base.Add(time.Duration(ms) * time.Millisecond) }
	l := &Lag{samples: []sample{
		{at(0), 100 * time.Millisecond}, {at(5), 0}, {at(10), time.Millisecond}, {at(35), 20 * time.Millisecond},
		{at(40), 0}, {at(100), 50 * time.Millisecond}, {at(110), 0},
	}}
	for name, tt := range map[string]struct {
		from, to int
		want     time.Duration
	}{
		"an idle machine":              {1, 5, 0},
		"late in the middle":           {6, 37, 21 * time.Millisecond},
		"late at the end, noted later": {42, 95, 50 * time.Millisecond},
		"all of it":                    {0, 110, 171 * time.Millisecond},
	} {
		require.Equal(t, tt.want, l.During(Span{at(tt.from), at(tt.to)}), name)
	}
	busy := Span{at(6), at(37)}
	require.Equal(t, time.Second+Computing+21*time.Millisecond, l.Allow(time.Second, busy))
	require.Equal(t, l.Allow(time.Second, busy)+busy.Length()+250*time.Millisecond,
		l.Allow(time.Second, busy, busy,
			Span{at(1), at(5)}), "one of two decisions failed because the machine was late")

	for i := range 20 {
		l.samples = append(l.samples, sample{at(200 + i), time.Duration(i) * time.Millisecond})
	}
	require.Equal(t, (12+13+14+15+16+17+18+19)*time.Millisecond, l.During(Span{at(150), at(219)}),
		"the worst of a long chain")
}

// What had to wait for a processor is seen, be it a goroutine or a thread.
func TestWaitsForAProcessorAreSeen(t *testing.T) {
	thread, goroutine := threads(), goroutines()
	var wg sync.WaitGroup
	for range 200 { // Go looks at one goroutine of eight
		wg.Go(func() {
			for begin := time.Now(); time.Since(begin) < time.Millisecond; {
			}
		})
	}
	wg.Wait()
	waited := 0
	for i, n := range goroutines().Counts {
		waited += int(n - goroutine.Counts[i])
	}
	require.Positive(t, waited)
	now := threads()
	require.NotEmpty(t, now)
	for name, d := range thread {
		require.GreaterOrEqual(t, now[name], d, name)
	}
}

// A sample that is taken late counts as a delay.
func TestLagNotesALateSample(t *testing.T) {
	l := MeasureLag(t)
	begin := time.Now()
	l.mu.Lock() // no sample is taken
	time.Sleep(50 * time.Millisecond)
	l.mu.Unlock()
	time.Sleep(4 * interval)
	require.Greater(t, l.During(Span{begin, time.Now()}), 30*time.Millisecond)
}
