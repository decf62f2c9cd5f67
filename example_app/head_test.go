package main

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// R17: HEAD is answered as GET is, without the body, and costs the same.
func TestHead(t *testing.T) {
	t.Parallel()
	a := start(t, nil)
	for i, row := range []struct {
		path, key string
		status    int
		costs     bool
	}{
		{"/healthz", "", 200, false},
		{"/v1/usage", proKey, 200, false},
		{"/v1/usage", "", 401, false},
		{"/v1/models", proKey, 200, true},
		{"/v1/models/any", proKey, 200, true},
		{"/v1/no/such", proKey, 404, true},
		{"/v1/chat/completions", proKey, 405, true},
		{"/no/such", "", 404, false},
	} {
		get := a.send(t, "GET", row.path, row.key, "")
		head := a.send(t, "HEAD", row.path, row.key, "")
		require.Equal(t, row.status, head.status, row.path)
		require.Equal(t, get.status, head.status, row.path)
		require.Empty(t, head.body, row.path)
		require.Equal(t, get.header.Get("Content-Type"), head.header.Get("Content-Type"), row.path)
		require.Equal(t, row.costs, head.header.Get("X-RateLimit-Remaining") != "", "%d %s", i, row.path)
	}
	got := a.send(t, "GET", "/v1/models", proKey, "")
	require.Equal(t, "51", got.header.Get("X-RateLimit-Remaining"), "four routes, each twice, and this")
}

// R17: a provider that knows no HEAD is asked with GET.
func TestHeadIsForwardedAsGet(t *testing.T) {
	t.Parallel()
	a, _ := provider(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "GET" {
			w.WriteHeader(405)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list"}`)
	})
	for _, path := range []string{"/v1/models", "/v1/models/any"} {
		got := a.send(t, "HEAD", path, ownKey, "")
		require.Equal(t, "200 ", fmt.Sprint(got.status, " ", got.body))
		wantHeaders(t, http.Header{"Content-Type": {"application/json"}, "Content-Length": {"17"}}, got.header)
	}
}
