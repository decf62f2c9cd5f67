package sdk_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/apptest"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// counting makes a client count its HTTP calls.
func counting(calls *atomic.Int64) option.RequestOption {
	return option.WithMiddleware(func(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		calls.Add(1)
		return next(req)
	})
}

// Anthropic's SDK meets the app at its defaults: only the base URL and the key are set. Whether the key goes
// along as X-Api-Key or as a bearer token is the same.
func TestAnthropic(t *testing.T) {
	t.Parallel()
	binary := apptest.Build(t)

	t.Run("message", func(t *testing.T) {
		t.Parallel()
		app := apptest.Start(t, binary)
		for _, key := range []option.RequestOption{
			option.WithAPIKey("sk-pro-demo"), option.WithAuthToken("sk-pro-demo"),
		} {
			client := newAnthropic(app, key)
			got, err := client.Messages.New(t.Context(), helloClaude())
			require.NoError(t, err)
			require.Equal(t, "You said: Hello there", got.Content[0].Text)
			require.EqualValues(t, "end_turn", got.StopReason)
			require.EqualValues(t, 6, got.Usage.InputTokens)
			require.EqualValues(t, 5, got.Usage.OutputTokens)
		}
		short := helloClaude()
		short.MaxTokens = 3
		client := newAnthropic(app, option.WithAPIKey("sk-pro-demo"))
		got, err := client.Messages.New(t.Context(), short)
		require.NoError(t, err)
		require.Equal(t, "You said:", got.Content[0].Text)
		require.EqualValues(t, "max_tokens", got.StopReason)
	})

	t.Run("errors", func(t *testing.T) {
		t.Parallel()
		app := apptest.Start(t, binary)
		var failure *anthropic.Error
		client := newAnthropic(app, option.WithAPIKey("sk-none"))
		_, err := client.Messages.New(t.Context(), helloClaude())
		require.ErrorAs(t, err, &failure)
		require.Equal(t, http.StatusUnauthorized, failure.StatusCode)
		require.EqualValues(t, "authentication_error", failure.Type())

		client = newAnthropic(app, option.WithAPIKey("sk-pro-demo"))
		none := helloClaude()
		none.Messages = []anthropic.MessageParam{}
		_, err = client.Messages.New(t.Context(), none)
		require.ErrorAs(t, err, &failure)
		require.Equal(t, http.StatusBadRequest, failure.StatusCode)
		require.EqualValues(t, "invalid_request_error", failure.Type())
		require.Equal(t, "The request has no messages.", failure.Message)
	})

	t.Run("rejection", func(t *testing.T) {
		t.Parallel()
		client := newAnthropic(apptest.Start(t, binary), option.WithAPIKey("sk-free-demo"),
			option.WithMaxRetries(0))
		for range 5 {
			_, err := client.Messages.New(t.Context(), helloClaude())
			require.NoError(t, err)
		}
		want := func(err error) {
			t.Helper()
			var failure *anthropic.Error
			require.ErrorAs(t, err, &failure)
			require.Equal(t, http.StatusTooManyRequests, failure.StatusCode)
			require.EqualValues(t, "rate_limit_error", failure.Type())
			require.Contains(t, failure.Message, "Rate limit exceeded: 5 requests per minute.")
			require.NotEmpty(t, failure.Response.Header.Get("Retry-After"))
		}
		_, err := client.Messages.New(t.Context(), helloClaude())
		want(err)
		stream := client.Messages.NewStreaming(t.Context(), helloClaude())
		require.False(t, stream.Next())
		want(stream.Err())
	})

	// The SDK waits as long as a minute's rejection says, and is then admitted: here, two seconds. Streams too.
	t.Run("retries after the minute", func(t *testing.T) {
		t.Parallel()
		for _, streamed := range []bool{false, true} {
			server := redistest.Start(t)
			var calls atomic.Int64
			client := newAnthropic(apptest.Start(t, binary, "REDIS_URL="+server.URL()),
				option.WithAPIKey("sk-free-demo"), counting(&calls))
			seed(t, server.Client(t), 60, 5, 58500*time.Millisecond)
			if streamed {
				stream := client.Messages.NewStreaming(t.Context(), helloClaude())
				for stream.Next() {
				}
				require.NoError(t, stream.Err())
			} else {
				_, err := client.Messages.New(t.Context(), helloClaude())
				require.NoError(t, err)
			}
			require.EqualValues(t, 2, calls.Load())
		}
	})

	// A day's rejection is not retried, however soon the day has room again. This SDK would sleep for any time.
	t.Run("does not retry after the day", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		var calls atomic.Int64
		client := newAnthropic(apptest.Start(t, binary, "REDIS_URL="+server.URL()),
			option.WithAPIKey("sk-free-demo"), counting(&calls))
		seed(t, server.Client(t), 86400, 100, 24*time.Hour-30*time.Second)
		_, err := client.Messages.New(t.Context(), helloClaude())
		var failure *anthropic.Error
		require.ErrorAs(t, err, &failure)
		require.EqualValues(t, "rate_limit_error", failure.Type())
		require.Contains(t, failure.RawJSON(), "daily_limit_exceeded")
		require.EqualValues(t, 1, calls.Load())
		require.False(t, client.Messages.NewStreaming(t.Context(), helloClaude()).Next())
		require.EqualValues(t, 2, calls.Load())
	})
}
