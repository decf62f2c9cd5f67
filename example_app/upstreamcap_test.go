package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit/admin"
)

// left asks what is left of every budget, as written, by name.
func (a *app) left(t *testing.T, key string) map[string]string {
	t.Helper()
	return a.budgets(t, key, func(b admin.Budget) string {
		return string(b.Remaining) + " of " + string(b.Limit)
	})
}

// A tier below its share of the cap is refused there, and another one may use what is left of the cap.
func TestUpstreamCap(t *testing.T) {
	t.Parallel()
	a := start(t, env{"UPSTREAM_PER_MINUTE": "6", "UPSTREAM_CONCURRENT": "50",
		"UPSTREAM_SHARES": " free=0.5, pro=1",
		"TIERS_FILE": tierFile(t, `tiers:
  free: {per_minute: 20, per_day: 20}
  pro: {per_minute: 20, per_day: 20}
`)})
	chats := func(key string, want ...int) (last answer) {
		t.Helper()
		for _, status := range want {
			last = a.chat(t, key, "Hi", "")
			require.Equal(t, status, last.status, last.body)
		}
		return last
	}
	refused := chats(freeKey, 200, 200, 200, 503)
	refused.wantError(t, 503, "api_error", nil, "upstream_capacity")
	seconds, err := strconv.Atoi(refused.header.Get("Retry-After"))
	require.NoError(t, err)
	require.Positive(t, seconds)
	require.Equal(t, map[string]string{"minute": "17 of 20", "day": "17 of 20", "upstream-minute": "0 of 3",
		"upstream-concurrent": "25 of 25"}, a.left(t, freeKey), "the refused one has cost nothing")
	require.Equal(t, "3 of 6", a.left(t, proKey)["upstream-minute"])
	chats(proKey, 200, 200, 200, 503)
	require.Equal(t, "0 of 6", a.left(t, proKey)["upstream-minute"])
	require.Equal(t, 200, a.send(t, "GET", "/v1/models", freeKey, "").status, "what asks no model is not capped")
	require.JSONEq(t, `{"free":0.5,"pro":1}`, sharesOf(t, a))
}

// sharesOf is what the page is told of the shares.
func sharesOf(t *testing.T, a *app) string {
	t.Helper()
	var about struct{ Shares map[string]float64 }
	a.sendRoute(t, "GET /page.json", "").json(t, &about)
	return fmt.Sprintf(`{"free":%v,"pro":%v}`, about.Shares["free"], about.Shares["pro"])
}

// Tokens are counted for the cap, of callers without a budget of tokens, too.
func TestUpstreamTokens(t *testing.T) {
	t.Parallel()
	a := start(t, env{"UPSTREAM_TOKENS_PER_MINUTE": "100000"})
	require.Equal(t, "100000 of 100000", a.left(t, proKey)["upstream-tokens-minute"])
	var body struct {
		Usage struct {
			TotalTokens int `json:"total_tokens"`
		}
	}
	a.chat(t, proKey, "Hi", "").json(t, &body)
	require.Positive(t, body.Usage.TotalTokens)
	want := fmt.Sprint(100000-body.Usage.TotalTokens, " of 100000")
	require.Eventually(t, func() bool { return a.left(t, proKey)["upstream-tokens-minute"] == want },
		10*time.Second, 5*time.Millisecond, "settled to what was used, %s", want)
}

// A provider that says when to come back is not asked before, for whomever. Its answer goes to the caller.
func TestUpstreamIsClosedByTheProvider(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(429)
		}
		_, _ = io.WriteString(w, `{}`)
	}))
	t.Cleanup(p.Close)
	a := start(t, env{"API_KEYS": ownKey + "=me:pro,sk-other=you:free", "UPSTREAM_BASE_URL": p.URL + "/v1",
		"UPSTREAM_PER_MINUTE": "100"})
	first := a.chat(t, ownKey, "Hi", "")
	require.Equal(t, "429 2 {}", fmt.Sprint(first.status, " ", first.header.Get("Retry-After"), " ", first.body))
	for _, key := range []string{ownKey, "sk-other"} {
		require.Eventually(t, func() bool { return a.left(t, key)["upstream-minute"] == "0 of 100" },
			time.Second, time.Millisecond, "the gate closes when the answer is over")
		a.chat(t, key, "Hi", "").wantError(t, 503, "api_error", nil, "upstream_capacity")
	}
	require.EqualValues(t, 1, asked.Load())
	require.Eventually(t, func() bool { return a.chat(t, "sk-other", "Hi", "").status == 200 },
		10*time.Second, 100*time.Millisecond)
	require.EqualValues(t, 2, asked.Load())
}

func TestUpstreamCapSettings(t *testing.T) {
	t.Parallel()
	cfg, err := loadConfig(env{
		"UPSTREAM_PER_MINUTE": "500", "UPSTREAM_TOKENS_PER_MINUTE": "1", "UPSTREAM_CONCURRENT": "3",
		"API_KEYS": "sk-own=me:pro", "UPSTREAM_BASE_URL": "https://api.example.com/v1"}.get)
	require.NoError(t, err)
	require.Equal(t, "api.example.com", cfg.upstreamCap.Name)
	require.Equal(t, []int{500, 1, 3},
		[]int{cfg.upstreamCap.PerMinute, cfg.upstreamCap.TokensPerMinute, cfg.upstreamCap.Concurrent})
	require.Empty(t, cfg.upstreamCap.Share)

	for setting, want := range map[string]string{
		"UPSTREAM_PER_MINUTE 0":                   `UPSTREAM_PER_MINUTE "0": want a whole number`,
		"UPSTREAM_TOKENS_PER_MINUTE 1.5":          `UPSTREAM_TOKENS_PER_MINUTE "1.5": want`,
		"UPSTREAM_CONCURRENT many":                `UPSTREAM_CONCURRENT "many": want`,
		"UPSTREAM_CONCURRENT 9223372036854775807": `UPSTREAM_CONCURRENT "9223372036854775807": want`,
	} {
		name, value, _ := strings.Cut(setting, " ")
		_, err := loadConfig(env{name: value}.get)
		require.ErrorContains(t, err, want)
	}
	_, err = loadConfig(env{"UPSTREAM_SHARES": "free=0.7"}.get)
	require.ErrorContains(t, err, "UPSTREAM_SHARES: is of no cap")
	for shares, want := range map[string]string{
		"free":          "entry 1 is not tier=share",
		"free=1,":       "entry 2 is not tier=share",
		"free=1,gold=1": `entry 2: unknown tier "gold"`,
		"free=1,free=1": `entry 2 repeats tier "free"`,
		"free=0":        `entry 1: share "0" is not above 0 and at most 1`,
		"free=-1":       `entry 1: share "-1" is not above 0`,
		"free=70%":      `entry 1: share "70%" is not above 0`,
		"free=1.01":     `entry 1: share "1.01" is not above 0`,
		"free=NaN":      `entry 1: share "NaN" is not above 0`,
		"free=":         `entry 1: share "" is not above 0`,
	} {
		_, err := loadConfig(env{"UPSTREAM_PER_MINUTE": "9", "UPSTREAM_SHARES": shares}.get)
		require.ErrorContains(t, err, "UPSTREAM_SHARES: "+want, shares)
	}
}
