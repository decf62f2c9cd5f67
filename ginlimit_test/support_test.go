// Package ginlimit_test holds the tests that see the product from outside: over real sockets, a
// real Redis and the built example app.
package ginlimit_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers"
)

func init() { gin.SetMode(gin.TestMode) }

// clock is a time that a test moves. It starts at a fixed moment.
type clock struct{ ms atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ms.Store(1_732_883_722_123)
	return c
}

func (c *clock) now() time.Time          { return time.UnixMilli(c.ms.Load()) }
func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// headerUser and headerTier say who calls; headerAuth stands for an auth middleware that believes them.
const (
	headerUser = "Test-User"
	headerTier = "Test-Tier"
)

func headerAuth(c *gin.Context) {
	if user := c.GetHeader(headerUser); user != "" {
		c.Set("user_id", user)
	}
	if tier := c.GetHeader(headerTier); tier != "" {
		c.Set("tier", tiers.Tier(tier))
	}
}

var resolver = ginlimit.FromContext("user_id", "tier")

// table is a tier table of one tier, free.
func table(t *testing.T, perMinute, perDay int) *tiers.Store {
	t.Helper()
	s, err := tiers.NewStore(tiers.Free, map[tiers.Tier]tiers.Limits{tiers.Free: {PerMinute: perMinute,
		PerDay: perDay}})
	require.NoError(t, err)
	return s
}

// api is a Gin service on a real socket that counts the calls of its handler.
type api struct {
	URL     string
	Handled atomic.Int64
	t       *testing.T
}

// serve mounts the handlers in front of GET and POST /v1/chat, with an auth middleware before them.
func serve(t *testing.T, handlers ...gin.HandlerFunc) *api {
	t.Helper()
	a := &api{t: t}
	router := gin.New()
	router.Use(headerAuth)
	router.Use(handlers...)
	router.Any("/v1/chat", func(c *gin.Context) {
		a.Handled.Add(1)
		c.JSON(http.StatusOK, gin.H{"ok": true})
	})
	return a.on(router)
}

func (a *api) on(router http.Handler) *api {
	srv := httptest.NewServer(router)
	a.t.Cleanup(srv.Close)
	a.URL = srv.URL
	return a
}

// answer is a response whose body was read.
type answer struct {
	*http.Response
	body string
}

// as sends GET /v1/chat for a user; further arguments are header names and values.
func (a *api) as(user string, headers ...string) answer {
	a.t.Helper()
	return a.get("/v1/chat", append([]string{headerUser, user}, headers...)...)
}

func (a *api) get(path string, headers ...string) answer {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, a.URL+path, nil)
	require.NoError(a.t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(a.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(a.t, err)
	return answer{resp, string(body)}
}

// limits are the three limit headers, "limit remaining window", each of which must stand there once.
func (r answer) limits(t *testing.T) string {
	t.Helper()
	var values []string
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Window"} {
		require.Len(t, r.Header.Values(name), 1, "%s", name)
		values = append(values, r.Header.Get(name))
	}
	return strings.Join(values, " ")
}

// apiError is the error object of the body.
func (r answer) apiError(t *testing.T) (e struct{ Message, Type, Code string }) {
	t.Helper()
	require.Contains(t, r.Header.Get("Content-Type"), "application/json")
	var body struct{ Error any }
	require.NoError(t, json.Unmarshal([]byte(r.body), &body), r.body)
	require.IsType(t, map[string]any{}, body.Error, "SDKs decode the error only if it is an object")
	raw, err := json.Marshal(body.Error)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &e))
	return e
}
