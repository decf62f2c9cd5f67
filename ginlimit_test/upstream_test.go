package ginlimit_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/headers"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// roomy is a table of free and enterprise, with budgets that no test here uses up.
func roomy(t *testing.T) *tiers.Store {
	t.Helper()
	limits := tiers.Limits{PerMinute: 10_000, PerDay: 10_000}
	s, err := tiers.NewStore(
		tiers.Free,
		map[tiers.Tier]tiers.Limits{tiers.Free: limits, tiers.Enterprise: limits},
	)
	require.NoError(t, err)
	return s
}

func provider(perMinute int) ginlimit.Upstream {
	return ginlimit.Upstream{
		Name:      "openai",
		PerMinute: perMinute,
		Share:     map[tiers.Tier]float64{tiers.Free: 0.7},
	}
}

// upstreams are the stores that a cap is kept in.
var upstreams = map[string]func(t *testing.T) *ginlimit.Limiter{
	"Redis":  limiters["Redis"],
	"memory": limiters["memory"],
	"Cluster": func(t *testing.T) *ginlimit.Limiter {
		return ginlimit.NewLimiter(redistest.StartCluster(t, 3, 0).Client(t))
	},
}

// Free alone gets exactly its share of the cap; enterprise may use the rest. A refusal takes nothing.
// Q13 to Q15.
func TestSharesOfAnUpstream(t *testing.T) {
	for name, limiter := range upstreams {
		t.Run(name, func(t *testing.T) {
			l := limiter(t)
			a := serve(
				t,
				ginlimit.New(l, resolver, ginlimit.WithTiers(roomy(t)), ginlimit.WithUpstream(provider(100))),
			)
			storm := func(tier string, calls int) (ok int64) {
				var passed atomic.Int64
				var wg sync.WaitGroup
				for i := range calls {
					wg.Go(func() {
						r := a.as("user"+string(rune('a'+i%20)), headerTier, tier)
						if r.StatusCode == http.StatusOK {
							passed.Add(1)
							return
						}
						e := r.apiError(t)
						if r.StatusCode != http.StatusServiceUnavailable || e.Code != "upstream_capacity" ||
							r.Header.Get("Retry-After") == "" || r.Header.Get(ginlimit.HeaderLimit) != "" {
							t.Errorf("%d %v %s", r.StatusCode, r.Header, r.body)
						}
					})
				}
				wg.Wait()
				return passed.Load()
			}
			require.EqualValues(t, 70, storm("free", 100))
			require.EqualValues(t, 0, storm("free", 5))
			require.EqualValues(t, 30, storm("enterprise", 100))
			total := 0
			for i := range 20 {
				d, err := l.Usage(t.Context(), "user"+string(rune('a'+i)), tiers.Limits{PerMinute: 10_000})
				require.NoError(t, err)
				total += d[0].Limit - d[0].Remaining
			}
			require.Equal(t, 100, total, "who is refused has taken nothing")
			left, err := l.UpstreamUsage(t.Context(), provider(100), tiers.Free)
			require.NoError(t, err)
			require.Equal(t, []int{70, 0}, []int{left[0].Limit, left[0].Remaining})
		})
	}
}

// A provider's own answer closes the gate for every process, for as long as it says, and is passed on.
func TestAProviderThatIsOverloaded(t *testing.T) {
	srv := redistest.Start(t)
	for name, tt := range map[string]struct {
		status        int
		header, value string
		wait          time.Duration
	}{
		"seconds":      {429, "Retry-After", "2", 2 * time.Second},
		"milliseconds": {429, "Retry-After-Ms", "1500", 1500 * time.Millisecond},
		"date":         {529, "Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), time.Hour},
		"none":         {429, "X-Other", "1", 0},
		"another":      {500, "Retry-After", "2", 0},
		"rubbish":      {429, "Retry-After", "soon", 0},
		"negative":     {429, "Retry-After", "-5", 0},
		"enormous":     {429, "Retry-After", "99999999999999", 24 * time.Hour},
		"infinite":     {429, "Retry-After", "inf", 0},
		"exponent":     {429, "Retry-After-Ms", "1e300", 0},
	} {
		t.Run(name, func(t *testing.T) {
			u := ginlimit.Upstream{Name: name, PerMinute: 100}
			var calls atomic.Int64
			answer := func(c *gin.Context) {
				if calls.Add(1) == 1 {
					c.Header(tt.header, tt.value)
					c.AbortWithStatusJSON(tt.status, gin.H{"from": "provider"})
				}
			}
			var apis []*api
			for range 2 {
				l := ginlimit.NewLimiter(srv.Client(t))
				apis = append(apis, serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(roomy(t)),
					ginlimit.WithUpstream(u)), answer))
			}
			first := apis[0].as("alice")
			require.Equal(t, tt.status, first.StatusCode)
			require.Contains(t, first.body, "provider")
			require.Equal(t, tt.value, first.Header.Get(tt.header))
			key := "ratelimit:!upstream/" + name + ":closed"
			rdb := srv.Client(t)
			if tt.wait == 0 {
				require.Zero(t, rdb.Exists(t.Context(), key).Val())
				require.Equal(t, http.StatusOK, apis[1].as("bob").StatusCode)
				return
			}
			require.InDelta(t, tt.wait, rdb.PTTL(t.Context(), key).Val(), float64(2*time.Second))
			for _, a := range apis {
				r := a.as("bob")
				require.Equal(t, http.StatusServiceUnavailable, r.StatusCode)
				require.Equal(t, "upstream_capacity", r.apiError(t).Code)
				require.Contains(t, r.body, "Retry in "+r.Header.Get("Retry-After")+" s.")
				require.Equal(t, tt.wait > time.Hour, r.Header.Get("x-should-retry") == "false")
			}
			require.EqualValues(t, 1, calls.Load(), "the provider is left alone")
			require.NoError(t, rdb.PExpire(t.Context(), key, time.Millisecond).Err())
			require.Eventually(t, func() bool { return apis[1].as("bob").StatusCode == http.StatusOK }, 5*time.Second,
				time.Millisecond)
		})
	}
}

// Our own rejection is no word of the provider.
func TestOwnRejectionsCloseNoGate(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	l := ginlimit.NewLimiter(rdb)
	inner := ginlimit.New(l.Scope("inner"), resolver, ginlimit.WithTiers(table(t, 1, 1)))
	a := serve(
		t,
		ginlimit.New(l, resolver, ginlimit.WithTiers(roomy(t)), ginlimit.WithUpstream(provider(100))),
		inner,
	)
	require.Equal(t, http.StatusOK, a.as("alice").StatusCode)
	require.Equal(t, http.StatusTooManyRequests, a.as("alice").StatusCode)
	require.Equal(t, http.StatusOK, a.as("bob").StatusCode)
	require.Zero(t, rdb.Exists(t.Context(), "ratelimit:!upstream/openai:closed").Val())
	left, err := l.UpstreamUsage(t.Context(), provider(100), tiers.Enterprise)
	require.NoError(t, err)
	require.Equal(t, 98, left[0].Remaining, "the rejected request was given back")
}

// Tokens and requests in progress have caps too, and are settled and released.
func TestUpstreamTokensAndConcurrency(t *testing.T) {
	onEach(t, func(t *testing.T, l *ginlimit.Limiter) {
		u := ginlimit.Upstream{Name: "anthropic", TokensPerMinute: 1000, Concurrent: 2,
			Share: map[tiers.Tier]float64{tiers.Free: 0.5}}
		remaining := func() (n []int) {
			decisions, err := l.UpstreamUsage(t.Context(), u, tiers.Enterprise)
			require.NoError(t, err)
			for _, d := range decisions {
				n = append(n, d.Remaining)
			}
			return n
		}
		var during []int
		a := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(roomy(t)), ginlimit.WithUsage(headerUsage),
			ginlimit.WithUpstream(u)), func(c *gin.Context) {
			during = remaining()
			ginlimit.AdmissionFrom(c).Settle(ginlimit.Usage{Tokens: 100})
		})
		require.Equal(t, http.StatusOK, a.as("alice", "Tokens", "400").StatusCode)
		require.Equal(t, []int{600, 1}, during)
		require.Eventually(t, func() bool { return remaining()[1] == 2 }, 5*time.Second, time.Millisecond)
		require.Equal(t, []int{900, 2}, remaining())
		require.Equal(t, http.StatusServiceUnavailable, a.as("alice", "Tokens", "401").StatusCode)
		require.Equal(t, http.StatusBadRequest, a.as("alice", "Tokens", "501").StatusCode, "it never passes")
		require.Equal(t, http.StatusOK, a.as("alice", "Tokens", "900", headerTier, "enterprise").StatusCode)
	})
}

func TestUpstreamRefuses(t *testing.T) {
	for want, u := range map[string]ginlimit.Upstream{
		"Name is empty":     {PerMinute: 1},
		`"x" has no cap`:    {Name: "x"},
		"is negative":       {Name: "x", PerMinute: -1, Concurrent: 5},
		"share 0 of tier":   {Name: "x", PerMinute: 1, Share: map[tiers.Tier]float64{"free": 0}},
		"share 1.5 of tier": {Name: "x", PerMinute: 1, Share: map[tiers.Tier]float64{"free": 1.5}},
	} {
		require.Contains(t, panicOf(func() { ginlimit.WithUpstream(u) }), want)
	}
	require.Contains(t, panicOf(func() {
		ginlimit.New(ginlimit.NewMemoryLimiter(), resolver,
			ginlimit.WithUpstream(ginlimit.Upstream{Name: "x", TokensPerMinute: 5}))
	}), "add WithUsage")
}

func panicOf(f func()) (text string) {
	defer func() { text, _ = recover().(string) }()
	f()
	return ""
}

// A user who hammers costs Redis about one call a second; a change of tier counts at once. Q30.
func TestRejectionCacheSparesRedis(t *testing.T) {
	srv := redistest.Start(t)
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr})
	t.Cleanup(func() { _ = rdb.Close() })
	s, err := tiers.NewStore(tiers.Free, map[tiers.Tier]tiers.Limits{
		tiers.Free: {PerMinute: 1, PerDay: 100}, tiers.Pro: {PerMinute: 5, PerDay: 100}})
	require.NoError(t, err)
	a := serve(t, ginlimit.New(ginlimit.NewLimiter(rdb, ginlimit.WithRejectionCache(100)), resolver,
		ginlimit.WithTiers(s), ginlimit.WithAtomicWindows()))
	require.Equal(t, http.StatusOK, a.as("alice", headerTier, "free").StatusCode)
	began := time.Now()
	srv.ResetStats(t)
	for range 500 {
		r := a.as("alice", headerTier, "free")
		require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
		require.Equal(t, "1 0 minute", r.limits(t))
	}
	calls := srv.Calls(t, "evalsha")
	require.Positive(t, calls)
	require.LessOrEqual(t, calls, 2+int(time.Since(began)/(900*time.Millisecond)))
	require.Equal(t, http.StatusOK, a.as("alice", headerTier, "pro").StatusCode)
}

// What a rejected request did not take is not given back in the headers: with a cap behind them, the user's
// budgets are told as without one.
func TestRejectionsBeforeAnUpstream(t *testing.T) {
	tokens, _ := plenty(t, func(l *tiers.Limits) {
		l.PerMinute, l.PerDay, l.TokensPerMinute, l.SpendPerDay = 3, 100, 500, 1_000_000
	})
	org := ginlimit.TierResolverFunc(func(*gin.Context) (ginlimit.Subject, error) {
		return ginlimit.Subject{UserID: "acme"}, nil
	})
	onEach(t, func(t *testing.T, l *ginlimit.Limiter) {
		opts := []ginlimit.Option{ginlimit.WithTiers(tokens), ginlimit.WithUsage(headerUsage),
			ginlimit.WithScopeFor("org", table(t, 1, 1), org), ginlimit.WithUpstream(provider(100)),
			ginlimit.WithHeaders(headers.Default, headers.IETF, headers.OpenAI)}
		a := serve(t, ginlimit.New(l, resolver, opts...))
		require.Equal(t, http.StatusOK, a.as("alice", "Tokens", "100", "Spend", "250000").StatusCode)
		r := a.as("bob", "Tokens", "100", "Spend", "250000")
		require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
		require.Equal(t, "500", r.Header.Get(ginlimit.HeaderRemainingTokens))
		require.Equal(t, "1.00", r.Header.Get(ginlimit.HeaderRemainingSpend))
		require.Equal(t, "500", r.Header.Get("X-RateLimit-Remaining-Tokens"))
		require.Contains(t, r.Header.Get("RateLimit"), `"minute";r=3;`)
		require.Contains(t, r.Header.Get("RateLimit"), `"day";r=100;`)

		shadow := serve(t, ginlimit.New(l, resolver, append(opts, ginlimit.WithShadow())...))
		r = shadow.as("bob", "Tokens", "100", "Spend", "250000")
		require.Equal(t, http.StatusOK, r.StatusCode)
		require.Equal(t, "500", r.Header.Get(ginlimit.HeaderRemainingTokens))
	})
}
