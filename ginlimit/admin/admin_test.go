package admin_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/admin"
	"github.com/gin-tiers/ratelimit/tiers"
)

// site is a service with a limited route and the admin routes behind a token.
type site struct {
	http.Handler
	limiter *ginlimit.Limiter
}

func newSite(t *testing.T, l *ginlimit.Limiter, opts ...admin.Option) site {
	t.Helper()
	gin.SetMode(gin.TestMode)
	table, err := tiers.NewStore("free", map[tiers.Tier]tiers.Limits{
		"free": {PerMinute: 2, PerDay: 10},
		"pro": {PerMinute: 5, PerDay: 50, PerMonth: 900,
			TokensPerDay: 1000, SpendPerDay: 2_500_000, Concurrent: 3},
	})
	require.NoError(t, err)
	router := gin.New()
	free := ginlimit.TierResolverFunc(func(c *gin.Context) (ginlimit.Subject, error) {
		return ginlimit.Subject{UserID: c.Query("as"), Tier: "free"}, nil
	})
	decides, err := tiers.NewStore("free", map[tiers.Tier]tiers.Limits{"free": {PerMinute: 2, PerDay: 10}})
	require.NoError(t, err)
	limited := ginlimit.New(l, free, ginlimit.WithTiers(decides))
	router.GET("/chat", limited, func(c *gin.Context) { c.Status(200) })
	operators := router.Group("/admin", func(c *gin.Context) {
		if c.GetHeader("Authorization") != "Bearer operator" {
			c.AbortWithStatus(401)
		}
	})
	opts = append([]admin.Option{admin.WithTiers(table),
		admin.WithActor(func(*gin.Context) string { return "dana" })}, opts...)
	admin.Routes(operators, l, opts...)
	return site{router, l}
}

// send makes a request to a "METHOD /path" as the operator.
func (s site) send(t *testing.T, route, body string) *httptest.ResponseRecorder {
	t.Helper()
	method, target, _ := strings.Cut(route, " ")
	req := httptest.NewRequest(method, target, strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer operator")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, req)
	return w
}

// chats sends chats of a user and returns their statuses.
func (s site) chats(t *testing.T, user string, n int) (statuses []int) {
	t.Helper()
	for range n {
		statuses = append(statuses, s.send(t, "GET /chat?as="+user, "").Code)
	}
	return statuses
}

// wantInvalid checks that the answer is a 400 about a parameter; "" is the whole body or query.
func wantInvalid(t *testing.T, w *httptest.ResponseRecorder, param string) {
	t.Helper()
	require.Equal(t, 400, w.Code, w.Body)
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	var body struct {
		Error struct {
			Message, Type, Code string
			Param               *string
		}
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body))
	require.Equal(t, "invalid_request_error invalid_request", body.Error.Type+" "+body.Error.Code)
	require.NotEmpty(t, body.Error.Message)
	if param == "" {
		require.Nil(t, body.Error.Param)
		return
	}
	require.NotNil(t, body.Error.Param, w.Body)
	require.Equal(t, param, *body.Error.Param)
}

// captureLog returns where slog writes during a test.
func captureLog(t *testing.T) *bytes.Buffer {
	t.Helper()
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return &log
}

// The routes stand behind whatever authenticates, and mistakes of the program stop it at the start.
func TestRoutes(t *testing.T) {
	s := newSite(t, ginlimit.NewMemoryLimiter())
	for _, route := range []string{"GET /admin/usage?user=a", "DELETE /admin/usage?user=a",
		"GET /admin/kill-switch", "PUT /admin/kill-switch"} {
		method, target, _ := strings.Cut(route, " ")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(method, target, nil))
		require.Equal(t, 401, w.Code, route)
	}
	router, l := gin.New(), ginlimit.NewMemoryLimiter()
	for name, mistake := range map[string]func(){
		"router":        func() { admin.Routes(nil, l) },
		"typed nil":     func() { admin.Routes((*gin.Engine)(nil), l) },
		"limiter":       func() { admin.Routes(router, nil) },
		"option":        func() { admin.Routes(router, l, nil) },
		"table":         func() { admin.WithTiers(nil) },
		"source":        func() { admin.WithLiveTiers(nil) },
		"actor":         func() { admin.WithActor(nil) },
		"below seconds": func() { admin.WithMaxExpiry(999) },
	} {
		require.Panics(t, mistake, name)
	}
}
