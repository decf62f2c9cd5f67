package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// With a provider every route below /v1 is forwarded, but for those of this service.
func TestEverythingIsForwarded(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	a, _ := provider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, _ := io.ReadAll(r.Body)
		seen <- fmt.Sprint(r.Method, " ", r.RequestURI, " ", string(body))
	})
	for i, row := range []struct{ route, want string }{
		{"POST /v1/chat/completions", "POST /base/v1/chat/completions"},
		{"POST /v1/completions", "POST /base/v1/completions"},
		{"POST /v1/embeddings", "POST /base/v1/embeddings"},
		{"POST /v1/responses", "POST /base/v1/responses"},
		{"POST /v1/messages", "POST /base/v1/messages"},
		{"POST /v1/messages/count_tokens", "POST /base/v1/messages/count_tokens"},
		{"POST /v1/images/generations?a=b", "POST /base/v1/images/generations?a=b"},
		{"GET /v1/responses/resp_1", "GET /base/v1/responses/resp_1"},
		{"GET /v1/files", "GET /base/v1/files"},
		{"HEAD /v1/files", "GET /base/v1/files"},
		{"DELETE /v1/models/ft:any:org::1", "DELETE /base/v1/models/ft:any:org::1"},
		{"DELETE /v1/files/file-1", "DELETE /base/v1/files/file-1"},
		{"PUT /v1/files", "PUT /base/v1/files"},
		{"PATCH /v1/files", "PATCH /base/v1/files"},
		{"GET /v1/usage/x", "GET /base/v1/usage/x"},
	} {
		got := a.sendRoute(t, row.route, ownKey)
		require.Equal(t, 200, got.status, row.route)
		require.Equal(t, row.want+" ", <-seen)
		require.Equal(t, fmt.Sprint(59-i), got.header.Get("X-RateLimit-Remaining"), row.route)
		require.Empty(t, got.header.Get("Allow"))
	}
	got := a.send(t, "POST", "/v1/no/such", ownKey, "any body")
	require.Equal(t, 200, got.status)
	require.Equal(t, "POST /base/v1/no/such any body", <-seen)
	for route, want := range map[string]int{
		"GET /v1": 404, "GET /v1/": 404, "POST /v1/chat/completions/": 404, "POST /v1//chat/completions": 404,
		"POST /v1/../admin": 404, "GET /v1/files/..": 404, "GET /v1/files/%2e%2e/x": 404, "GET /v1/a%3Fb": 404,
		"GET /v1/a%00b": 404, "POST /v1/usage": 405, "TRACE /v1/files": 405, "OPTIONS /v1/files": 405,
		"PROPFIND /v1/models": 405, "POST /healthz": 405, "GET /files": 404,
	} {
		require.Equal(t, want, a.sendRoute(t, route, ownKey).status, route)
	}
	require.Equal(t, 401, a.sendRoute(t, "POST /v1/files", "").status)
	require.Empty(t, seen)
}

// Whatever is forwarded by POST may ask a model, so it is estimated, under whatever name.
func TestNoWayAroundTokens(t *testing.T) {
	t.Parallel()
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w,
			`{"model":"any","usage":{"prompt_tokens":40,"completion_tokens":60,"total_tokens":100}}`)
	}))
	t.Cleanup(p.Close)
	a := start(t, env{
		"API_KEYS": ownKey + "=me:free", "UPSTREAM_BASE_URL": p.URL, "TIERS_FILE": tierFile(t, allBudgets),
		"PRICES_FILE": tierFile(t, "any: {input: 1, output: 1}"),
	})
	for i, path := range []string{"/v1/chat/completions", "/v1/chat/completions.", "/v1/engines/any/completions",
		"/v1/messages/beta", "/v1%2Fresponses"} {
		got := a.send(t, "POST", path, ownKey, chatBody("Hello there", ""))
		require.Equal(t, 200, got.status)
		require.NotEmpty(t, got.header.Get("X-RateLimit-Remaining-Tokens"), path)
		a.usedSoon(t, ownKey, map[string]string{"tokens-minute": fmt.Sprint(100 * (i + 1)), "concurrent": "0"})
	}
	got := a.send(t, "PUT", "/v1/chat/completions", ownKey, chatBody("Hello there", ""))
	require.Equal(t, 200, got.status)
	a.usedSoon(t, ownKey, map[string]string{"tokens-minute": "600", "concurrent": "0"})
	got = a.sendRoute(t, "GET /v1/files", ownKey)
	require.Equal(t, 200, got.status)
	require.Empty(t, got.header.Get("X-RateLimit-Remaining-Tokens"))
}

// The provider gets the owner's key where the caller's SDK has put its own.
func TestKeyOfTheOwner(t *testing.T) {
	t.Parallel()
	seen := make(chan http.Header, 1)
	a, _ := provider(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header })
	for _, row := range []struct{ bearer, own, wantBearer, wantOwn string }{
		{"Bearer " + ownKey, "", "Bearer sk-upstream", ""},
		{"", ownKey, "", "sk-upstream"},
		{"Bearer " + ownKey, "secret", "Bearer sk-upstream", ""},
	} {
		req := a.request(t, "POST", "/v1/messages", "", nil)
		req.Header.Set("Authorization", row.bearer)
		req.Header.Set("X-Api-Key", row.own)
		require.Equal(t, 200, read(t, a.open(t, req)).status)
		got := <-seen
		require.Equal(t, row.wantBearer, got.Get("Authorization"))
		require.Equal(t, row.wantOwn, got.Get("X-Api-Key"))
	}
}
