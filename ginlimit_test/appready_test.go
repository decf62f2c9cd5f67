package ginlimit_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/apptest"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// GET /readyz follows Redis: ready, not ready while it is down, ready again. The log is JSON where that is
// asked for, from the first line to the last.
func TestAppReadiness(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	app := apptest.Start(t, apptest.Build(t), "REDIS_URL="+server.URL(), "LOG_FORMAT=json")
	ready := func() string {
		got := get(t, app, "", "/readyz")
		return got.Status + " " + strings.TrimSpace(got.body)
	}
	const up = `200 OK {"decided_by":"redis","status":"ready"}`
	require.Eventually(t, func() bool { return ready() == up }, 20*time.Second, 20*time.Millisecond)
	server.Stop()
	require.Eventually(t, func() bool {
		return ready() == `503 Service Unavailable {"decided_by":null,"status":"not_ready"}`
	}, 20*time.Second, 20*time.Millisecond)
	require.Equal(t, 200, get(t, app, "", "/healthz").StatusCode)
	server.Restart()
	require.Eventually(t, func() bool { return ready() == up }, 20*time.Second, 20*time.Millisecond)
	require.Equal(t, 200, call(t, app, "sk-free-demo", "Hello there").StatusCode)

	keys, err := server.Client(t).Keys(t.Context(), "*readyz*").Result()
	require.NoError(t, err)
	require.Empty(t, keys, "asking writes nothing")
	app.Terminate()
	code, stderr := app.Wait()
	require.Zero(t, code)
	for line := range strings.Lines(stderr) {
		var attrs map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &attrs), line)
		require.Contains(t, attrs, "level")
	}
	require.Contains(t, stderr, `"decision":"admitted","wait":0,"window":"minute"`)
	require.Contains(t, stderr, `"version":"`)
	require.NotContains(t, stderr, "sk-")
}

// A mistake in an argument or in the log's format is one line, as with any other setting.
func TestAppArguments(t *testing.T) {
	t.Parallel()
	code, stderr := apptest.Run(t, apptest.Build(t), "LOG_FORMAT=xml")
	require.Equal(t, 1, code)
	require.Equal(t, "example_app: LOG_FORMAT \"xml\": want text or json\n", stderr)
}
