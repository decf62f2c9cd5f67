package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const adminToken = "operators-only-0123"

// The admin routes are there with ADMIN_TOKEN, or with the demo keys, and not otherwise.
func TestWhoIsAnOperator(t *testing.T) {
	t.Parallel()
	const route = "GET /admin/usage?user=me"
	own := env{"API_KEYS": ownKey + "=me:pro"}
	start(t, own).sendRoute(t, route, ownKey).wantError(t, 404, "invalid_request_error", nil, "unknown_url")
	require.Equal(t, 200, start(t, nil).sendRoute(t, route, "").status, "on loopback, with the demo keys")

	for _, settings := range []env{
		{"ADMIN_TOKEN": adminToken}, {"ADMIN_TOKEN": adminToken, "API_KEYS": own["API_KEYS"]},
	} {
		a := start(t, settings)
		for header, status := range map[string]int{
			"Bearer " + adminToken: 200, "bearer  " + adminToken: 200,
			"": 401, "Bearer": 401, "Bearer ": 401, "Bearer " + adminToken + "x": 401,
			"Bearer " + adminToken[1:]: 401, "Basic " + adminToken: 401, adminToken: 401,
			"Bearer " + ownKey: 401, "Bearer " + freeKey: 401,
		} {
			req := a.request(t, "GET", "/admin/usage?user=me", "", nil)
			req.Header.Set("Authorization", header)
			got := read(t, a.open(t, req))
			require.Equal(t, status, got.status, header)
			if status == 401 {
				got.wantError(t, 401, "authentication_error", nil, "unauthenticated")
				require.Equal(t, "Bearer", got.header.Get("WWW-Authenticate"))
			}
		}
		require.Equal(t, 401, a.sendRoute(t, "GET /v1/usage", adminToken).status, "no API key")
	}
}

// With the demo keys a browser's page from elsewhere is no operator.
func TestOperatorOnThisMachine(t *testing.T) {
	t.Parallel()
	a := start(t, nil)
	for _, row := range []struct {
		host, header, value string
		status              int
	}{
		{"", "", "", 200},
		{"localhost:8080", "", "", 200},
		{"localhost", "", "", 200},
		{"127.0.0.1", "", "", 200},
		{"[::1]:80", "", "", 200},
		{"[::1]", "", "", 200},
		{"rebound.example:8080", "", "", 403},
		{"rebound.example", "", "", 403},
		{"203.0.113.7", "", "", 403},
		{"", "Sec-Fetch-Site", "cross-site", 403},
		{"", "Sec-Fetch-Site", "same-origin", 200},
		{"", "Origin", "https://elsewhere.example", 403},
	} {
		req := a.request(t, "PUT", "/admin/kill-switch", "", strings.NewReader(`{"on": false}`))
		req.Host = row.host
		if row.header != "" {
			req.Header.Set(row.header, row.value)
		}
		require.Equal(t, row.status, read(t, a.open(t, req)).status, row)
	}
}

// What an operator does is seen by callers at once.
func TestAdmin(t *testing.T) {
	t.Parallel()
	a := start(t, env{"ADMIN_TOKEN": adminToken})
	spend := func(want ...int) {
		t.Helper()
		for _, status := range want {
			require.Equal(t, status, a.chat(t, freeKey, "Hi", "").status)
		}
	}
	spend(200, 200, 200, 200, 200, 429)
	require.Contains(t, a.sendRoute(t, "GET /admin/usage?user=user_free&tier=free", adminToken).body,
		`"window":"minute","limit":5,"used":5,"remaining":0`)
	require.Equal(t, 200, a.sendRoute(t, "DELETE /admin/usage?user=user_free", adminToken).status)
	spend(200, 200, 200, 200, 200, 429)
	on := a.send(t, "PUT", "/admin/kill-switch", adminToken, `{"on":true,"reason":"a test","expires_in":60}`)
	require.Equal(t, 200, on.status, on.body)
	require.JSONEq(t, `{"status":"ready","decided_by":"kill_switch"}`, a.sendRoute(t, "GET /readyz", "").body)
	spend(200, 200)
	require.Equal(t, 200, a.send(t, "PUT", "/admin/kill-switch", adminToken, `{"on":false}`).status)
	spend(429)
}
