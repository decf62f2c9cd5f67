package ginlimit_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/faulttest"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// Whatever Redis does, a decision ends within the limiter's timeout, giving back included; after five
// failures it takes no time at all; and two seconds after Redis is back it counts again.
func TestLatencyBound(t *testing.T) {
	captureLogs(t)
	lag := faulttest.MeasureLag(t)
	for name, o := range outages {
		for mode, opts := range modes {
			for _, form := range []string{"warm", "cold", "a request deadline of 90 ms"} {
				t.Run(fmt.Sprintf("%s, %s, %s", name, mode, form), func(t *testing.T) {
					t.Parallel()
					s := newSite(t, o.query)
					took := &stopwatch{}
					opts := append(opts[:len(opts):len(opts)], ginlimit.WithTiers(table(t, 1, 9)))
					bound, deadline := ginlimit.DefaultTimeout, time.Minute
					if form != "warm" && form != "cold" {
						bound, deadline = requestDeadline*4/5, requestDeadline
					}
					api := serve(t, took.measure, withDeadline(deadline),
						ginlimit.New(ginlimit.NewLimiter(s.rdb), resolver, opts...))
					if form != "cold" {
						awaitDecisions(t, api)
					}

					end := o.begin(t, s)
					took.restart()
					began := time.Now()
					for i := 0; i < 50 || time.Since(began) < 700*time.Millisecond; i++ { // long enough for a probe
						r := api.as(redistest.ID(t))
						require.Equal(t, http.StatusServiceUnavailable, r.StatusCode)
						require.Equal(t, "rate_limiter_unavailable", r.apiError(t).Code)
						if i > 50 {
							time.Sleep(time.Millisecond)
						}
					}
					failed := took.all()
					for i, d := range failed {
						require.LessOrEqual(t, d.Length(), lag.Allow(bound, d), "decision %d", i)
					}
					require.Less(t, median(failed[5:]), time.Millisecond, "an open breaker does not ask")

					end()
					took.restart()
					back := awaitDecisions(t, api)
					require.LessOrEqual(t, back.Length(), lag.Allow(2*time.Second, back, took.all()...), "Redis is back")
				})
			}
		}
	}
}

// A pool that gave up on a server whose SYNs are dropped dials and pauses in turn, and the breaker probes at
// its own times. Whatever both are doing when the network is back, limits are enforced two seconds later.
func TestBackTwoSecondsAfterDroppedSYNs(t *testing.T) {
	captureLogs(t)
	lag := faulttest.MeasureLag(t)
	srv := redistest.Start(t)
	var wg sync.WaitGroup
	for i := range 10 {
		proxy := redistest.NewProxy(t, srv.Addr)
		l := ginlimit.NewLimiter(limiterClient(t, "redis://"+proxy.Addr+"?pool_size=1"))
		var failed []faulttest.Span
		decides := func() bool {
			begin := time.Now()
			_, err := l.Check(t.Context(), "alice", 1, time.Minute)
			failed = append(failed, faulttest.Since(begin))
			return err == nil
		}
		wg.Go(func() {
			proxy.Block()
			begin := time.Now()
			decides()
			time.Sleep(time.Duration(i/2) * 100 * time.Millisecond) // the breaker opens later
			lasts := 1050*time.Millisecond + time.Duration(i%2)*500*time.Millisecond
			for ; time.Since(begin) < lasts; time.Sleep(10 * time.Millisecond) {
				if decides() {
					t.Error("a SYN was answered")
				}
			}
			proxy.Pass()
			failed = nil
			for !decides() {
				time.Sleep(10 * time.Millisecond)
			}
			back := faulttest.Since(failed[0].Begin)
			if allowed := lag.Allow(2*time.Second, back, failed...); back.Length() > allowed {
				t.Errorf("back after %v, want %v", back.Length(), allowed)
			}
		})
	}
	wg.Wait()
}

// awaitDecisions waits until a limit of one is enforced: Redis admits a call of a user, and rejects the next.
// A machine that is busy may turn either into a 503.
func awaitDecisions(t *testing.T, api *api) (waited faulttest.Span) {
	t.Helper()
	begin := time.Now()
	for {
		id := redistest.ID(t)
		if first := api.as(id); first.StatusCode == http.StatusOK {
			require.Equal(t, "1 0 minute", first.limits(t))
			if second := api.as(id).StatusCode; second != http.StatusServiceUnavailable {
				require.Equal(t, http.StatusTooManyRequests, second)
				return faulttest.Since(begin)
			}
		}
		require.Less(t, time.Since(begin), 15*time.Second)
		time.Sleep(time.Millisecond)
	}
}

// The budget is that of a whole decision, giving back included, for which it would have needed 180 ms.
func TestLatencyBoundOfGivingBack(t *testing.T) {
	logs := captureLogs(t)
	lag := faulttest.MeasureLag(t)
	s := newSite(t, "")
	took := &stopwatch{}
	rejectedByDay := func() answer {
		id := redistest.ID(t)
		full := redis.Z{Score: float64(serverTime(t, s.srv)), Member: "a request"}
		require.NoError(t, s.srv.Client(t).ZAdd(t.Context(), "ratelimit:"+id+":86400", full).Err())
		limited := ginlimit.New(ginlimit.NewLimiter(s.rdb), resolver, ginlimit.WithTiers(table(t, 1, 1)))
		return serve(t, took.measure, limited).as(id)
	}
	loaded := func() bool { return rejectedByDay().StatusCode == http.StatusTooManyRequests } // the scripts
	require.Eventually(t, loaded, 10*time.Second, time.Millisecond)
	require.Empty(t, s.srv.Client(t).Keys(t.Context(), "*:60").Val(), "given back")
	require.NotContains(t, logs.String(), "could not be given back")

	scripts := 0
	s.rdb.AddHook(afterScript(func() {
		if scripts++; scripts == 2 {
			s.proxy.Delay(180 * time.Millisecond)
		}
	}))
	took.restart()
	require.Equal(t, http.StatusTooManyRequests, rejectedByDay().StatusCode, "the day has answered")
	d := took.all()[0]
	require.LessOrEqual(t, d.Length(), lag.Allow(ginlimit.DefaultTimeout, d))
	require.Contains(t, logs.String(), "could not be given back", "nor is it silent")
}

// WithTimeout bounds a client of go-redis's default settings, too, which would wait for three seconds.
func TestWithTimeoutBoundsAnyClient(t *testing.T) {
	lag := faulttest.MeasureLag(t)
	for name, o := range outages {
		t.Run(name, func(t *testing.T) {
			logs := captureLogs(t)
			s := newSite(t, o.query)
			pool := 0 // the default
			if o.query != "" {
				pool = 1
			}
			s.rdb = redis.NewClient(&redis.Options{Addr: s.proxy.Addr, PoolSize: pool})
			t.Cleanup(func() { _ = s.rdb.Close() })
			before := runtime.NumGoroutine()
			l := ginlimit.NewLimiter(s.rdb, ginlimit.WithTimeout(200*time.Millisecond))
			require.Empty(t, logs.String(), "nothing to warn of")
			require.Eventually(t, func() bool {
				_, err := l.Check(t.Context(), redistest.ID(t), 1, time.Minute)
				return err == nil
			}, 10*time.Second, time.Millisecond)
			end := o.begin(t, s)
			for range 7 {
				begin := time.Now()
				_, err := l.Check(t.Context(), "alice", 1, time.Minute)
				d := faulttest.Since(begin)
				require.Error(t, err)
				require.LessOrEqual(t, d.Length(), lag.Allow(200*time.Millisecond, d))
			}
			end()
			_ = s.rdb.Close() // which ends what goes on
			require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 }, 20*time.Second,
				10*time.Millisecond)
		})
	}
}

// A thousand callers of a Redis that hangs all return in time, and leave nothing behind.
func TestAThousandCallersOfAHungRedis(t *testing.T) {
	captureLogs(t)
	lag := faulttest.MeasureLag(t)
	srv := redistest.Start(t)
	l := ginlimit.NewLimiter(limiterClient(t, srv.URL()))
	require.Eventually(t, func() bool {
		_, err := l.Check(t.Context(), redistest.ID(t), 1, time.Minute)
		return err == nil
	}, 10*time.Second, time.Millisecond)
	before := runtime.NumGoroutine()

	srv.Pause()
	var wg sync.WaitGroup
	calls := make([]faulttest.Span, 1000)
	for i := range calls {
		wg.Go(func() {
			begin := time.Now()
			_, err := l.Check(t.Context(), fmt.Sprint("user", i), 1, time.Minute)
			calls[i] = faulttest.Since(begin)
			if err == nil {
				t.Error("a hung Redis has decided")
			}
		})
	}
	wg.Wait()
	const computing = 400 * time.Millisecond // 0.4 ms a call, under the race detector
	for _, c := range calls {
		require.LessOrEqual(t, c.Length(), lag.Allow(ginlimit.DefaultTimeout+computing, c))
	}
	// A dial goes on after its caller left.
	for begin := time.Now(); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		require.Less(t, time.Since(begin), 10*time.Second, "%d goroutines, %d before", runtime.NumGoroutine(),
			before)
	}
}

// Callers that do not wait are no sign of an outage: however many leave, the breaker stays closed.
func TestCallersThatLeaveAreNoOutage(t *testing.T) {
	logs := captureLogs(t)
	s := newSite(t, "")
	l := ginlimit.NewLimiter(s.rdb)
	check := func(ctx context.Context) error {
		_, err := l.Check(ctx, "alice", 100, time.Minute)
		return err
	}
	// in the end: a machine that is busy may miss a deadline
	decides := func() bool { return check(t.Context()) == nil }
	require.Eventually(t, decides, 10*time.Second, time.Millisecond)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, check(ctx), context.Canceled)
	}
	require.Eventually(t, decides, 10*time.Second, time.Millisecond, "those who had left before")

	s.proxy.Delay(20 * time.Millisecond)
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		require.Error(t, check(ctx))
		cancel()
	}
	s.proxy.Pass()
	require.Eventually(t, decides, 10*time.Second, time.Millisecond, "those whose own deadline passed")
	s.proxy.Delay(20 * time.Millisecond)

	// Over a real socket: the client hangs up while Redis is at work.
	api := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 100, 100))))
	impatient := &http.Client{Timeout: 5 * time.Millisecond, Transport: &http.Transport{DisableKeepAlives: true}}
	left := 0
	for range 20 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, api.URL+"/v1/chat", nil)
		require.NoError(t, err)
		req.Header.Set(headerUser, "bob")
		resp, err := impatient.Do(req)
		if err != nil {
			left++
			continue
		}
		_ = resp.Body.Close() // the machine was too busy for a timer of 5 ms
	}
	require.Greater(t, left, 10)
	s.proxy.Pass()
	served := func() bool { return api.as("carol").StatusCode == http.StatusOK }
	require.Eventually(t, served, 10*time.Second, time.Millisecond, "those who hung up")
	require.NotContains(t, logs.String(), "Redis does not answer")
}
