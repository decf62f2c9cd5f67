package ginlimit_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/tiers"
)

// anonymous is an engine that admits so many requests of an address.
func anonymous(t *testing.T, perMinute int) *gin.Engine {
	t.Helper()
	router := gin.New()
	router.Use(ginlimit.New(ginlimit.NewMemoryLimiter(), ginlimit.ByClientIP(tiers.Free),
		ginlimit.WithTiers(table(t, perMinute, 100))))
	router.GET("/v1/chat", func(c *gin.Context) { c.Status(http.StatusOK) })
	return router
}

// Cases R3, R5: a proxy may name clients with ports, and by IPv6 addresses that carry their IPv4 ones.
func TestClientsBehindAProxy(t *testing.T) {
	router := anonymous(t, 1)
	require.NoError(t, router.SetTrustedProxies([]string{"127.0.0.1"}))
	api := (&api{t: t}).on(router)
	for i, tt := range []struct {
		forwarded string
		want      int
	}{
		{"203.0.113.7:61598", http.StatusOK},
		{"203.0.113.8:4711", http.StatusOK},
		{"203.0.113.7:1", http.StatusTooManyRequests},
		{"203.0.113.7", http.StatusTooManyRequests},
		{"198.51.100.9, 203.0.113.8:2", http.StatusTooManyRequests},
		{"[::ffff:203.0.113.8]:3", http.StatusTooManyRequests},
		{"[2001:db8:7::1]:443", http.StatusOK},
		{"[2001:db8:7::2]", http.StatusTooManyRequests},
		{"[2001:db8:8::1]", http.StatusOK},
		{"64:ff9b::808:808", http.StatusOK},
		{"64:ff9b::909:909", http.StatusOK},
		{"8.8.8.8:5", http.StatusTooManyRequests},
		{"2002:909:909::1", http.StatusTooManyRequests},
	} {
		got := api.get("/v1/chat", "X-Forwarded-For", tt.forwarded)
		require.Equal(t, tt.want, got.StatusCode, "%d: %s", i, tt.forwarded)
	}
}

// Case R4: on a Unix socket a client gets no new budget by forwarding addresses itself.
func TestClientsBehindAProxyOnAUnixSocket(t *testing.T) {
	logs := captureLogs(t)
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "api.sock"))
	require.NoError(t, err)
	srv := &http.Server{Handler: anonymous(t, 5)}
	go func() { _ = srv.Serve(listener) }()
	t.Cleanup(func() { _ = srv.Close() })
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", listener.Addr().String())
	}}
	t.Cleanup(transport.CloseIdleConnections)
	get := func(forwarded string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api/v1/chat", nil)
		require.NoError(t, err)
		r.Header.Set("X-Forwarded-For", forwarded)
		resp, err := transport.RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	admitted := 0
	for i := range 20 {
		if get(fmt.Sprintf("198.51.100.%d, 203.0.113.7", i)) == http.StatusOK {
			admitted++
		}
	}
	require.Equal(t, 5, admitted)
	require.Equal(t, http.StatusOK, get("198.51.100.1, 203.0.113.8"), "another client")
	require.Equal(t, 1, strings.Count(logs.String(), "level=WARN"))
	require.Contains(t, logs.String(), "SetTrustedProxies")
}
