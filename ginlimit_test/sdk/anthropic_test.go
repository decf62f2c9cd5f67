package sdk_test

import (
	"net/http"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/apptest"
)

// The app has no POST /v1/messages. But the plugin's rejection, which is what counts here, is understood by
// this SDK too.
func TestAnthropic(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Build(t))
	client := anthropic.NewClient(option.WithoutEnvironmentDefaults(), option.WithBaseURL(app.URL),
		option.WithAuthToken("sk-free-demo"), option.WithMaxRetries(0))
	var failure *anthropic.Error
	for _, want := range []int{404, 404, 404, 404, 404, 429} {
		_, err := client.Messages.New(t.Context(), anthropic.MessageNewParams{
			Model:     "any",
			MaxTokens: 10,
			Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Hello there"))},
		})
		require.ErrorAs(t, err, &failure)
		require.Equal(t, want, failure.StatusCode)
	}
	require.EqualValues(t, "rate_limit_error", failure.Type())
	require.Contains(t, failure.Message, "Rate limit exceeded: 5 requests per minute.")
	require.NotEmpty(t, failure.Response.Header.Get("Retry-After"))
	require.Equal(t, http.StatusTooManyRequests, failure.StatusCode)
}
