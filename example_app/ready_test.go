package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// GET /readyz says what decides. With a Redis that does not answer, that is the failure policy.
func TestReadiness(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		env    env
		status int
		body   string
		chat   int // of limited requests meanwhile
	}{
		"memory": {nil, 200, `{"status":"ready","decided_by":"memory"}`, 200},
		"closed": {env{"REDIS_URL": "127.0.0.1:1"}, 503, `{"status":"not_ready","decided_by":null}`, 503},
		"named": {env{"REDIS_URL": "127.0.0.1:1", "FAILURE_POLICY": "closed"},
			503, `{"status":"not_ready","decided_by":null}`, 503},
		"open": {env{"REDIS_URL": "127.0.0.1:1", "FAILURE_POLICY": "open"},
			200, `{"status":"ready","decided_by":"fail_open"}`, 200},
		"local": {env{"REDIS_URL": "127.0.0.1:1", "FAILURE_POLICY": "local"},
			200, `{"status":"ready","decided_by":"fail_local"}`, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := start(t, row.env)
			for range 3 {
				got := a.sendRoute(t, "GET /readyz", "")
				require.Equal(t, row.status, got.status)
				require.JSONEq(t, row.body, got.body)
				require.Equal(t, "no-store", got.header.Get("Cache-Control"))
				require.Equal(t, row.status, a.sendRoute(t, "HEAD /readyz", "").status)
			}
			require.Equal(t, row.chat, a.chat(t, freeKey, "Hi", "").status)
			require.Equal(t, 200, a.sendRoute(t, "GET /healthz", "").status)
		})
	}
}
