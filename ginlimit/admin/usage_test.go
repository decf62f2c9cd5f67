package admin_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
)

func TestUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, ginlimit.NewMemoryLimiter())
		require.Equal(t, []int{200, 200, 429}, s.chats(t, "ip/203.0.113.7", 3))
		require.Equal(t, []int{200}, s.chats(t, "team:a", 1))

		got := s.send(t, "GET /admin/usage?user=team%3Aa", "")
		require.Equal(t, 200, got.Code)
		require.Equal(t, "no-store", got.Header().Get("Cache-Control"))
		require.JSONEq(t, `{"object":"usage","user":"team:a","tier":"free","budgets":[
			{"window":"minute","limit":2,"used":1,"remaining":1,"retry_after":0},
			{"window":"day","limit":10,"used":1,"remaining":9,"retry_after":0}]}`, got.Body.String())

		time.Sleep(20 * time.Second)
		// An id of another resolver than ByClientIP that looks like an address is counted under its escaped form.
		got = s.send(t, "GET /admin/usage?user=ip%252F203.0.113.7", "")
		require.Contains(t, got.Body.String(), `"minute","limit":2,"used":2,"remaining":0,"retry_after":40`)

		require.Equal(t, 200, s.send(t, "HEAD /admin/usage?user=team%3Aa", "").Code)
		require.Equal(t, 200, s.send(t, "HEAD /admin/kill-switch", "").Code)

		got = s.send(t, "GET /admin/usage?user=team%3Aa&tier=pro", "")
		require.JSONEq(t, `{"object":"usage","user":"team:a","tier":"pro","budgets":[
			{"window":"minute","limit":5,"used":1,"remaining":4,"retry_after":0},
			{"window":"day","limit":50,"used":1,"remaining":49,"retry_after":0},
			{"window":"month","limit":900,"used":0,"remaining":900,"retry_after":0},
			{"window":"tokens-day","limit":1000,"used":0,"remaining":1000,"retry_after":0},
			{"window":"spend-day","limit":2.5,"used":0,"remaining":2.5,"retry_after":0},
			{"window":"concurrent","limit":3,"used":0,"remaining":3,"retry_after":0}]}`, got.Body.String())
		require.Contains(t, s.send(t, "GET /admin/usage?user=nobody", "").Body.String(), `"used":0`)
	})
}

func TestReset(t *testing.T) {
	log := captureLog(t)
	s := newSite(t, ginlimit.NewMemoryLimiter())
	for _, row := range []struct {
		query, windows string
		minute, day    string
	}{
		{"&window=minute", `["minute"]`, `"remaining":2`, `"remaining":8`},
		{"&window=86400", `["day"]`, `"remaining":0`, `"remaining":10`},
		{"&window=day&window=minute&window=60", `["day","minute"]`, `"remaining":2`, `"remaining":10`},
		{"", `["minute","hour","day","month"]`, `"remaining":2`, `"remaining":10`},
		{"&window=90", `["90s"]`, `"remaining":0`, `"remaining":8`},
	} {
		s.send(t, "DELETE /admin/usage?user=alice", "")
		require.Equal(t, []int{200, 200, 429}, s.chats(t, "alice", 3))
		got := s.send(t, "DELETE /admin/usage?user=alice"+row.query, "")
		require.Equal(t, 200, got.Code, got.Body)
		require.JSONEq(t, `{"object":"usage.reset","user":"alice","windows":`+row.windows+`}`, got.Body.String())
		left := s.send(t, "GET /admin/usage?user=alice", "").Body.String()
		require.Regexp(t, `"minute".*`+row.minute+`.*"day".*`+row.day, left, row.query)
	}
	require.Equal(t, []int{200}, s.chats(t, "bob", 1))
	require.Contains(t, log.String(), `usage was reset" user=alice windows="[minute hour day month]" by=dana`)
}

func TestUsageBadQueries(t *testing.T) {
	s := newSite(t, ginlimit.NewMemoryLimiter())
	for route, param := range map[string]string{
		"GET /admin/usage":                             "user",
		"GET /admin/usage?user=":                       "user",
		"GET /admin/usage?user=a&user=b":               "user",
		"GET /admin/usage?user=a&tier=gold":            "tier",
		"GET /admin/usage?user=a&window=day":           "",
		"GET /admin/usage?user=%zz":                    "",
		"GET /admin/usage?user=a;tier=pro":             "",
		"DELETE /admin/usage?user=a&windows=day":       "",
		"DELETE /admin/usage?user=a&window=":           "window",
		"DELETE /admin/usage?user=a&window=week":       "window",
		"DELETE /admin/usage?user=a&window=0":          "window",
		"DELETE /admin/usage?user=a&window=-60":        "window",
		"DELETE /admin/usage?user=a&window=1.5":        "window",
		"DELETE /admin/usage?user=a&window=1m":         "window",
		"DELETE /admin/usage?user=a&window=9999999999": "window",
		"DELETE /admin/usage?window=day":               "user",
	} {
		t.Run(route, func(t *testing.T) { wantInvalid(t, s.send(t, route, ""), param) })
	}
}

// A store that fails is a 503 with fixed words.
func TestUsageWithoutRedis(t *testing.T) {
	log := captureLog(t)
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = rdb.Close() })
	s := newSite(t, ginlimit.NewLimiter(rdb))
	for _, route := range []string{"GET /admin/usage?user=a", "DELETE /admin/usage?user=a"} {
		got := s.send(t, route, "")
		require.Equal(t, 503, got.Code)
		require.Equal(t, "1", got.Header().Get("Retry-After"))
		require.Contains(t, got.Body.String(), "rate_limiter_unavailable")
		require.NotContains(t, got.Body.String(), "127.0.0.1")
	}
	require.Contains(t, log.String(), "usage cannot be read")
	require.Contains(t, log.String(), "usage cannot be reset")
	require.NotContains(t, log.String(), "was reset")
}
