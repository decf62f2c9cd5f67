package ginlimit_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// Of several limiters that a request passes, each takes what it alone has, what they share is taken once, and
// all of it is settled, or comes back where the last one rejects. Q29.
func TestStackedUsage(t *testing.T) {
	usage, slots := ginlimit.WithUsage(headerUsage), ginlimit.WithConcurrency()
	type mount struct {
		scope  string
		change func(*tiers.Limits)
		opts   []ginlimit.Option
	}
	requests := func(*tiers.Limits) {}
	minute := func(l *tiers.Limits) { l.TokensPerMinute = 1000 }
	day := func(l *tiers.Limits) { l.TokensPerDay = 2000 }
	both := func(l *tiers.Limits) { minute(l); day(l) }
	three := func(l *tiers.Limits) { l.Concurrent = 3 }
	minuteAndThree := func(l *tiers.Limits) { minute(l); three(l) }
	images := ginlimit.WithScope("images", scopeTable(t, func(l *tiers.Limits) {
		l.Concurrent, l.TokensPerDay = 2, 500
	}))
	on := func(opts ...ginlimit.Option) []ginlimit.Option { return opts }

	for name, tt := range map[string]struct {
		mounts []mount
		during map[string]int // beside the requests
		images map[string]int // in the scope
	}{
		"the same twice": {[]mount{{"", both, on(usage)}, {"", both, on(usage)}},
			map[string]int{"tokens1m0s": 100, "tokens24h0m0s": 100, "concurrent": 1}, nil},
		"requests, then tokens": {[]mount{{"", requests, nil}, {"", both, on(usage)}},
			map[string]int{"tokens1m0s": 100, "tokens24h0m0s": 100, "concurrent": 1}, nil},
		"tokens, then requests": {[]mount{{"", both, on(usage)}, {"", requests, nil}},
			map[string]int{"tokens1m0s": 100, "tokens24h0m0s": 100, "concurrent": 1}, nil},
		"one window, then another": {[]mount{{"", minute, on(usage)}, {"", day, on(usage)}},
			map[string]int{"tokens1m0s": 100, "tokens24h0m0s": 100, "concurrent": 1}, nil},
		"slots, then tokens": {[]mount{{"", three, on(slots)}, {"", both, on(usage)}},
			map[string]int{"tokens1m0s": 100, "tokens24h0m0s": 100, "concurrent": 1}, nil},
		"tokens, then tokens and slots": {[]mount{{"", minute, on(usage)}, {"", minuteAndThree, on(usage, slots)}},
			map[string]int{"tokens1m0s": 100, "concurrent": 1}, nil},
		"tokens, then a scope's slots too": {
			[]mount{{"", minute, on(usage)}, {"", minute, on(usage, slots, images)}},
			map[string]int{"tokens1m0s": 100, "concurrent": 1}, map[string]int{"tokens24h0m0s": 100, "concurrent": 1}},
		"a scope, then the whole": {[]mount{{"images", day, on(usage)}, {"", minuteAndThree, on(usage, slots)}},
			map[string]int{"tokens1m0s": 100, "concurrent": 1}, map[string]int{"tokens24h0m0s": 100, "concurrent": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, l *ginlimit.Limiter) {
				all := tiers.Limits{
					PerMinute:       1000,
					PerDay:          10_000,
					TokensPerMinute: 1000,
					TokensPerDay:    2000,
					Concurrent:      3,
				}
				look := func(l *ginlimit.Limiter) map[string]int {
					found := map[string]int{}
					for name, n := range used(t, l, "alice", all) {
						if n > 0 && name != "1m0s" && name != "24h0m0s" {
							found[name] = n
						}
					}
					return found
				}
				tokens := func(of map[string]int, n int) map[string]int {
					want := map[string]int{}
					for name := range of {
						if name != "concurrent" && n > 0 {
							want[name] = n
						}
					}
					return want
				}
				if tt.images == nil {
					tt.images = map[string]int{}
				}
				var handlers []gin.HandlerFunc
				for _, m := range tt.mounts {
					table, _ := plenty(t, m.change)
					opts := append([]ginlimit.Option{ginlimit.WithTiers(table)}, m.opts...)
					handlers = append(handlers, ginlimit.New(l.Scope(m.scope), resolver, opts...))
				}
				var during, inScope, requests map[string]int
				a := serve(t, append(handlers, func(c *gin.Context) {
					during, inScope, requests = look(l), look(l.Scope("images")), used(t, l, "alice", all)
					ginlimit.AdmissionFrom(c).Settle(ginlimit.Usage{Tokens: 30})
				})...)
				r := a.as("alice", "Tokens", "100")
				require.Equal(t, http.StatusOK, r.StatusCode, r.body)
				require.Equal(t, "1000 999 minute", r.limits(t))
				require.Equal(t, "999 9999", remaining(requests))
				require.Equal(t, tt.during, during)
				require.Equal(t, tt.images, inScope)
				ended := func(n int) {
					t.Helper()
					require.Eventually(t, func() bool {
						return len(look(l)) == len(tokens(tt.during, n)) && look(l.Scope("images"))["concurrent"] == 0
					}, 5*time.Second, time.Millisecond)
					require.Equal(t, tokens(tt.during, n), look(l))
					require.Equal(t, tokens(tt.images, n), look(l.Scope("images")))
				}
				ended(30)

				// One more mount behind them rejects: all that they took comes back.
				last := ginlimit.New(l.Scope("last"), resolver, ginlimit.WithTiers(table(t, 1, 1)))
				b := serve(t, append(handlers, last)...)
				require.Equal(t, http.StatusOK, b.as("alice", "Tokens", "70").StatusCode)
				ended(100)
				for range 3 {
					require.Equal(t, http.StatusTooManyRequests, b.as("alice", "Tokens", "70").StatusCode)
				}
				ended(100)
			})
		})
	}
}

func remaining(used map[string]int) string {
	return strconv.Itoa(1000-used["1m0s"]) + " " + strconv.Itoa(10_000-used["24h0m0s"])
}

func scopeTable(t *testing.T, change func(*tiers.Limits)) *tiers.Store {
	table, _ := plenty(t, change)
	return table
}

// A log that a limiter before has counted is not counted again: what is told as remaining is true.
func TestRemainingBehindALimiterOfRequests(t *testing.T) {
	rdb := redistest.Client(t)
	l := ginlimit.NewLimiter(rdb)
	tokens, _ := plenty(t, func(l *tiers.Limits) { l.PerMinute, l.TokensPerMinute = 5, 1000 })
	a := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 5, 10_000))),
		ginlimit.New(l, resolver, ginlimit.WithTiers(tokens), ginlimit.WithUsage(headerUsage)))
	id := redistest.ID(t)
	for left := 4; left >= 0; left-- {
		require.Equal(t, "5 "+strconv.Itoa(left)+" minute", a.as(id, "Tokens", "10").limits(t))
	}
	require.Equal(t, http.StatusTooManyRequests, a.as(id, "Tokens", "10").StatusCode)
}

// With bounded windows, a further window of a second mount is taken too, and comes back with the others.
func TestStackedBoundedWindows(t *testing.T) {
	onEach(t, func(t *testing.T, l *ginlimit.Limiter) {
		day, _ := plenty(t, func(*tiers.Limits) {})
		month, limits := plenty(t, func(l *tiers.Limits) { l.PerMonth = 20_000 })
		var during map[string]int
		refund := false
		a := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(day), ginlimit.WithBoundedWindows()),
			ginlimit.New(l, resolver, ginlimit.WithTiers(month), ginlimit.WithBoundedWindows()), func(c *gin.Context) {
				during = used(t, l, "alice", limits)
				if refund {
					ginlimit.AdmissionFrom(c).Refund()
				}
			})
		one := map[string]int{"1m0s": 1, "24h0m0s": 1, "720h0m0s": 1}
		require.Equal(t, "1000 999 minute", a.as("alice").limits(t))
		require.Equal(t, one, during)
		refund = true
		require.Equal(t, "1000 998 minute", a.as("alice").limits(t))
		require.Equal(t, map[string]int{"1m0s": 2, "24h0m0s": 2, "720h0m0s": 2}, during)
		require.Eventually(t, func() bool { return used(t, l, "alice", limits)["720h0m0s"] == 1 }, time.Second,
			time.Millisecond)
		require.Equal(t, one, used(t, l, "alice", limits))
	})
}
