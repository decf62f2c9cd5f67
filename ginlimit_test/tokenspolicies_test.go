package ginlimit_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// What is reserved is settled with whoever decided.
func TestFailurePoliciesWithTokens(t *testing.T) {
	captureLogs(t)
	t.Run("closed", func(t *testing.T) {
		m := newMetered(t, ginlimit.NewLimiter(deadRedis(t)))
		require.Equal(t, http.StatusServiceUnavailable, m.send())
		require.Zero(t, m.Handled.Load())
	})
	t.Run("open", func(t *testing.T) {
		m := newMetered(t, ginlimit.NewLimiter(deadRedis(t)), ginlimit.WithFailurePolicy(ginlimit.FailOpen()))
		r := m.as(m.id, "Tokens", "5000")
		require.Equal(t, http.StatusOK, r.StatusCode)
		for name := range r.Header {
			require.NotContains(t, strings.ToLower(name), "ratelimit")
		}
	})
	t.Run("local", func(t *testing.T) {
		local := ginlimit.NewMemoryLimiter()
		srv := redistest.Start(t)
		m := newMetered(
			t,
			ginlimit.NewLimiter(srv.Client(t)),
			ginlimit.WithFailurePolicy(ginlimit.FailLocal(local)),
		)
		here := metered{t: t, limiter: local, limits: m.limits, id: m.id}
		m.meanwhile = srv.Kill // Redis has decided
		require.Equal(t, http.StatusOK, m.send())
		require.Equal(t, [3]int{}, here.found())

		m.meanwhile = func() { require.Equal(t, [3]int{100, 100, 1}, here.found()) }
		require.Equal(t, http.StatusOK, m.send())
		require.Equal(t, [3]int{30, 30, 0}, here.found())
		m.meanwhile = srv.Restart // the memory limiter has decided
		require.Equal(t, http.StatusOK, m.send())
		require.Equal(t, [3]int{60, 60, 0}, here.found())
		m.meanwhile = nil
		require.Eventually(t, func() bool {
			m.send()
			return m.found()[0] > 0
		}, 5*time.Second, 20*time.Millisecond)
		require.Equal(t, [3]int{30, 30, 0}, m.found())
	})
	t.Run("local, too large", func(t *testing.T) {
		m := newMetered(t, ginlimit.NewLimiter(deadRedis(t)),
			ginlimit.WithFailurePolicy(ginlimit.FailLocal(ginlimit.NewMemoryLimiter())))
		r := m.as(m.id, "Tokens", "1001")
		require.Equal(t, "request_exceeds_budget", r.apiError(t).Code)
	})
}

// A user of Redis who may not GET or SET has the failure policy where there are tokens, and limits elsewhere.
func TestTokensWithoutARight(t *testing.T) {
	captureLogs(t)
	for _, command := range []string{"get", "set"} {
		t.Run(command, func(t *testing.T) {
			srv := redistest.Start(t)
			admin := srv.Client(t)
			require.NoError(
				t,
				admin.Do(t.Context(), "acl", "setuser", "limiter", "on", ">pw", "~*", "+@all", "-"+command).Err(),
			)
			rdb := redis.NewClient(&redis.Options{Addr: srv.Addr, Username: "limiter", Password: "pw"})
			t.Cleanup(func() { _ = rdb.Close() })
			l := ginlimit.NewLimiter(rdb)
			m := newMetered(t, l)
			for range 3 {
				require.Equal(t, http.StatusServiceUnavailable, m.send())
			}
			require.Empty(t, admin.Keys(t.Context(), "*").Val())
			requests := serve(t, ginlimit.New(l.Scope("models"), resolver, ginlimit.WithTiers(table(t, 1, 9))))
			require.Equal(t, "1 0 minute", requests.as(m.id).limits(t))
			require.Equal(t, http.StatusTooManyRequests, requests.as(m.id).StatusCode)
		})
	}
}

// While the kill switch is on nothing is reserved; what was is settled all the same. I1.
func TestKillSwitchWithTokens(t *testing.T) {
	onEach(t, func(t *testing.T, l *ginlimit.Limiter) {
		m := newMetered(t, l)
		l.SetDisabled(true)
		r := m.as(m.id, "Tokens", "5000")
		<-m.done
		require.Equal(t, http.StatusOK, r.StatusCode)
		require.Equal(t, "1000", r.Header.Get(ginlimit.HeaderRemainingTokens))
		m.meanwhile = func() { l.SetDisabled(true) }
		l.SetDisabled(false)
		require.Equal(t, http.StatusOK, m.send())
		l.SetDisabled(false)
		require.Equal(t, [3]int{30, 30, 0}, m.found())
	})
}

// A request that is sent round by HandleContext reserves once, and is settled once, when all is over.
func TestHandleContextWithTokens(t *testing.T) {
	onEach(t, func(t *testing.T, l *ginlimit.Limiter) {
		table, limits := plenty(t, func(l *tiers.Limits) { l.TokensPerDay, l.Concurrent = 1000, 1 })
		var during map[string]int
		router := gin.New()
		router.Use(headerAuth, ginlimit.New(l, resolver, ginlimit.WithTiers(table), ginlimit.WithUsage(headerUsage),
			ginlimit.WithConcurrency()))
		router.GET("/v1/chat", func(c *gin.Context) {
			ginlimit.AdmissionFrom(c).Settle(ginlimit.Usage{Tokens: 10})
			c.Request.URL.Path = "/v2/chat"
			router.HandleContext(c)
		})
		router.GET("/v2/chat", func(c *gin.Context) {
			during = used(t, l, "alice", limits)
			ginlimit.AdmissionFrom(c).Settle(ginlimit.Usage{Tokens: 30})
		})
		a := (&api{t: t}).on(router)
		for i := 1; i <= 3; i++ {
			require.Equal(t, http.StatusOK, a.as("alice", "Tokens", "100").StatusCode)
			require.Equal(
				t,
				map[string]int{"1m0s": i, "24h0m0s": i, "tokens24h0m0s": 30*(i-1) + 100, "concurrent": 1},
				during,
			)
			require.Eventually(t, func() bool {
				u := used(t, l, "alice", limits)
				return u["tokens24h0m0s"] == 30*i && u["concurrent"] == 0
			}, time.Second, time.Millisecond)
		}
	})
}

// Whoever settles from another goroutine, during the request or after it, does no harm.
func TestSettlingFromOtherGoroutines(t *testing.T) {
	onEach(t, func(t *testing.T, l *ginlimit.Limiter) {
		m := newMetered(t, l)
		table, _ := plenty(
			t,
			func(l *tiers.Limits) { l.TokensPerMinute, l.TokensPerDay, l.Concurrent = 1000, 1000, 3 },
		)
		var late sync.WaitGroup
		a := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table), ginlimit.WithUsage(headerUsage),
			ginlimit.WithConcurrency()), func(c *gin.Context) {
			admission := ginlimit.AdmissionFrom(c)
			for range 4 {
				late.Go(func() {
					for range 200 {
						admission.Settle(ginlimit.Usage{Tokens: 20})
						admission.Recorded()
					}
				})
			}
			admission.Settle(ginlimit.Usage{Tokens: 20})
		})
		for range 20 {
			require.Equal(t, http.StatusOK, a.as(m.id, "Tokens", "100").StatusCode)
		}
		late.Wait()
		require.Eventually(
			t,
			func() bool { return m.found() == [3]int{400, 400, 0} },
			time.Second,
			time.Millisecond,
		)
	})
}

// A route's table may have tokens and slots too: all is decided at once, and settled at once.
func TestTokensInAScope(t *testing.T) {
	onEach(t, func(t *testing.T, l *ginlimit.Limiter) {
		images := func(l *tiers.Limits) { l.TokensPerMinute, l.SpendPerDay, l.Concurrent = 150, 500, 2 }
		whole, limits := plenty(
			t,
			func(l *tiers.Limits) { l.TokensPerMinute, l.SpendPerDay, l.Concurrent = 250, 300, 3 },
		)
		look := func() string {
			var s []string
			for _, l := range []*ginlimit.Limiter{l, l.Scope("images")} {
				u := used(t, l, "alice", limits)
				s = append(s, fmt.Sprint(u["1m0s"], u["tokens1m0s"], u["spend24h0m0s"], u["concurrent"]))
			}
			return strings.Join(s, ", ")
		}
		during, done := "", make(chan bool, 1)
		a := serve(t, func(c *gin.Context) {
			c.Next()
			done <- true
		}, ginlimit.New(l, resolver, ginlimit.WithTiers(whole), ginlimit.WithUsage(headerUsage),
			ginlimit.WithConcurrency(),
			ginlimit.WithScope("images", scopeTable(t, images))), func(c *gin.Context) {
			during = look()
			ginlimit.AdmissionFrom(c).Settle(ginlimit.Usage{Tokens: 30, Spend: 20})
		})
		send := func() answer {
			r := a.as("alice", "Tokens", "100", "Spend", "90")
			<-done
			return r
		}
		r := send()
		require.Equal(
			t,
			"150 50",
			r.Header.Get(ginlimit.HeaderLimitTokens)+" "+r.Header.Get(ginlimit.HeaderRemainingTokens),
		)
		require.Equal(t, "1 100 90 1, 1 100 90 1", during)
		require.Equal(t, "1 30 20 0, 1 30 20 0", look())
		require.Equal(t, http.StatusOK, send().StatusCode)
		r = send() // 60 of 150 are used
		require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
		require.Equal(t, "150 0 tokens-minute", r.limits(t))
		require.Contains(t, r.body, `"scope":"images"`)
		require.Equal(t, "2 60 40 0, 2 60 40 0", look())
	})
}

// WithRefundOn gives back what a request alone took, in every mode, and what it refunds it asks of the
// handler's answer, not of its own 429. J3.
func TestRefundOnOfRequests(t *testing.T) {
	for mode, opts := range modes {
		onEach(t, func(t *testing.T, l *ginlimit.Limiter) {
			status, asked, done := http.StatusBadGateway, 0, make(chan bool, 1)
			a := serve(t, func(c *gin.Context) {
				c.Next()
				done <- true
			}, ginlimit.New(l, resolver, append(opts[:len(opts):len(opts)], ginlimit.WithTiers(table(t, 2, 9)),
				ginlimit.WithRefundOn(func(c *gin.Context) bool {
					asked++
					return c.Writer.Status() >= 429
				}))...), func(c *gin.Context) { c.AbortWithStatus(status) })
			limits := tiers.Limits{PerMinute: 2, PerDay: 9}
			for i, want := range []int{0, 0, 0, 1, 2, 2, 2} {
				if want > 0 {
					status = http.StatusOK
				}
				r := a.as("alice")
				<-done
				u := used(t, l, "alice", limits)
				require.Equal(
					t,
					[]int{want, want},
					[]int{u["1m0s"], u["24h0m0s"]},
					"%s, request %d: %d",
					mode,
					i+1,
					r.StatusCode,
				)
			}
			require.Equal(t, 5, asked)
		})
	}
}

// After a run of all kinds of requests every key leaves by itself, when its window or lease is over. B2, Q34.
func TestEveryKeyLeaves(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	l := ginlimit.NewLimiter(rdb)
	table, _ := plenty(t, func(l *tiers.Limits) {
		l.PerMinute, l.PerHour, l.PerMonth, l.Concurrent = 40, 60, 20_000, 3
		l.TokensPerMinute, l.TokensPerDay, l.TokensPerMonth, l.SpendPerDay, l.SpendPerMonth = 2000, 9000, 90_000,
			2000, 90_000
	})
	all := []ginlimit.Option{
		ginlimit.WithTiers(table),
		ginlimit.WithUsage(headerUsage),
		ginlimit.WithConcurrency(),
		ginlimit.WithBoundedWindows(),
		ginlimit.WithRefundOn(func(c *gin.Context) bool { return c.Writer.Status() == 502 }),
	}
	a := serve(
		t,
		ginlimit.New(l, resolver, all...),
		ginlimit.New(l.Scope("images"), resolver, all...),
		func(c *gin.Context) {
			switch rand.IntN(6) {
			case 0:
				ginlimit.AdmissionFrom(c).Refund()
			case 1:
				c.AbortWithStatus(http.StatusBadGateway)
			case 2:
				panic(http.ErrAbortHandler)
			case 3:
				ginlimit.AdmissionFrom(
					c,
				).Settle(
					ginlimit.Usage{Tokens: rand.IntN(300), Spend: tiers.Money(rand.IntN(300))},
				)
			}
		},
	)
	var load sync.WaitGroup
	for range 8 {
		load.Go(func() {
			for range 250 {
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, a.URL+"/v1/chat", nil)
				req.Header.Set(headerUser, fmt.Sprint("user", rand.IntN(9)))
				req.Header.Set("Tokens", fmt.Sprint(rand.IntN(120)))
				req.Header.Set("Spend", fmt.Sprint(rand.IntN(120)))
				if resp, err := http.DefaultClient.Do(req); err == nil {
					_ = resp.Body.Close()
				}
			}
		})
	}
	load.Wait()
	keys := rdb.Keys(t.Context(), "*").Val()
	require.Greater(t, len(keys), 9*2*6)
	seconds := map[string]time.Duration{
		"60":      time.Minute,
		"3600":    time.Hour,
		"86400":   24 * time.Hour,
		"2592000": 720 * time.Hour,
	}
	for _, key := range keys {
		most := 15*time.Second + 5*time.Minute // of leases: they may be settled for so long
		for _, part := range strings.Split(key, ":") {
			if window, ok := seconds[part]; ok {
				most = window + time.Second
			}
		}
		ttl := rdb.PTTL(t.Context(), key).Val()
		require.Positive(t, ttl, key)
		require.LessOrEqual(t, ttl, most, key)
	}
}

// The memory limiter of one replica has a share of each budget. A request that fits its tier, but not the
// share, takes the whole share, and is not refused for good.
func TestFailLocalWithAShareSmallerThanARequest(t *testing.T) {
	captureLogs(t)
	local := ginlimit.NewMemoryLimiter(ginlimit.WithReplicas(8))
	tokens, limits := plenty(t, func(l *tiers.Limits) { l.PerMinute, l.TokensPerMinute = 40, 1000 })
	a := serve(t, ginlimit.New(ginlimit.NewLimiter(deadRedis(t)), resolver, ginlimit.WithTiers(tokens),
		ginlimit.WithUsage(headerUsage), ginlimit.WithFailurePolicy(ginlimit.FailLocal(local)),
		ginlimit.WithWeight(func(*gin.Context) (int, error) { return 20, nil })))
	require.Equal(t, http.StatusOK, a.as("alice", "Tokens", "900").StatusCode)
	found, err := local.Usage(t.Context(), "alice", limits)
	require.NoError(t, err)
	require.Equal(t, []int{5, 125}, []int{found[0].Limit, found[len(found)-1].Limit})
	require.Equal(t, http.StatusTooManyRequests, a.as("alice", "Tokens", "1").StatusCode)
	r := a.as("bob", "Tokens", "1001")
	require.Equal(t, "request_exceeds_budget", r.apiError(t).Code, "too large for the tier, too")
}
