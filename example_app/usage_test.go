package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUsageCostsNothing(t *testing.T) {
	t.Parallel()
	a := start(t, env{"TIERS_FILE": tierFile(t, "tiers: {free: {per_minute: 3, per_day: 10}}")})
	want := func(used, retryAfter int) {
		t.Helper()
		for range 20 { // more often than any budget allows
			res := a.send(t, "GET", "/v1/usage", freeKey, "")
			require.Equal(t, 200, res.status)
			require.Empty(t, res.header.Get("X-RateLimit-Limit"))
			require.JSONEq(t, fmt.Sprintf(`{"object":"usage","user":"user_free","tier":"free","budgets":[
				{"window":"minute","limit":3,"used":%d,"remaining":%d,"retry_after":%d},
				{"window":"day","limit":10,"used":%d,"remaining":%d,"retry_after":0}]}`,
				used, 3-used, retryAfter, used, 10-used), res.body)
		}
	}
	want(0, 0)
	for i := range 3 {
		want(i, 0)
		require.Equal(t, 200, a.send(t, "GET", "/v1/models", freeKey, "").status)
	}
	rejected := a.send(t, "GET", "/v1/models", freeKey, "")
	require.Equal(t, 429, rejected.status)
	require.Equal(t, "60", rejected.header.Get("Retry-After"))
	want(3, 60)
}

// Whatever is asked below /v1 costs one request, but GET /v1/usage.
func TestEveryRouteCosts(t *testing.T) {
	t.Parallel()
	a := start(t, nil)
	for i, row := range []struct {
		route  string
		status int
	}{
		{"POST /v1/chat/completions", 400},
		{"GET /v1/models", 200},
		{"GET /v1", 404},
		{"GET /v1/", 404},
		{"GET /v1/models/", 404},
		{"GET /v1/no/such", 404},
		{"POST /v1/embeddings", 400},
		{"POST /v1/files", 404},
		{"GET /v1/chat/completions", 405},
		{"DELETE /v1/models", 405},
		{"POST /v1/usage", 405},
	} {
		res := a.sendRoute(t, row.route, proKey)
		require.Equal(t, row.status, res.status, row.route)
		require.Equal(t, fmt.Sprint(59-i), res.header.Get("X-RateLimit-Remaining"), row.route)
	}
	for range 5 {
		a.sendRoute(t, "GET /v1/no/such", freeKey).wantError(t, 404, "invalid_request_error", nil, "unknown_url")
	}
	a.sendRoute(t, "GET /v1/no/such", freeKey).wantError(t, 429, "rate_limit_error", nil, "rate_limit_exceeded")
	for range 10 {
		require.Equal(t, 200, a.sendRoute(t, "GET /healthz", "").status)
	}
}

// Without Redis nothing is limited and nothing is served; the app lives, and tells clients nothing
// about Redis.
func TestRedisDown(t *testing.T) {
	t.Parallel()
	const nobody = "127.0.0.1:1"
	a := start(t, env{"REDIS_URL": "redis://:sk-secret@" + nobody})
	for _, route := range []string{"GET /v1/usage", "GET /v1/models",
		"POST /v1/chat/completions", "GET /v1/no/such"} {
		res := a.sendRoute(t, route, proKey)
		res.wantError(t, 503, "api_error", nil, "rate_limiter_unavailable")
		require.Equal(t, "1", res.header.Get("Retry-After"))
		require.NotContains(t, res.body, nobody)
		require.NotContains(t, res.body, "refused")
	}
	require.Equal(t, 401, a.sendRoute(t, "GET /v1/models", "").status)
	require.Equal(t, 200, a.sendRoute(t, "GET /healthz", "").status)
}
