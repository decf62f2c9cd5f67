package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAuthentication(t *testing.T) {
	t.Parallel()
	a := start(t, nil)
	for header, want := range map[string]string{
		"Bearer sk-free-demo":     "",
		"bearer sk-free-demo":     "",
		"BEARER   sk-free-demo":   "",
		"":                        "unauthenticated",
		"Bearer":                  "unauthenticated",
		"Bearer  ":                "unauthenticated",
		"sk-free-demo":            "unauthenticated",
		"Basic sk-free-demo":      "unauthenticated",
		"Bearer sk-free-dem":      "invalid_api_key",
		"Bearer sk-free-demo x":   "invalid_api_key",
		"Bearer SK-FREE-DEMO":     "invalid_api_key",
		"Bearer user_free":        "invalid_api_key",
		"Bearer sk-free-demo\xff": "invalid_api_key",
	} {
		req := a.request(t, "GET", "/v1/usage", "", nil)
		req.Header.Set("Authorization", header)
		got := read(t, a.open(t, req))
		if want == "" {
			require.Equal(t, 200, got.status, header)
			continue
		}
		got.wantError(t, 401, "authentication_error", nil, want)
		require.Contains(t, got.header.Get("WWW-Authenticate"), "Bearer")
		require.Equal(t, "no-store", got.header.Get("Cache-Control"))
	}
}

// Anthropic's SDKs put the key into a header of its own. A bearer token goes first.
func TestKeyInAHeaderOfItsOwn(t *testing.T) {
	t.Parallel()
	a := start(t, nil)
	for _, row := range []struct{ bearer, own, want string }{
		{"", freeKey, ""},
		{"", " " + freeKey, ""},
		{"", "sk-none", "invalid_api_key"},
		{"Bearer " + freeKey, "sk-none", ""},
		{"Bearer sk-none", freeKey, "invalid_api_key"},
		{"Basic x", freeKey, "unauthenticated"},
	} {
		req := a.request(t, "GET", "/v1/usage", "", nil)
		req.Header.Set("X-Api-Key", row.own)
		if row.bearer != "" {
			req.Header.Set("Authorization", row.bearer)
		}
		got := read(t, a.open(t, req))
		if row.want == "" {
			require.Equal(t, 200, got.status, row)
		} else {
			got.wantError(t, 401, "authentication_error", nil, row.want)
		}
	}
}

// All of /v1 is behind the API key, also what is not there; the rest of the server needs none.
func TestWhatNeedsAKey(t *testing.T) {
	t.Parallel()
	a := start(t, nil)
	for _, route := range []string{
		"POST /v1/chat/completions", "GET /v1/models", "GET /v1/usage", "GET /v1",
		"GET /v1/", "GET /v1/no/such", "PUT /v1/models", "POST /v1/usage",
	} {
		a.sendRoute(t, route, "").wantError(t, 401, "authentication_error", nil, "unauthenticated")
	}
	a.sendRoute(t, "GET /no/such", "").wantError(t, 404, "invalid_request_error", nil, "unknown_url")
	a.sendRoute(t, "GET /v1x", "").wantError(t, 404, "invalid_request_error", nil, "unknown_url")
	a.sendRoute(t, "POST /healthz", "").wantError(t, 405, "invalid_request_error", nil, "method_not_allowed")
	require.JSONEq(t, `{"status":"ok"}`, a.sendRoute(t, "GET /healthz", "").body)
}
