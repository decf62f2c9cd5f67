package ginlimit_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/headers"
)

// A reverse proxy adds its provider's headers to those that are set. The provider's limits are not the
// caller's, so each header of the limiter is sent once, with the limiter's value. D1.
func TestAProxyAddsNoSecondLimits(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-RateLimit-Limit", "10000")
		h.Set("X-RateLimit-Remaining", "9999")
		h.Set("X-RateLimit-Limit-Requests", "10000")
		h.Set("X-RateLimit-Remaining-Requests", "9999")
		h.Set("X-RateLimit-Remaining-Images", "7")
		h.Add("Vary", "Origin")
		switch r.URL.Path {
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		case "/stream":
			h.Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, "data: 1\n\n")
		default:
			_, _ = io.WriteString(w, "hello")
		}
	}))
	t.Cleanup(provider.Close)
	target, err := url.Parse(provider.URL)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}

	router, l := gin.New(), ginlimit.NewMemoryLimiter()
	router.Use(func(c *gin.Context) { c.Header("Vary", "Accept") }, headerAuth)
	router.Use(ginlimit.New(l.Scope("a"), resolver, ginlimit.WithTiers(table(t, 50, 60))))
	router.Use(ginlimit.New(l.Scope("b"), resolver, ginlimit.WithTiers(table(t, 10, 60)),
		ginlimit.WithHeaders(headers.OpenAI)))
	router.NoRoute(func(c *gin.Context) { proxy.ServeHTTP(c.Writer, c.Request) })
	router.GET("/rewritten", func(c *gin.Context) {
		c.Request.URL.Path = "/stream"
		router.HandleContext(c)
	})
	server := httptest.NewServer(router)
	t.Cleanup(server.Close)

	for path, body := range map[string]string{"/": "hello", "/empty": "", "/stream": "data: 1\n\n",
		"/rewritten": "data: 1\n\n"} {
		r, err := http.NewRequest(http.MethodGet, server.URL+path, nil)
		require.NoError(t, err)
		r.Header.Set(headerUser, "user of "+path)
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		got, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, body, string(got))
		for name, want := range map[string][]string{
			"X-Ratelimit-Limit": {"10"}, "X-Ratelimit-Remaining": {"9"},
			"X-Ratelimit-Limit-Requests": {"10"}, "X-Ratelimit-Remaining-Requests": {"9"},
			"X-Ratelimit-Remaining-Images": {"7"}, // no limiter sets it
			"Vary":                         {"Accept", "Origin"},
		} {
			require.Equal(t, want, response.Header.Values(name), "%s %s", path, name)
		}
	}
}

// Without a decision the limiter sets nothing, and the provider's headers pass.
func TestAProxyWithoutADecision(t *testing.T) {
	captureLogs(t)
	a := serve(t, ginlimit.New(ginlimit.NewLimiter(deadRedis(t)), resolver,
		ginlimit.WithFailurePolicy(ginlimit.FailOpen())), func(c *gin.Context) {
		c.Writer.Header().Add("X-RateLimit-Limit", "10000")
	})
	require.Equal(t, []string{"10000"}, a.as("alice").Header.Values("X-RateLimit-Limit"))
}

// A handler that sets a header of the limiter itself has the last word, and may take the connection over.
func TestHandlersStayFree(t *testing.T) {
	router := gin.New()
	router.Use(headerAuth, ginlimit.New(ginlimit.NewMemoryLimiter(), resolver))
	router.GET("/set", func(c *gin.Context) {
		c.Header("X-RateLimit-Limit", "many")
		c.String(http.StatusOK, "hello")
	})
	router.GET("/hijack", func(c *gin.Context) {
		conn, _, err := http.NewResponseController(c.Writer).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 299 Mine\r\nContent-Length: 0\r\n\r\n")
			_ = conn.Close()
		}
	})
	server := httptest.NewServer(router)
	t.Cleanup(server.Close)
	get := func(path string) *http.Response {
		r, err := http.NewRequest(http.MethodGet, server.URL+path, nil)
		require.NoError(t, err)
		r.Header.Set(headerUser, "alice")
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response
	}
	require.Equal(t, []string{"many"}, get("/set").Header.Values("X-RateLimit-Limit"))
	require.Equal(t, "299 Mine", get("/hijack").Status)
}
