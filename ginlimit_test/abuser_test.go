package ginlimit_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/apptest"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// One user calls the example app at full speed, beside others at a fixed rate. The abuser costs Redis one
// call a second. How long the others wait is logged and not asserted: on few cores that is mostly a wait for
// the CPU. So these situations alternate: nobody else calls; somebody calls a route without limits at full
// speed, which takes the same CPU except for the limiter's part; the abuser calls. Both do so in one loop,
// and in four at once.
func TestAHotAbuserHardlyAsksRedis(t *testing.T) {
	const (
		phase  = 250 * time.Millisecond
		rounds = 6
		rate   = 200 // calls of the others in a second
		loops  = 4   // at full speed, at most
		others = 10  // users
	)
	keys := "sk-abuser=abuser:free"
	for i := range others {
		keys += fmt.Sprintf(",sk-%d=user_%d:enterprise", i, i)
	}
	srv := redistest.Start(t)
	app := apptest.Start(t, apptest.Build(t), "REDIS_URL="+srv.URL(), "API_KEYS="+keys)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: loops + 1}}
	t.Cleanup(client.CloseIdleConnections)
	get := func(path, key string) (status int, err error) {
		r, err := http.NewRequest(http.MethodGet, app.URL+path, nil)
		if err != nil {
			return 0, err
		}
		r.Header.Set("Authorization", "Bearer "+key)
		response, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		_, err = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		return response.StatusCode, err
	}
	for i := range 6 {
		status, err := get("/v1/models", "sk-abuser")
		require.NoError(t, err)
		require.Equal(t, i < 5, status == http.StatusOK)
	}
	// hammer calls at full speed until the context ends, and counts.
	hammer := func(ctx context.Context, loops int, path string, want int) (calls int64) {
		var (
			all sync.WaitGroup
			n   atomic.Int64
		)
		for range loops {
			all.Go(func() {
				for ctx.Err() == nil {
					if status, err := get(path, "sk-abuser"); err != nil || status != want {
						t.Errorf("%s: %d, %v", path, status, err)
						return
					}
					n.Add(1)
				}
			})
		}
		all.Wait()
		return n.Load()
	}
	// measure calls for a phase, one after the other, and says how long each took.
	measure := func() (took []time.Duration) {
		for begin, n := time.Now(), 0; ; n++ {
			due := begin.Add(time.Duration(n) * time.Second / rate)
			if due.Sub(begin) >= phase {
				return took
			}
			time.Sleep(time.Until(due))
			sent := time.Now()
			status, err := get("/v1/models", fmt.Sprint("sk-", n%others))
			took = append(took, time.Since(sent))
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, status)
		}
	}

	situations := []struct {
		name, path    string
		loops, status int
		calls         int64
		took          []time.Duration
	}{
		{name: "alone"},
		{name: "beside a route without limits", path: "/healthz", loops: 1, status: http.StatusOK},
		{name: "beside the abuser", path: "/v1/models", loops: 1, status: http.StatusTooManyRequests},
		{name: "beside a route without limits", path: "/healthz", loops: loops, status: http.StatusOK},
		{name: "beside the abuser", path: "/v1/models", loops: loops, status: http.StatusTooManyRequests},
	}
	for i := range rounds * len(situations) {
		now := &situations[i%len(situations)]
		ctx, stop := context.WithCancel(t.Context())
		var hammering sync.WaitGroup
		if now.path != "" {
			hammering.Go(func() { now.calls += hammer(ctx, now.loops, now.path, now.status) })
		}
		now.took = append(now.took, measure()...)
		stop()
		hammering.Wait()
	}
	for _, s := range situations {
		t.Logf("others %s (%d loops): p50 %v, p99 %v; %d calls at full speed", s.name, s.loops,
			percentile(s.took, 50), percentile(s.took, 99), s.calls)
	}

	_, err := get("/v1/models", "sk-abuser") // the latest rejection is known from here on
	require.NoError(t, err)
	srv.ResetStats(t)
	began := time.Now()
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
	defer stop()
	calls := hammer(ctx, loops, "/v1/models", http.StatusTooManyRequests)
	took := time.Since(began)
	scripts := srv.Calls(t, "evalsha")
	t.Logf("%d of the abuser's %d calls reached Redis in %v", scripts, calls, took)
	require.Greater(t, calls, int64(1000), "it hammered")
	require.LessOrEqual(t, scripts, 1+int(took/(900*time.Millisecond)), "a call a second, or a little less")
}

func percentile(all []time.Duration, n int) time.Duration {
	return slices.Sorted(slices.Values(all))[len(all)*n/100]
}
