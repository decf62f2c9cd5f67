package ginlimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/openai"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// limiters are the two stores.
var limiters = map[string]func(t *testing.T) *ginlimit.Limiter{
	"Redis":  func(t *testing.T) *ginlimit.Limiter { return ginlimit.NewLimiter(redistest.Start(t).Client(t)) },
	"memory": func(*testing.T) *ginlimit.Limiter { return ginlimit.NewMemoryLimiter() },
}

func onEach(t *testing.T, test func(t *testing.T, l *ginlimit.Limiter)) {
	for name, limiter := range limiters {
		t.Run(name, func(t *testing.T) { test(t, limiter(t)) })
	}
}

// plenty is a tier's limits with these changes and more requests than a test makes.
func plenty(t *testing.T, change func(*tiers.Limits)) (*tiers.Store, tiers.Limits) {
	t.Helper()
	l := tiers.Limits{PerMinute: 1000, PerDay: 10_000}
	change(&l)
	s, err := tiers.NewStore(tiers.Free, map[tiers.Tier]tiers.Limits{tiers.Free: l})
	require.NoError(t, err)
	return s, l
}

// headerUsage is an estimator that believes the request.
var headerUsage = ginlimit.EstimatorFunc(func(c *gin.Context) (ginlimit.Usage, error) {
	tokens, err := strconv.Atoi(c.GetHeader("Tokens"))
	if err != nil {
		return ginlimit.Usage{}, errors.New("secret: no tokens")
	}
	spend, _ := strconv.Atoi(c.GetHeader("Spend"))
	return ginlimit.Usage{Tokens: tokens, Spend: tiers.Money(spend)}, nil
})

// used tells what Usage shows as taken of every budget, by its name.
func used(t *testing.T, l *ginlimit.Limiter, user string, limits tiers.Limits) map[string]int {
	t.Helper()
	decisions, err := l.Usage(t.Context(), user, limits)
	require.NoError(t, err)
	found := map[string]int{}
	for _, d := range decisions {
		name := d.Budget
		if d.Window > 0 {
			name += d.Window.String()
		}
		found[name] = d.Limit - d.Remaining
	}
	return found
}

// Of 50 requests at once, exactly those pass whose reservations fit: tokens, and money. Q1, L2.
func TestReservationsDoNotOvershoot(t *testing.T) {
	for name, change := range map[string]func(*tiers.Limits){
		"tokens_exceeded": func(l *tiers.Limits) { l.TokensPerMinute = 600 },
		"spend_exceeded":  func(l *tiers.Limits) { l.SpendPerDay = 600 },
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, l *ginlimit.Limiter) {
				table, limits := plenty(t, change)
				a := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table), ginlimit.WithUsage(headerUsage)))
				var ok, rejected atomic.Int64
				var wg sync.WaitGroup
				for range 50 {
					wg.Go(func() {
						r := a.as("alice", "Tokens", "60", "Spend", "60")
						if r.StatusCode == http.StatusOK {
							ok.Add(1)
							return
						}
						rejected.Add(1)
						if r.StatusCode != http.StatusTooManyRequests || r.apiError(t).Code != name {
							t.Errorf("%d %s", r.StatusCode, r.body)
						}
					})
				}
				wg.Wait()
				require.EqualValues(t, 10, ok.Load())
				require.EqualValues(t, 40, rejected.Load())
				require.Equal(t, 10, used(t, l, "alice", limits)["1m0s"], "a rejected request takes no request either")
			})
		})
	}
}

// The limits that clients declare are reserved, so as many requests pass at once as fit together. A limit
// above the whole budget reserves a part of it, and leaves some to others. Q1.
func TestDeclaredLimitsDoNotOvershoot(t *testing.T) {
	const prompt = 8 // tokens of "Hi", at most
	for _, tt := range []struct {
		budget, declared, admitted int
	}{
		{100, 60, 1}, {100, 90, 1}, {1000, 600, 1}, {1000, 400, 2}, {1000, 190, 5}, {100, 1_000_000, 1},
	} {
		onEach(t, func(t *testing.T, l *ginlimit.Limiter) {
			tokens, limits := plenty(t, func(l *tiers.Limits) { l.TokensPerMinute = tt.budget })
			router, decided := gin.New(), make(chan bool, 5)
			router.POST("/", headerAuth, ginlimit.New(l, resolver, ginlimit.WithTiers(tokens),
				ginlimit.WithUsage(openai.Estimator())), openai.Meter(), func(c *gin.Context) {
				decided <- true
				<-c.Request.Context().Done() // nothing is settled before all are decided
			})
			ctx, end := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() {
					body := fmt.Sprintf(`{"messages": [{"role": "user", "content": "Hi"}], "max_tokens": %d}`, tt.declared)
					r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(body))
					r.Header.Set(headerUser, "alice")
					w := httptest.NewRecorder()
					if router.ServeHTTP(w, r); w.Code != http.StatusOK {
						assert.Equal(t, http.StatusTooManyRequests, w.Code)
						decided <- false
					}
				})
			}
			admitted := 0
			for range 5 {
				if <-decided {
					admitted++
				}
			}
			taken := used(t, l, "alice", limits)["tokens1m0s"]
			end()
			all.Wait()
			require.Equal(t, tt.admitted, admitted, "%+v", tt)
			require.LessOrEqual(t, taken, tt.budget)
			require.GreaterOrEqual(t, taken, admitted*min(tt.declared, tt.budget/2))
			require.LessOrEqual(t, taken, admitted*min(tt.declared+prompt, tt.budget-tt.budget/4))
		})
	}
}

// What the handler says is what stays taken; without a word the reservation stands; nothing is given twice.
func TestSettling(t *testing.T) {
	table, limits := plenty(t, func(l *tiers.Limits) {
		l.TokensPerMinute, l.TokensPerDay, l.SpendPerMonth, l.Concurrent = 1000, 5000, tiers.Money(9_000_000), 3
	})
	usage := func(tokens int, spend tiers.Money) ginlimit.Usage {
		return ginlimit.Usage{Tokens: tokens, Spend: spend}
	}
	onFailure := []ginlimit.Option{
		ginlimit.WithRefundOn(func(c *gin.Context) bool { return c.Writer.Status() >= 500 }),
	}
	for name, tt := range map[string]struct {
		say                     func(c *gin.Context, a *ginlimit.Admission)
		opts                    []ginlimit.Option
		requests, tokens, spend int
	}{
		"nothing": {func(*gin.Context, *ginlimit.Admission) {}, nil, 1, 100, 200},
		"less":    {func(_ *gin.Context, a *ginlimit.Admission) { a.Settle(usage(30, 40)) }, nil, 1, 30, 40},
		"more": {
			func(_ *gin.Context, a *ginlimit.Admission) { a.Settle(usage(300, 400)) }, nil, 1, 300, 400,
		},
		"nothing used": {func(_ *gin.Context, a *ginlimit.Admission) { a.Settle(ginlimit.Usage{}) }, nil, 1, 0, 0},
		"negative":     {func(_ *gin.Context, a *ginlimit.Admission) { a.Settle(usage(-5, -5)) }, nil, 1, 0, 0},
		"refund":       {func(_ *gin.Context, a *ginlimit.Admission) { a.Refund() }, nil, 0, 0, 0},
		"the last word counts": {func(_ *gin.Context, a *ginlimit.Admission) {
			a.Refund()
			a.Settle(usage(1, 1))
			a.Settle(usage(7, 8))
		}, nil, 1, 7, 8},
		"a panic, after a word": {func(_ *gin.Context, a *ginlimit.Admission) {
			a.Settle(usage(7, 8))
			panic(http.ErrAbortHandler)
		}, nil, 1, 7, 8},
		"a panic, without": {
			func(*gin.Context, *ginlimit.Admission) { panic(http.ErrAbortHandler) }, nil, 1, 100, 200,
		},
		"refund on 5xx": {func(c *gin.Context, a *ginlimit.Admission) {
			a.Settle(usage(7, 8))
			c.AbortWithStatus(http.StatusBadGateway)
		}, onFailure, 0, 0, 0},
		"no refund on 200": {func(*gin.Context, *ginlimit.Admission) {},
			onFailure, 1, 100, 200},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, l *ginlimit.Limiter) {
				opts := append(
					tt.opts,
					ginlimit.WithTiers(table),
					ginlimit.WithUsage(headerUsage),
					ginlimit.WithConcurrency(),
				)
				var during map[string]int
				a := serve(t, gin.CustomRecovery(func(c *gin.Context, _ any) { c.AbortWithStatus(500) }),
					ginlimit.New(l, resolver, opts...), func(c *gin.Context) {
						during = used(t, l, "alice", limits)
						tt.say(c, ginlimit.AdmissionFrom(c))
					})
				r := a.as("alice", "Tokens", "100", "Spend", "200")
				if r.StatusCode < 500 {
					require.Equal(t, "1000", r.Header.Get(ginlimit.HeaderLimitTokens))
					require.Equal(t, "900", r.Header.Get(ginlimit.HeaderRemainingTokens))
					require.Equal(t, "9.00", r.Header.Get(ginlimit.HeaderLimitSpend))
					require.Equal(t, "8.9998", r.Header.Get(ginlimit.HeaderRemainingSpend))
					require.Equal(t, "1000 999 minute", r.limits(t))
				}
				require.Equal(t, map[string]int{"1m0s": 1, "24h0m0s": 1, "tokens1m0s": 100, "tokens24h0m0s": 100,
					"spend720h0m0s": 200, "concurrent": 1}, during)
				want := map[string]int{"1m0s": tt.requests, "24h0m0s": tt.requests, "tokens1m0s": tt.tokens,
					"tokens24h0m0s": tt.tokens, "spend720h0m0s": tt.spend, "concurrent": 0}
				require.Eventually(t, func() bool { // the answer may be here before the chain has returned
					return len(want) == len(used(t, l, "alice", limits)) &&
						used(t, l, "alice", limits)["concurrent"] == 0
				}, 5*time.Second, time.Millisecond)
				require.Equal(t, want, used(t, l, "alice", limits))
			})
		})
	}
}

// A client that leaves mid-stream, a hundred times: every slot is back, and what was said is charged. L1, Q6.
func TestClientsThatLeaveGiveTheirSlotsBack(t *testing.T) {
	onEach(t, func(t *testing.T, l *ginlimit.Limiter) {
		table, limits := plenty(t, func(l *tiers.Limits) { l.Concurrent, l.TokensPerDay = 3, 100_000 })
		a := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table), ginlimit.WithUsage(headerUsage),
			ginlimit.WithConcurrency()), func(c *gin.Context) {
			c.Writer.Flush()
			<-c.Request.Context().Done()
			ginlimit.AdmissionFrom(c).Settle(ginlimit.Usage{Tokens: 5})
			c.Abort()
		})
		for range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL+"/v1/chat", nil)
			require.NoError(t, err)
			req.Header.Set(headerUser, "alice")
			req.Header.Set("Tokens", "50")
			resp, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, resp.StatusCode)
			cancel()
			_ = resp.Body.Close()
			require.Eventually(t, func() bool { return used(t, l, "alice", limits)["concurrent"] == 0 }, time.Second,
				time.Millisecond)
		}
		require.Equal(t, 500, used(t, l, "alice", limits)["tokens24h0m0s"])
	})
}

// Never more requests of a user run at once than the tier says, over two processes' worth of limiters. Q10.
func TestConcurrency(t *testing.T) {
	srv := redistest.Start(t)
	table, limits := plenty(t, func(l *tiers.Limits) { l.Concurrent = 3 })
	var running, most, passed atomic.Int64
	leave := make(chan struct{})
	var apis []*api
	for range 2 {
		l := ginlimit.NewLimiter(srv.Client(t))
		apis = append(
			apis,
			serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table), ginlimit.WithConcurrency()),
				func(*gin.Context) {
					most.Store(max(most.Load(), running.Add(1)))
					passed.Add(1)
					<-leave
					running.Add(-1)
				}),
		)
	}
	var rejected atomic.Int64
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if r := apis[i%2].as("alice"); r.StatusCode == http.StatusTooManyRequests {
				rejected.Add(1)
				e := r.apiError(t)
				if e.Code != "too_many_concurrent_requests" || r.Header.Get("Retry-After") != "1" ||
					r.Header.Get(ginlimit.HeaderWindow) != "concurrent" {
					t.Errorf("%v %s", r.Header, r.body)
				}
			}
		})
	}
	require.Eventually(t, func() bool { return rejected.Load() == 17 }, 5*time.Second, time.Millisecond)
	close(leave)
	wg.Wait()
	require.EqualValues(t, 3, passed.Load())
	require.EqualValues(t, 3, most.Load())
	l := ginlimit.NewLimiter(srv.Client(t))
	require.Eventually(t, func() bool { return used(t, l, "alice", limits)["concurrent"] == 0 }, time.Second,
		time.Millisecond)
	require.Equal(t, 3, used(t, l, "alice", limits)["1m0s"], "a rejection takes no request. Q9")
}

// A request that is larger than a whole budget can never pass: 400, and nothing is taken. C5.
func TestLargerThanABudget(t *testing.T) {
	onEach(t, func(t *testing.T, l *ginlimit.Limiter) {
		table, limits := plenty(t, func(l *tiers.Limits) { l.TokensPerMinute, l.TokensPerDay = 100, 1000 })
		a := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table), ginlimit.WithUsage(headerUsage)))
		r := a.as("alice", "Tokens", "101")
		require.Equal(t, http.StatusBadRequest, r.StatusCode)
		require.Equal(t, "request_exceeds_budget", r.apiError(t).Code)
		require.Empty(t, r.Header.Get("Retry-After"))
		r = a.as("alice", "Tokens", "no number")
		require.Equal(t, http.StatusBadRequest, r.StatusCode)
		require.Equal(t, "invalid_request", r.apiError(t).Code)
		require.NotContains(t, r.body, "secret")
		for name, n := range used(t, l, "alice", limits) {
			require.Zero(t, n, name)
		}
		require.Equal(t, http.StatusOK, a.as("alice", "Tokens", "100").StatusCode)
		r = a.as("alice", "Tokens", "1")
		require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
		require.Equal(t, "100 0 tokens-minute", r.limits(t))
		require.Equal(t, "0", r.Header.Get(ginlimit.HeaderRemainingTokens))
	})
}

// A thousand refusals change no key but for trims. Q2.
func TestRefusalsChangeNothing(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	table, _ := plenty(
		t,
		func(l *tiers.Limits) { l.TokensPerMinute, l.SpendPerDay, l.Concurrent = 100, 1000, 5 },
	)
	a := serve(t, ginlimit.New(ginlimit.NewLimiter(rdb), resolver, ginlimit.WithTiers(table),
		ginlimit.WithUsage(headerUsage), ginlimit.WithConcurrency()))
	require.Equal(t, http.StatusOK, a.as("alice", "Tokens", "60", "Spend", "10").StatusCode)
	before := dump(t, rdb)
	require.NotEmpty(t, before)
	for range 1000 {
		require.Equal(t, http.StatusTooManyRequests, a.as("alice", "Tokens", "60", "Spend", "10").StatusCode)
	}
	require.Equal(t, before, dump(t, rdb))
	require.Equal(t, http.StatusOK, a.as("alice", "Tokens", "40", "Spend", "10").StatusCode)
}

func dump(t *testing.T, rdb *redis.Client) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, key := range rdb.Keys(t.Context(), "*").Val() {
		found[key] = rdb.Dump(t.Context(), key).Val()
	}
	return found
}
