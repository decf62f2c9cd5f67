package main

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// R43: what a provider says to this service's credentials, or of another place to go to, is between the two.
func TestProviderRefusesThisService(t *testing.T) {
	t.Parallel()
	statuses := []int{300, 301, 302, 303, 304, 305, 307, 308, 399, 401, 402, 403, 407, 511}
	for _, status := range statuses {
		a, p := provider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for _, name := range []string{"Location", "Set-Cookie", "Set-Cookie2", "WWW-Authenticate",
				"Proxy-Authenticate", "Link", "Refresh", "X-Request-Id", "Retry-After", "Etag", "Content-Encoding"} {
				w.Header().Set(name, "secret")
			}
			w.WriteHeader(status)
			if status != 304 {
				_, _ = io.WriteString(w, `{"error":{"message":"Incorrect API key provided: secret","type":"secret"}}`)
			}
		})
		for _, route := range []string{"POST /v1/chat/completions", "GET /v1/models", "GET /v1/models/any"} {
			got := a.sendRoute(t, route, ownKey)
			require.Equal(t, 502, got.status, "%d to %s", status, route)
			got.wantError(t, 502, "api_error", nil, "upstream_refused")
			require.NotContains(t, got.body+fmt.Sprint(got.header), "secret")
			require.NotContains(t, got.body, p.Listener.Addr().String())
			wantHeaders(t, http.Header{
				"Content-Type": {"application/json"}, "Cache-Control": {"no-store"},
				"Content-Length": {fmt.Sprint(len(got.body))},
			}, got.header)
		}
	}
}

// R43: what it says to the caller's request passes.
func TestProviderRefusesTheRequest(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 404, 405, 408, 409, 413, 415, 422, 429, 500, 501, 502, 503, 504} {
		a, _ := provider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"theirs":true}`)
		})
		got := a.chat(t, ownKey, "Hi", "")
		require.Equal(t, fmt.Sprint(status, ` {"theirs":true}`), fmt.Sprint(got.status, " ", got.body))
	}
}

// R43: 304 answers a caller that asked whether its copy is still good; anybody else has no copy.
func TestNotModified(t *testing.T) {
	t.Parallel()
	a, _ := provider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Etag", `"1"`)
		w.Header().Set("Location", "/secret")
		w.WriteHeader(http.StatusNotModified)
	})
	for header, want := range map[string]int{"If-None-Match": 304, "If-Modified-Since": 304, "X-Any": 502} {
		for _, method := range []string{"GET", "HEAD"} {
			req := a.request(t, method, "/v1/models", ownKey, nil)
			req.Header.Set(header, `"1"`)
			got := read(t, a.open(t, req))
			require.Equal(t, want, got.status, header)
			require.Empty(t, got.header.Get("Location"))
		}
	}
	req := a.request(t, "POST", "/v1/chat/completions", ownKey, nil)
	req.Header.Set("If-None-Match", `"1"`)
	require.Equal(t, 502, read(t, a.open(t, req)).status)
}
