package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/admin"
	"github.com/gin-tiers/ratelimit/ginlimit/ginlimittest"
)

// An override ends on every route at one moment, by the limiter's clock: in decisions, in the usage, for
// operators, and for the meter, which charges tokens while the override has a budget of them.
func TestOverrideEnds(t *testing.T) {
	t.Parallel()
	clock := ginlimittest.NewClock()
	until := clock.Now().Add(time.Hour).Format(time.RFC3339)
	cfg, err := loadConfig(env{"ADMIN_TOKEN": adminToken, "TIERS_FILE": tierFile(t, `
tiers: {free: {per_minute: 50, per_day: 90}, pro: {per_minute: 60, per_day: 90}}
overrides: {user_free: {per_minute: 70, per_day: 80, tokens_per_day: 9000, until: `+until+`}}
`)}.get)
	require.NoError(t, err)
	limiter := ginlimit.NewMemoryLimiter(ginlimit.WithClock(clock.Now))
	router := newRouter(cfg, limiter)
	send := func(route, key, body string) *httptest.ResponseRecorder {
		method, path, _ := strings.Cut(route, " ")
		req := httptest.NewRequest(method, path, strings.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		router.ServeHTTP(w, req)
		return w
	}
	budgets := func(route, key string) map[string]string {
		w := send(route, key, "")
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		var report admin.Report
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &report))
		all := map[string]string{}
		for _, b := range report.Budgets {
			all[b.Window] = string(b.Limit) + " " + string(b.Used)
		}
		return all
	}
	want := func(limit string, budgetsWanted map[string]string) {
		t.Helper()
		chat := send("POST /v1/chat/completions", freeKey, chatBody("Hello there", ""))
		require.Equal(t, http.StatusOK, chat.Code, chat.Body)
		require.Equal(t, limit, chat.Header().Get("X-RateLimit-Limit"))
		require.Equal(t, limit, send("GET /v1/models", freeKey, "").Header().Get("X-RateLimit-Limit"))
		require.Equal(t, budgetsWanted, budgets("GET /v1/usage", freeKey))
		require.Equal(t, budgetsWanted, budgets("GET /admin/usage?user=user_free&tier=free", adminToken))
	}
	// 9 tokens for the prompt and 5 for the answer: settled, not only reserved.
	want("70", map[string]string{"minute": "70 2", "day": "80 2", "tokens-day": "9000 14"})
	require.Equal(t, map[string]string{"minute": "60 0", "day": "90 0"}, budgets("GET /v1/usage", proKey))
	clock.Advance(time.Hour - time.Millisecond)
	want("70", map[string]string{"minute": "70 2", "day": "80 4", "tokens-day": "9000 28"})
	clock.Advance(time.Millisecond)
	want("50", map[string]string{"minute": "50 4", "day": "90 6"})
}
