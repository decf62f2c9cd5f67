package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit/admin"
	"github.com/gin-tiers/ratelimit/tiers"
)

// allBudgets is a tier file with a budget of every kind.
const allBudgets = `tiers:
  free: {per_minute: 50, per_day: 100, tokens_per_minute: 1000, tokens_per_month: 9000, spend_per_day: 2.50,
    concurrent: 3}
  pro: {per_minute: 60, per_day: 5000}
`

// budgets asks for the usage, and tells of every budget by its name what of says.
func (a *app) budgets(t *testing.T, key string, of func(admin.Budget) string) map[string]string {
	t.Helper()
	var report admin.Report
	a.send(t, "GET", "/v1/usage", key, "").json(t, &report)
	all := map[string]string{}
	for _, b := range report.Budgets {
		all[b.Window] = of(b)
	}
	return all
}

// used asks what was used of every budget, as written, by name.
func (a *app) used(t *testing.T, key string) map[string]string {
	t.Helper()
	return a.budgets(t, key, func(b admin.Budget) string { return string(b.Used) })
}

// usedSoon waits until a budget shows what was used: a client has its answer before the request is settled.
func (a *app) usedSoon(t *testing.T, key string, want map[string]string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		used := a.used(t, key)
		for window, n := range want {
			assert.Equal(c, n, used[window], window)
		}
	}, 10*time.Second, 10*time.Millisecond)
}

// Every budget of a tier file is decided, settled, shown, and told in the headers.
func TestEveryBudget(t *testing.T) {
	t.Parallel()
	a := start(t, env{
		"TIERS_FILE": tierFile(t, allBudgets), "PRICES_FILE": tierFile(t, "any: {input: 1, output: 100}"),
	})
	for i, fields := range []string{
		"", `,"stream":true`, `,"stream":true,"stream_options":{"include_usage":true}`,
	} {
		res := a.chat(t, freeKey, "Hello there", fields)
		require.Equal(t, 200, res.status, res.body)
		require.Equal(t, "1000", res.header.Get("X-RateLimit-Limit-Tokens"))
		require.Equal(t, "2.50", res.header.Get("X-RateLimit-Limit-Spend"))
		// 9 tokens for the prompt, 5 for the answer.
		n := i + 1
		a.usedSoon(t, freeKey, map[string]string{
			"minute": fmt.Sprint(n), "day": fmt.Sprint(n), "concurrent": "0",
			"tokens-minute": fmt.Sprint(14 * n), "tokens-month": fmt.Sprint(14 * n),
			"spend-day": tiers.Money(509 * n).String(),
		})
	}
	body := a.send(t, "GET", "/v1/usage", freeKey, "").body
	require.Contains(t, body, `{"window":"spend-day","limit":2.50,"used":0.001527,"remaining":2.498473,`)

	// What does not ask a model takes requests alone.
	for _, route := range []string{"GET /v1/models", "GET /v1/models/any", "GET /v1/none", "POST /v1/none"} {
		require.Empty(t, a.sendRoute(t, route, freeKey).header.Get("X-RateLimit-Limit-Tokens"), route)
	}
	a.usedSoon(t, freeKey, map[string]string{"minute": "7", "tokens-minute": "42", "concurrent": "0"})

	// A tier without these budgets is limited as without the file.
	res := a.chat(t, proKey, "Hello there", `,"max_tokens":100000`)
	require.Equal(t, 200, res.status)
	require.Empty(t, res.header.Get("X-RateLimit-Limit-Tokens"))
	require.Equal(t, map[string]string{"minute": "1", "day": "1"}, a.used(t, proKey))
}

func TestTokensAreRefused(t *testing.T) {
	t.Parallel()
	a := start(t, env{
		"TIERS_FILE": tierFile(t, "tiers: {free: {per_minute: 50, per_day: 90, tokens_per_minute: 40}}"),
	})
	statuses := map[int]int{}
	for range 5 { // 14 each, and 9 + 10 are reserved
		res := a.chat(t, freeKey, "Hello there", "")
		if statuses[res.status]++; res.status != 200 {
			res.wantError(t, 429, "rate_limit_error", nil, "tokens_exceeded")
			require.Equal(t, "tokens-minute", res.header.Get("X-RateLimit-Window"))
		}
	}
	require.GreaterOrEqual(t, statuses[200], 2)
	require.GreaterOrEqual(t, statuses[429], 2)
	require.Equal(t, 200, a.send(t, "GET", "/v1/models", freeKey, "").status, "a list takes no tokens")

	// A request that is larger than the budget can never pass.
	a.chat(t, freeKey, strings.Repeat("word ", 100), "").
		wantError(t, 400, "invalid_request_error", nil, "request_exceeds_budget")
}

// What cannot be read is answered as without budgets of tokens, and costs a request.
func TestUnreadableBodies(t *testing.T) {
	t.Parallel()
	a := start(t, env{"TIERS_FILE": tierFile(t, allBudgets), "MAX_BODY_BYTES": "1000"})
	a.chat(t, freeKey, strings.Repeat("x", 2000), "").
		wantError(t, 413, "invalid_request_error", nil, "request_too_large")
	req := a.request(t, "POST", "/v1/chat/completions", freeKey, io.LimitReader(&zeros{}, 2000))
	read(t, a.open(t, req)).wantError(t, 413, "invalid_request_error", nil, "request_too_large")
	a.send(t, "POST", "/v1/chat/completions", freeKey, "{").
		wantError(t, 400, "invalid_request_error", nil, "invalid_json")
	a.sendRoute(t, "POST /v1/chat/completions", freeKey).
		wantError(t, 400, "invalid_request_error", nil, "invalid_json")
	a.usedSoon(t, freeKey, map[string]string{"minute": "4", "concurrent": "0"})
}

// J3: what the provider fails at costs nothing; what it says to the request does.
func TestFailuresAreRefunded(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{
		500: "0", 502: "0", 503: "0", 401: "0", 200: "1", 400: "1", 429: "1",
	} {
		p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"usage":{"prompt_tokens":0,"completion_tokens":1,"total_tokens":1}}`)
		}))
		t.Cleanup(p.Close)
		a := start(t, env{
			"API_KEYS": ownKey + "=ip/203.0.113.7:free", "UPSTREAM_BASE_URL": p.URL,
			"TIERS_FILE": tierFile(t, allBudgets), "PRICES_FILE": tierFile(t, "any: {input: 1, output: 1}"),
		})
		got := a.chat(t, ownKey, "Hi", "").status
		if status == 401 {
			require.Equal(t, 502, got)
		} else {
			require.Equal(t, status, got)
		}
		a.usedSoon(t, ownKey, map[string]string{"minute": want, "tokens-minute": want, "concurrent": "0"})
		if status == 401 {
			require.Equal(t, 502, a.send(t, "GET", "/v1/models", ownKey, "").status)
			a.usedSoon(t, ownKey, map[string]string{"minute": "0"})
		}
	}
}

// R31: usage is that of the user whom the middleware counts, whatever the name.
func TestUsageOfUsersLikeAddresses(t *testing.T) {
	t.Parallel()
	for i, user := range []string{"ip/203.0.113.7", "ip%2F203.0.113.7", "ip%", "ip/", "ip", "ipx/", "IP/1"} {
		a := start(t, env{"API_KEYS": ownKey + "=" + user + ":pro"})
		a.chat(t, ownKey, "Hi", "")
		require.Equal(t, "1", a.used(t, ownKey)["minute"], user)
		var report admin.Report
		a.send(t, "GET", "/v1/usage", ownKey, "").json(t, &report)
		require.Equal(t, user, report.User, i)
	}
}
