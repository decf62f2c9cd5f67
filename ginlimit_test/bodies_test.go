package ginlimit_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// refused returns what a mount with this body answers: 429 by minute and by day, in a scope, 401 and 503.
func refused(t *testing.T, body ginlimit.Body) map[string]answer {
	t.Helper()
	all := map[string]answer{}
	for name, limits := range map[string][2]int{"minute": {1, 9}, "day": {1, 1}} {
		c := newClock()
		l := ginlimit.NewMemoryLimiter(ginlimit.WithClock(c.now))
		api := serve(t, ginlimit.New(l.Scope("images"), resolver, ginlimit.WithBody(body),
			ginlimit.WithTiers(table(t, limits[0], limits[1]))))
		require.Equal(t, http.StatusOK, api.as("alice").StatusCode)
		if name == "day" {
			c.advance(time.Hour)
		}
		all[name] = api.as("alice")
		require.EqualValues(t, 1, api.Handled.Load(), "D14")
	}
	fails := map[string]error{"nobody": ginlimit.ErrNoSubject, "lookup": errors.New("secret")}
	for name, resolve := range fails {
		r := ginlimit.TierResolverFunc(func(*gin.Context) (ginlimit.Subject, error) {
			return ginlimit.Subject{}, resolve
		})
		all[name] = serve(t, ginlimit.New(ginlimit.NewMemoryLimiter(), r, ginlimit.WithBody(body))).as("alice")
	}
	return all
}

func TestBodies(t *testing.T) {
	captureLogs(t)
	for name, tt := range map[string]struct {
		body        ginlimit.Body
		contentType string
		want        map[string]string
	}{
		"default": {ginlimit.DefaultBody, "application/json; charset=utf-8", map[string]string{
			"minute": `{"error":{"message":"Rate limit exceeded: 1 request per minute. Retry in 60 s.",
				"type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"},"detail":"Rate limit exceeded",
				"scope":"images","window":"minute","limit":1,"remaining":0,"retry_after":60}`,
			"day": `{"error":{"message":"Rate limit exceeded: 1 request per day. Retry in 82800 s.",
				"type":"rate_limit_error","param":null,"code":"daily_limit_exceeded"},"detail":"Rate limit exceeded",
				"scope":"images","window":"day","limit":1,"remaining":0,"retry_after":82800}`,
			"nobody": `{"error":{"message":"Nobody is signed in.","type":"authentication_error","param":null,
				"code":"unauthenticated"}}`,
			"lookup": `{"error":{"message":"The caller's tier could not be looked up. Try again shortly.",
				"type":"api_error","param":null,"code":"tier_lookup_failed"}}`,
		}},
		"problem": {ginlimit.ProblemBody, "application/problem+json", map[string]string{
			"minute": `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
				"title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,
				"detail":"Rate limit exceeded: 1 request per minute. Retry in 60 s.",
				"violated-policies":["images:minute"],"code":"rate_limit_exceeded","retry_after":60}`,
			"day": `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",
				"title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,
				"detail":"Rate limit exceeded: 1 request per day. Retry in 82800 s.",
				"violated-policies":["images:day"],"code":"daily_limit_exceeded","retry_after":82800}`,
			"nobody": `{"type":"about:blank","title":"Unauthorized","status":401,"detail":"Nobody is signed in.",
				"code":"unauthenticated"}`,
			"lookup": `{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
				"title":"Request cannot be satisfied due to temporary server capacity constraints","status":503,
				"detail":"The caller's tier could not be looked up. Try again shortly.","code":"tier_lookup_failed"}`,
		}},
		"Anthropic": {ginlimit.AnthropicBody, "application/json; charset=utf-8", map[string]string{
			"minute": `{"type":"error","error":{"type":"rate_limit_error",
				"message":"Rate limit exceeded: 1 request per minute. Retry in 60 s."}}`,
			"day": `{"type":"error","error":{"type":"rate_limit_error",
				"message":"Rate limit exceeded: 1 request per day. Retry in 82800 s."}}`,
			"nobody": `{"type":"error","error":{"type":"authentication_error","message":"Nobody is signed in."}}`,
			"lookup": `{"type":"error","error":{"type":"api_error",
				"message":"The caller's tier could not be looked up. Try again shortly."}}`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := refused(t, tt.body)
			require.Len(t, got, len(tt.want))
			for kind, want := range tt.want {
				require.JSONEq(t, want, got[kind].body, kind)
				require.Equal(t, tt.contentType, got[kind].Header.Get("Content-Type"), kind)
				require.Equal(t, "no-store", got[kind].Header.Get("Cache-Control"), "%s D13", kind)
			}
		})
	}
}

// A 503 for a Redis that does not answer has the body's form, too.
func TestBodyOfAnOutage(t *testing.T) {
	captureLogs(t)
	srv := redistest.Start(t)
	l := ginlimit.NewLimiter(srv.Client(t))
	srv.Kill()
	r := serve(t, ginlimit.New(l, resolver, ginlimit.WithBody(ginlimit.ProblemBody))).as("alice")
	require.Equal(t, http.StatusServiceUnavailable, r.StatusCode)
	require.JSONEq(t, `{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
		"title":"Request cannot be satisfied due to temporary server capacity constraints","status":503,
		"detail":"The rate limiter is unavailable. Try again shortly.","code":"rate_limiter_unavailable",
		"retry_after":1}`, r.body)
	require.Equal(t, "1", r.Header.Get("Retry-After"))
}

// A function of the user: whatever it forgets, a rejection is a 429. D11.
func TestBodyOfTheUser(t *testing.T) {
	const def, asJSON = `"code":"rate_limit_exceeded"`, "application/json"
	for name, tt := range map[string]struct {
		body        ginlimit.Body
		status      int
		contains    string
		contentType string
	}{
		"writes nothing": {func(*gin.Context, ginlimit.Refusal) {}, 429, def, asJSON},
		"only a status":  {func(c *gin.Context, _ ginlimit.Refusal) { c.Status(200) }, 429, def, asJSON},
		"no content":     {func(c *gin.Context, _ ginlimit.Refusal) { c.Status(204) }, 429, def, asJSON},
		"aborts": {func(c *gin.Context, r ginlimit.Refusal) { c.AbortWithStatus(r.Status) }, 429, def,
			asJSON},
		"text, no status": {func(c *gin.Context, r ginlimit.Refusal) {
			_, _ = fmt.Fprintf(c.Writer, "%d %s %s %d", r.Status, r.Code, r.Decision.Name(), r.RetryAfter)
		}, 429, "429 rate_limit_exceeded minute 60", "text/plain"},
		"says 200": {func(c *gin.Context, r ginlimit.Refusal) { c.JSON(200, gin.H{"sorry": r.Message}) }, 429,
			`{"sorry":"Rate limit exceeded: 1 request per minute. Retry in 60 s."}`, "application/json"},
		"a page": {func(c *gin.Context, _ ginlimit.Refusal) { c.Redirect(303, "/pricing") }, 303, "", ""},
		"another status": {func(c *gin.Context, _ ginlimit.Refusal) { c.String(420, "calm") }, 420, "calm",
			"text/plain"},
		"that status only": {func(c *gin.Context, _ ginlimit.Refusal) { c.AbortWithStatus(403) }, 403, "", ""},
		"goes on":          {func(c *gin.Context, _ ginlimit.Refusal) { c.Next() }, 429, def, asJSON},
	} {
		t.Run(name, func(t *testing.T) {
			l := ginlimit.NewMemoryLimiter(ginlimit.WithClock(newClock().now))
			api := serve(t, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 1, 9)), ginlimit.WithBody(tt.body)))
			http.DefaultClient.CheckRedirect = func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			}
			t.Cleanup(func() { http.DefaultClient.CheckRedirect = nil })
			require.Equal(t, http.StatusOK, api.as("alice").StatusCode)
			r := api.as("alice")
			require.Equal(t, tt.status, r.StatusCode)
			require.Contains(t, r.body, tt.contains)
			require.Contains(t, r.Header.Get("Content-Type"), tt.contentType)
			require.Equal(t, "1 0 minute", r.limits(t))
			require.Equal(t, "60", r.Header.Get("Retry-After"))
			require.EqualValues(t, 1, api.Handled.Load(), "the handler is not reached")
		})
	}
}

// A body that panics is the application's to recover; the request has taken nothing.
func TestBodyThatPanics(t *testing.T) {
	l := ginlimit.NewMemoryLimiter()
	router := gin.New()
	router.Use(gin.CustomRecoveryWithWriter(nil, func(c *gin.Context, err any) {
		c.String(http.StatusTeapot, "%v", err)
	}), headerAuth, ginlimit.New(l, resolver, ginlimit.WithTiers(table(t, 1, 9)),
		ginlimit.WithBody(func(*gin.Context, ginlimit.Refusal) { panic("mine") })))
	router.GET("/", func(*gin.Context) {})
	call := func() *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set(headerUser, "alice")
		router.ServeHTTP(w, r)
		return w
	}
	require.Equal(t, http.StatusOK, call().Code)
	w := call()
	require.Equal(t, http.StatusTeapot, w.Code)
	require.Equal(t, "mine", w.Body.String())
	d, err := l.Peek(t.Context(), "alice", 9, 24*time.Hour)
	require.NoError(t, err)
	require.Equal(t, 8, d.Remaining)
}
