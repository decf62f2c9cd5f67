package ginlimit_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// One user calls at full speed, beside others at a fixed rate, on one Redis and in one process. It
// costs Redis a call a second, and the others wait no longer than without it.
//
// On few cores a goroutine that never rests makes everybody wait, whatever it does. So where there is no
// abuser, a goroutine asks a memory limiter at full speed: it takes the same core, and not Redis. Both
// alternate, four times a second, so that what else the machine does is in both.
func TestAHotAbuserLeavesOthersAlone(t *testing.T) {
	const (
		phase  = 250 * time.Millisecond
		phases = 16
		limit  = 5
		rate   = 1000 // calls of the others in a second
	)
	srv := redistest.Start(t)
	rdb, err := redisclient.New(srv.URL())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	limiters := map[bool]*ginlimit.Limiter{ // by whether it is the abuser
		true:  ginlimit.NewLimiter(rdb, ginlimit.WithRejectionCache(1000)),
		false: ginlimit.NewMemoryLimiter(ginlimit.WithRejectionCache(1000)),
	}
	for _, l := range limiters {
		for i := range limit + 1 {
			d, err := l.Check(t.Context(), "abuser", limit, time.Minute)
			require.NoError(t, err)
			require.Equal(t, i < limit, d.Allowed)
		}
	}
	// hammer calls until the context ends, and counts.
	hammer := func(ctx context.Context, l *ginlimit.Limiter) (calls int) {
		for ctx.Err() == nil {
			if d, err := l.Check(t.Context(), "abuser", limit, time.Minute); err != nil || d.Allowed {
				t.Errorf("the abuser: allowed %t, %v", d.Allowed, err)
				break
			}
			calls++
		}
		return calls
	}
	// others call for a phase, one after the other, and say how long each waited behind its time.
	others := func() (waits []time.Duration) {
		for begin, n := time.Now(), 0; ; n++ {
			due := begin.Add(time.Duration(n) * time.Second / rate)
			if due.Sub(begin) >= phase {
				return waits
			}
			time.Sleep(time.Until(due))
			sent := time.Now()
			d, err := limiters[true].Check(t.Context(), fmt.Sprint("user_", n), 1_000_000, time.Minute)
			require.NoError(t, err)
			require.True(t, d.Allowed)
			waits = append(waits, time.Since(sent))
		}
	}

	waits, calls, took := map[bool][]time.Duration{}, map[bool]int{}, time.Duration(0)
	srv.ResetStats(t)
	for i := range phases {
		abused := i%2 == 1
		ctx, stop := context.WithCancel(t.Context())
		var hammering sync.WaitGroup
		began := time.Now()
		hammering.Go(func() { calls[abused] += hammer(ctx, limiters[abused]) })
		waits[abused] = append(waits[abused], others()...)
		stop()
		hammering.Wait()
		took += time.Since(began)
	}
	decisions := srv.Calls(t, "zcard") - len(waits[true]) - len(waits[false]) // each counts one window once
	without, with := p99(waits[false]), p99(waits[true])
	t.Logf("p99 of others: %v without, %v with the abuser, ratio %.2f; "+
		"it made %d calls, of which %d reached Redis in %v",
		without, with, float64(with)/float64(without), calls[true], decisions, took)
	require.Greater(t, calls[true], 10*phases, "it hammered")
	// A call a second, renewed a little before.
	require.LessOrEqual(t, decisions, 1+int(took/(900*time.Millisecond)))
	require.Less(t, with, 5*without+10*time.Millisecond)
}

func p99(waits []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(waits))
	return sorted[len(sorted)*99/100]
}
