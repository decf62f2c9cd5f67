package ginlimit_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/headers"
	"github.com/gin-tiers/ratelimit/tiers"
)

// budgetLines are the headers of an answer that tell of budgets, one a line in order; each stands there once.
func (r answer) budgetLines(t *testing.T) string {
	t.Helper()
	var lines []string
	for name, values := range r.Header {
		lower := strings.ToLower(name)
		if strings.Contains(lower, "ratelimit") || strings.Contains(lower, "retry") {
			require.Len(t, values, 1, name)
			lines = append(lines, lower+": "+values[0])
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// golden is an answer's lines as a test writes them, indented.
func golden(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// Every dialect, on every kind of answer. Q18.
func TestDialects(t *testing.T) {
	limits := map[string]tiers.Limits{
		"requests": {PerMinute: 5, PerDay: 7},
		"tokens":   {PerMinute: 5, PerDay: 7, TokensPerMinute: 1000, TokensPerDay: 1500},
	}
	type scene struct {
		limits string
		calls  int // before the one that is looked at, 12.5 s apart from 5 on
		status int
	}
	// The clock stands at 12:35:22.123; seven calls a minute and 12.5 s before the last two.
	scenes := map[string]scene{
		"200":        {"requests", 0, 200},
		"429 minute": {"requests", 5, 429},
		"429 day":    {"requests", 7, 429},
		"tokens 200": {"tokens", 0, 200},
		"tokens 429": {"tokens", 2, 429},
	}
	for dialect, tt := range map[string]struct {
		speak []ginlimit.Option
		want  map[string]string
	}{
		"the default": {nil, map[string]string{
			"200": `x-ratelimit-limit: 5
				x-ratelimit-remaining: 4
				x-ratelimit-window: minute`,
			"429 minute": `retry-after: 48
				x-ratelimit-limit: 5
				x-ratelimit-remaining: 0
				x-ratelimit-window: minute`,
			"429 day": `retry-after: 86328
				x-ratelimit-limit: 7
				x-ratelimit-remaining: 0
				x-ratelimit-window: day
				x-should-retry: false`,
			"tokens 200": `x-ratelimit-limit: 5
				x-ratelimit-limit-tokens: 1000
				x-ratelimit-remaining: 4
				x-ratelimit-remaining-tokens: 600
				x-ratelimit-window: minute`,
			"tokens 429": `retry-after: 60
				x-ratelimit-limit: 1000
				x-ratelimit-limit-tokens: 1000
				x-ratelimit-remaining: 0
				x-ratelimit-remaining-tokens: 200
				x-ratelimit-window: tokens-minute`,
		}},
		"IETF": {[]ginlimit.Option{ginlimit.WithHeaders(headers.IETF)}, map[string]string{
			"200": `ratelimit-policy: "minute";q=5;w=60, "day";q=7;w=86400
				ratelimit: "minute";r=4;t=60, "day";r=6;t=86400`,
			"429 minute": `ratelimit-policy: "minute";q=5;w=60, "day";q=7;w=86400
				ratelimit: "minute";r=0;t=48
				retry-after: 48`,
			"429 day": `ratelimit-policy: "minute";q=5;w=60, "day";q=7;w=86400
				ratelimit: "minute";r=3;t=60, "day";r=0;t=86328
				retry-after: 86328
				x-should-retry: false`,
			"tokens 200": `ratelimit-policy: "minute";q=5;w=60, "day";q=7;w=86400, ` +
				`"tokens-minute";q=1000;qu="tokens";w=60, "tokens-day";q=1500;qu="tokens";w=86400
				ratelimit: "minute";r=4;t=60, "day";r=6;t=86400, ` +
				`"tokens-minute";r=600;t=60, "tokens-day";r=1100;t=86400`,
			"tokens 429": `ratelimit-policy: "minute";q=5;w=60, "day";q=7;w=86400, ` +
				`"tokens-minute";q=1000;qu="tokens";w=60, "tokens-day";q=1500;qu="tokens";w=86400
				ratelimit: "minute";r=3;t=60, "day";r=5;t=86400, "tokens-minute";r=200;t=60
				retry-after: 60`,
		}},
		"OpenAI": {[]ginlimit.Option{ginlimit.WithHeaders(headers.OpenAI)}, map[string]string{
			"200": `x-ratelimit-limit-requests: 5
				x-ratelimit-remaining-requests: 4
				x-ratelimit-reset-requests: 1m0s`,
			"429 minute": `retry-after-ms: 47500
				retry-after: 48
				x-ratelimit-limit-requests: 5
				x-ratelimit-remaining-requests: 0
				x-ratelimit-reset-requests: 47.5s`,
			"429 day": `retry-after-ms: 86327500
				retry-after: 86328
				x-ratelimit-limit-requests: 7
				x-ratelimit-remaining-requests: 0
				x-ratelimit-reset-requests: 23h58m47.5s
				x-should-retry: false`,
			"tokens 200": `x-ratelimit-limit-requests: 5
				x-ratelimit-limit-tokens: 1000
				x-ratelimit-remaining-requests: 4
				x-ratelimit-remaining-tokens: 600
				x-ratelimit-reset-requests: 1m0s
				x-ratelimit-reset-tokens: 1m0s`,
			"tokens 429": `retry-after-ms: 60000
				retry-after: 60
				x-ratelimit-limit-requests: 5
				x-ratelimit-limit-tokens: 1000
				x-ratelimit-remaining-requests: 3
				x-ratelimit-remaining-tokens: 200
				x-ratelimit-reset-requests: 1m0s
				x-ratelimit-reset-tokens: 1m0s`,
		}},
		"Anthropic": {[]ginlimit.Option{ginlimit.WithHeaders(headers.Anthropic)}, map[string]string{
			"200": `anthropic-ratelimit-requests-limit: 5
				anthropic-ratelimit-requests-remaining: 4
				anthropic-ratelimit-requests-reset: 2024-11-29T12:36:23Z`,
			"429 minute": `anthropic-ratelimit-requests-limit: 5
				anthropic-ratelimit-requests-remaining: 0
				anthropic-ratelimit-requests-reset: 2024-11-29T12:36:23Z
				retry-after: 48`,
			"429 day": `anthropic-ratelimit-requests-limit: 7
				anthropic-ratelimit-requests-remaining: 0
				anthropic-ratelimit-requests-reset: 2024-11-30T12:35:23Z
				retry-after: 86328
				x-should-retry: false`,
			"tokens 200": `anthropic-ratelimit-requests-limit: 5
				anthropic-ratelimit-requests-remaining: 4
				anthropic-ratelimit-requests-reset: 2024-11-29T12:36:23Z
				anthropic-ratelimit-tokens-limit: 1000
				anthropic-ratelimit-tokens-remaining: 600
				anthropic-ratelimit-tokens-reset: 2024-11-29T12:36:23Z`,
			"tokens 429": `anthropic-ratelimit-requests-limit: 5
				anthropic-ratelimit-requests-remaining: 3
				anthropic-ratelimit-requests-reset: 2024-11-29T12:36:23Z
				anthropic-ratelimit-tokens-limit: 1000
				anthropic-ratelimit-tokens-remaining: 200
				anthropic-ratelimit-tokens-reset: 2024-11-29T12:36:23Z
				retry-after: 60`,
		}},
		// D12, and E5: the wait is no dialect's.
		"None": {[]ginlimit.Option{ginlimit.WithHeaders(headers.None)}, map[string]string{
			"200": "", "tokens 200": "", "429 minute": "retry-after: 48", "tokens 429": "retry-after: 60",
			"429 day": "retry-after: 86328\nx-should-retry: false",
		}},
	} {
		for name, s := range scenes {
			for mode, opts := range modes {
				t.Run(dialect+"/"+name+"/"+mode, func(t *testing.T) {
					c := newClock()
					table, err := tiers.NewStore(tiers.Free, map[tiers.Tier]tiers.Limits{tiers.Free: limits[s.limits]})
					require.NoError(t, err)
					opts := append(slices.Concat(opts, tt.speak), ginlimit.WithTiers(table))
					if s.limits == "tokens" {
						opts = append(opts, ginlimit.WithUsage(headerUsage))
					}
					l := ginlimit.NewMemoryLimiter(ginlimit.WithClock(c.now))
					api := serve(t, ginlimit.New(l, resolver, opts...))
					call := func() answer { return api.as("alice", "Tokens", "400") }
					for i := range s.calls {
						if i == 5 {
							c.advance(time.Minute)
						}
						require.Equal(t, http.StatusOK, call().StatusCode)
					}
					switch s.calls {
					case 5, 7:
						c.advance(12500 * time.Millisecond)
					}
					r := call()
					require.Equal(t, s.status, r.StatusCode)
					want := strings.Split(golden(tt.want[name]), "\n")
					slices.Sort(want)
					require.Equal(t, strings.Join(want, "\n"), r.budgetLines(t))
				})
			}
		}
	}
}

// All dialects together, through stacked limiters: each header once, of all limiters. D2, Q28.
func TestDialectsOfStackedLimiters(t *testing.T) {
	for _, who := range []string{"both", "outer", "inner"} {
		t.Run(who, func(t *testing.T) {
			c := newClock()
			l := ginlimit.NewMemoryLimiter(ginlimit.WithClock(c.now))
			speak := ginlimit.WithHeaders(headers.Default, headers.IETF, headers.OpenAI)
			outer := []ginlimit.Option{ginlimit.WithTiers(table(t, 4, 100))}
			inner := []ginlimit.Option{ginlimit.WithTiers(table(t, 2, 3))}
			if who != "inner" {
				outer = append(outer, speak)
			}
			if who != "outer" {
				inner = append(inner, speak)
			}
			api := serve(t, ginlimit.New(l, resolver, outer...), ginlimit.New(l.Scope("a b"), resolver, inner...))
			const policy = `ratelimit-policy: "minute";q=4;w=60, "day";q=100;w=86400, ` +
				`"a+b:minute";q=2;w=60, "a+b:day";q=3;w=86400` + "\n"
			passed := func(minute, day, innerMinute, innerDay int) string {
				return golden(fmt.Sprintf(policy+`ratelimit: "minute";r=%d;t=60, "day";r=%d;t=86400, `+
					`"a+b:minute";r=%d;t=60, "a+b:day";r=%d;t=86400
					x-ratelimit-limit-requests: 2
					x-ratelimit-limit: 2
					x-ratelimit-remaining-requests: %d
					x-ratelimit-remaining: %d
					x-ratelimit-reset-requests: 1m0s
					x-ratelimit-window: minute`, minute, day, innerMinute, innerDay, innerMinute, innerMinute))
			}
			require.Equal(t, passed(3, 99, 1, 2), api.as("alice").budgetLines(t))
			require.Equal(t, passed(2, 98, 0, 1), api.as("alice").budgetLines(t))
			// What the outer limiter took of a request that the inner one rejected has gone back.
			for range 2 {
				require.Equal(t, golden(policy+
					`ratelimit: "minute";r=2;t=60, "day";r=98;t=86400, "a+b:minute";r=0;t=60
					retry-after-ms: 60000
					retry-after: 60
					x-ratelimit-limit-requests: 2
					x-ratelimit-limit: 2
					x-ratelimit-remaining-requests: 0
					x-ratelimit-remaining: 0
					x-ratelimit-reset-requests: 1m0s
					x-ratelimit-window: minute`), api.as("alice").budgetLines(t))
			}
		})
	}
}

// A mount that says nothing tells nobody of its budgets, and its rejection has no word of others'. D12.
func TestASilentMountUnderOneThatSpeaks(t *testing.T) {
	l := ginlimit.NewMemoryLimiter()
	api := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 9, 9)),
		ginlimit.WithHeaders(headers.Default, headers.IETF)),
		ginlimit.New(l.Scope("login"), resolver, ginlimit.WithTiers(table(t, 1, 9)),
			ginlimit.WithHeaders(headers.None)))
	r := api.as("alice")
	require.Equal(t, "9 8 minute", r.limits(t))
	require.Equal(t, `"minute";r=8;t=60, "day";r=8;t=86400`, r.Header.Get("RateLimit"))
	r = api.as("alice")
	require.Equal(t, http.StatusTooManyRequests, r.StatusCode)
	require.Regexp(t, `^retry-after: \d+$`, r.budgetLines(t))
}

func TestASilentMountOverOneThatSpeaks(t *testing.T) {
	l := ginlimit.NewMemoryLimiter()
	for _, d := range []*headers.Dialect{headers.Default, headers.IETF} {
		api := serve(t, ginlimit.New(l.Scope("login"), resolver, ginlimit.WithTiers(table(t, 3, 9)),
			ginlimit.WithHeaders(headers.None)),
			ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 9, 9)), ginlimit.WithHeaders(d)))
		r := api.as("alice" + d.Names()[0])
		require.NotContains(t, r.budgetLines(t), "login")
		own := `remaining: 8\n|^ratelimit-policy: "minute";q=9;w=60, "day";q=9;w=86400\n`
		require.Regexp(t, own, r.budgetLines(t))
	}
}

// An answer on which nothing was decided has no headers of any dialect.
func TestRefusalsRemoveEveryDialect(t *testing.T) {
	l := ginlimit.NewMemoryLimiter()
	nobody := ginlimit.TierResolverFunc(func(*gin.Context) (ginlimit.Subject, error) {
		return ginlimit.Subject{}, ginlimit.ErrNoSubject
	})
	custom := headers.New(func(h http.Header, r headers.Response) {
		h.Set("X-Left", fmt.Sprint(r.Requests.Remaining, len(r.Budgets)))
	}, "x-left")
	speak := ginlimit.WithHeaders(headers.Default, headers.IETF, headers.OpenAI, headers.Anthropic, custom)
	outer := ginlimit.New(l, resolver, speak)
	r := serve(t, outer).as("alice")
	require.Equal(t, http.StatusOK, r.StatusCode)
	require.Equal(t, "4 2", r.Header.Get("X-Left"))
	r = serve(t, outer, ginlimit.New(l.Scope("more"), nobody)).as("alice")
	require.Equal(t, http.StatusUnauthorized, r.StatusCode)
	require.Empty(t, r.budgetLines(t))
	require.Empty(t, r.Header.Get("X-Left"))
}

// While the kill switch is on, all dialects tell of whole budgets.
func TestDialectsUnderTheKillSwitch(t *testing.T) {
	l := ginlimit.NewMemoryLimiter()
	l.SetDisabled(true)
	api := serve(t, ginlimit.New(l, resolver, ginlimit.WithHeaders(headers.IETF)))
	require.Equal(t, `"minute";r=5;t=60, "day";r=100;t=86400`, api.as("alice").Header.Get("RateLimit"))
}

// What IETF says is a list of structured fields, whatever the limits and scopes are.
func TestIETFIsStructuredFields(t *testing.T) {
	huge, err := tiers.NewStore(tiers.Free, map[tiers.Tier]tiers.Limits{
		tiers.Free: {PerMinute: 1 << 52, PerDay: tiers.Unlimited, SpendPerDay: 2_500_000, Concurrent: 3}})
	require.NoError(t, err)
	l := ginlimit.NewMemoryLimiter()
	api := serve(t, ginlimit.New(l.Scope("Bilder \"ü\"\n:,;"), resolver, ginlimit.WithTiers(huge),
		ginlimit.WithHeaders(headers.IETF), ginlimit.WithUsage(headerUsage), ginlimit.WithConcurrency()))
	r := api.as("alice", "Tokens", "1", "Spend", "500000")
	list, err := httpsfv.UnmarshalList(r.Header.Values("RateLimit-Policy"))
	require.NoError(t, err)
	scope := `Bilder+%22%C3%BC%22%0A%3A%2C%3B:`
	require.Equal(t, scope+"minute", list[0].(httpsfv.Item).Value)
	require.Equal(t, fmt.Sprintf(`"%sminute";q=999999999999999;w=60, `+
		`"%sspend-day";q=2500000;qu="spend";w=86400, "%sconcurrent";q=3;qu="concurrent-requests"`,
		scope, scope, scope), r.Header.Get("RateLimit-Policy"))
	require.Equal(t, fmt.Sprintf(`"%sminute";r=999999999999999;t=60, "%sspend-day";r=2000000;t=86400, `+
		`"%sconcurrent";r=2`, scope, scope, scope), r.Header.Get("RateLimit"))
	_, err = httpsfv.UnmarshalList(r.Header.Values("RateLimit"))
	require.NoError(t, err)
}

func TestExposedHeaders(t *testing.T) {
	cors := func(c *gin.Context) { c.Header("Access-Control-Expose-Headers", "X-Own, x-ratelimit-limit") }
	l := ginlimit.NewMemoryLimiter()
	mount := func(l *ginlimit.Limiter, d *headers.Dialect) gin.HandlerFunc {
		return ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 1, 9)), ginlimit.WithHeaders(d),
			ginlimit.WithExposedHeaders())
	}
	api := serve(t, cors, mount(l, headers.Default), mount(l.Scope("more"), headers.IETF))
	for _, status := range []int{200, 429} {
		r := api.as("alice")
		require.Equal(t, status, r.StatusCode)
		exposed := r.Header.Values("Access-Control-Expose-Headers")
		require.Len(t, exposed, 1)
		list := strings.Split(strings.ToLower(exposed[0]), ", ")
		for _, name := range []string{"x-own", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-window",
			"retry-after", "x-should-retry"} {
			require.Contains(t, list, name)
		}
		require.Equal(t, status == 200, slices.Contains(list, "ratelimit-policy"), "the second mount's")
		slices.Sort(list)
		require.Len(t, slices.Compact(slices.Clone(list)), len(list), "each once")
	}
	plain := ginlimit.New(ginlimit.NewMemoryLimiter(), resolver)
	require.NotContains(t, serve(t, plain).as("bob").Header, "Access-Control-Expose-Headers")
}

func TestWithHeadersRefusesContradictions(t *testing.T) {
	for name, dialects := range map[string][]*headers.Dialect{
		"none at all": nil, "nil": {headers.Default, nil}, "None beside others": {headers.None, headers.IETF},
	} {
		t.Run(name, func(t *testing.T) { require.Panics(t, func() { ginlimit.WithHeaders(dialects...) }) })
	}
	require.Panics(t, func() { headers.New(nil) })
}
