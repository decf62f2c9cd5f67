package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lines is where slog writes during a test.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// requests are the lines that tell of a request.
func (l *lines) requests(t *testing.T) (all []map[string]any) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		var attrs map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &attrs))
		if attrs["msg"] == "request" {
			all = append(all, attrs)
		}
	}
	return all
}

// Not parallel: the log is the process's.
func TestRequestLog(t *testing.T) {
	log := &lines{}
	logger, err := newLogger("json", log)
	require.NoError(t, err)
	before := slog.Default()
	slog.SetDefault(logger)
	t.Cleanup(func() { slog.SetDefault(before) })
	ours := start(t, nil)
	theirs, _ := provider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", "req_theirs")
		_, _ = io.WriteString(w, `{}`)
	})

	const chat, secret = "/v1/chat/completions", "sk-secret"
	for i, row := range []struct {
		app                *app
		method, path, key  string
		route, tier, words string
		status, wait       float64
	}{
		{ours, "POST", chat + "?api_key=" + secret, freeKey, chat, "free", "admitted minute", 200, 0},
		{ours, "GET", "/v1/models/" + secret, freeKey, "/v1/models/*id", "free", "admitted minute", 200, 0},
		{ours, "GET", "/v1/no/" + secret, freeKey, "none", "free", "admitted minute", 404, 0},
		{ours, "GET", "/v1/models", freeKey, "/v1/models", "free", "admitted minute", 200, 0},
		{ours, "GET", "/v1/models", freeKey, "/v1/models", "free", "admitted minute", 200, 0},
		{ours, "POST", chat, freeKey, chat, "free", "rejected minute", 429, 60},
		{ours, "GET", "/v1/usage", freeKey, "/v1/usage", "", "", 200, 0},
		{ours, "POST", chat, secret, chat, "", "", 401, 0},
		{ours, "GET", "/healthz", "", "", "", "", 200, 0}, // no line
		{ours, "GET", "/readyz", "", "", "", "", 200, 0},  // no line
		{theirs, "POST", chat, ownKey, chat, "pro", "admitted minute", 200, 0},
	} {
		n := len(log.requests(t))
		got := row.app.send(t, row.method, row.path, row.key, chatBody(secret, ""))
		require.Equal(t, int(row.status), got.status, got.body)
		if row.route == "" {
			require.Len(t, log.requests(t), n)
			continue
		}
		// The line is written when the answer is over, which the client may see a little earlier.
		require.Eventually(t, func() bool { return len(log.requests(t)) == n+1 }, 10*time.Second, time.Millisecond)
		line := log.requests(t)[n]
		require.Equal(t, got.header.Get("X-Request-Id"), line["id"])
		require.NotEmpty(t, line["id"])
		require.Equal(t, []any{row.method, row.route, row.status},
			[]any{line["method"], line["route"], line["status"]})
		require.Contains(t, line, "ms")
		if row.tier == "" {
			require.NotContains(t, line, "decision")
			continue
		}
		require.Equal(t, []any{row.tier, row.words}, []any{line["tier"], line["decision"].(string) + " " +
			line["window"].(string)}, i)
		require.InDelta(t, row.wait, line["wait"], 5)
	}
	all := log.requests(t)
	require.Equal(t, "req_theirs", all[len(all)-1]["id"])
	require.NotContains(t, log.buf.String(), "sk-")
	require.NotContains(t, log.buf.String(), "user_free")
}

func TestLogFormat(t *testing.T) {
	t.Parallel()
	for format, named := range map[string]bool{"": false, "text": false, "json": true} {
		logger, err := newLogger(format, io.Discard)
		require.NoError(t, err)
		require.Equal(t, named, logger != nil)
	}
	_, err := newLogger("xml", io.Discard)
	require.ErrorContains(t, err, `LOG_FORMAT "xml": want text or json`)
}
