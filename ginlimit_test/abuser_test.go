package ginlimit_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/redisclient"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// One user calls at full speed, beside others at a fixed rate, on one Redis and in one process: it costs
// Redis a call a second. How long the others wait is told, and not asserted: on few cores that is mostly a
// wait for the CPU. So three situations alternate: nobody else calls; a goroutine asks a memory limiter at
// full speed, which takes the same core and not Redis; the abuser calls.
func TestAHotAbuserHardlyAsksRedis(t *testing.T) {
	const (
		phase  = 250 * time.Millisecond
		phases = 18
		limit  = 5
		rate   = 1000 // calls of the others in a second
	)
	srv := redistest.Start(t)
	rdb, err := redisclient.New(srv.URL())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rdb.Close()) })
	limiter := ginlimit.NewLimiter(rdb, ginlimit.WithRejectionCache(1000))
	situations := []struct {
		name string
		full *ginlimit.Limiter // that is asked at full speed
	}{
		{name: "alone"},
		{"a busy core", ginlimit.NewMemoryLimiter(ginlimit.WithRejectionCache(1000))},
		{"the abuser", limiter},
	}
	for _, s := range situations[1:] {
		for i := range limit + 1 {
			d, err := s.full.Check(t.Context(), "abuser", limit, time.Minute)
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
			runtime.Gosched() // as a request that comes by a socket does
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
			d, err := limiter.Check(t.Context(), fmt.Sprint("user_", n), 1_000_000, time.Minute)
			require.NoError(t, err)
			require.True(t, d.Allowed)
			waits = append(waits, time.Since(sent))
		}
	}

	waits, calls, took := make([][]time.Duration, 3), make([]int, 3), time.Duration(0)
	srv.ResetStats(t)
	for i := range phases {
		now := i % 3
		ctx, stop := context.WithCancel(t.Context())
		var hammering sync.WaitGroup
		began := time.Now()
		if full := situations[now].full; full != nil {
			hammering.Go(func() { calls[now] += hammer(ctx, full) })
		}
		waits[now] = append(waits[now], others()...)
		stop()
		hammering.Wait()
		took += time.Since(began)
	}
	decisions := srv.Calls(t, "zcard") // each counts one window once
	for i, s := range situations {
		decisions -= len(waits[i])
		t.Logf("%s: p99 of others %v, %d calls at full speed", s.name, p99(waits[i]), calls[i])
	}
	t.Logf("%d of the abuser's calls reached Redis in %v", decisions, took)
	require.Greater(t, calls[2], 10*phases, "it hammered")
	require.LessOrEqual(t, decisions, 1+int(took/(900*time.Millisecond)), "a call a second, or a little less")
}

func p99(waits []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(waits))
	return sorted[len(sorted)*99/100]
}
