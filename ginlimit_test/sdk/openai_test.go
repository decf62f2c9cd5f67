// Package sdk_test points the SDKs of model providers at the example app: what the plugin answers, they must
// understand.
package sdk_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/apptest"
	"github.com/gin-tiers/ratelimit/ginlimit_test/redistest"
)

// client is an OpenAI client of the app that counts its HTTP calls.
type client struct {
	openai.Client
	calls atomic.Int64
}

func newClient(app *apptest.App, key string, opts ...option.RequestOption) *client {
	c := &client{}
	count := func(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		c.calls.Add(1)
		return next(req)
	}
	c.Client = openai.NewClient(append([]option.RequestOption{
		option.WithBaseURL(app.URL + "/v1"), option.WithAPIKey(key), option.WithMiddleware(count),
	}, opts...)...)
	return c
}

func hello() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:    "any-model",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello there")},
	}
}

// seed fills a window of user_free, as if n requests had been admitted that long ago.
func seed(t *testing.T, rdb *redis.Client, windowSeconds, n int, ago time.Duration) {
	t.Helper()
	now, err := rdb.Time(t.Context()).Result()
	require.NoError(t, err)
	for range n {
		entry := redis.Z{Score: float64(now.Add(-ago).UnixMilli()), Member: uuid.NewString()}
		require.NoError(t, rdb.ZAdd(t.Context(), fmt.Sprintf("ratelimit:user_free:%d", windowSeconds), entry).Err())
	}
}

func TestOpenAI(t *testing.T) {
	t.Parallel()
	binary := apptest.Build(t)

	t.Run("completion", func(t *testing.T) {
		t.Parallel()
		c := newClient(apptest.Start(t, binary), "sk-pro-demo")
		got, err := c.Chat.Completions.New(t.Context(), hello())
		require.NoError(t, err)
		require.Equal(t, "You said: Hello there", got.Choices[0].Message.Content)
		require.Equal(t, "stop", got.Choices[0].FinishReason)
		require.Equal(t, "any-model", got.Model)
		require.EqualValues(t, 9, got.Usage.PromptTokens)
		require.EqualValues(t, 5, got.Usage.CompletionTokens)
		require.EqualValues(t, 14, got.Usage.TotalTokens)
	})

	t.Run("stream", func(t *testing.T) {
		t.Parallel()
		c := newClient(apptest.Start(t, binary), "sk-pro-demo")
		params := hello()
		params.StreamOptions.IncludeUsage = openai.Bool(true)
		stream := c.Chat.Completions.NewStreaming(t.Context(), params)
		var got openai.ChatCompletionAccumulator
		chunks := 0
		for stream.Next() {
			require.True(t, got.AddChunk(stream.Current()))
			chunks++
		}
		require.NoError(t, stream.Err())
		require.Equal(t, 7, chunks) // the role, four words, the end, the usage
		require.Equal(t, "You said: Hello there", got.Choices[0].Message.Content)
		require.Equal(t, "stop", got.Choices[0].FinishReason)
		require.EqualValues(t, 14, got.Usage.TotalTokens)
	})

	t.Run("models", func(t *testing.T) {
		t.Parallel()
		c := newClient(apptest.Start(t, binary), "sk-pro-demo")
		got, err := c.Models.List(t.Context())
		require.NoError(t, err)
		require.Len(t, got.Data, 1)
		require.Equal(t, "built-in", got.Data[0].ID)
	})

	// R21
	t.Run("model", func(t *testing.T) {
		t.Parallel()
		c := newClient(apptest.Start(t, binary), "sk-pro-demo")
		for _, id := range []string{"built-in", "any-model", "org/model", "ft:any:org::id"} {
			got, err := c.Models.Get(t.Context(), id)
			require.NoError(t, err, id)
			require.Equal(t, id, got.ID)
			require.EqualValues(t, "model", got.Object)
		}
	})

	// R21, R43: the SDK in front of a provider.
	t.Run("provider", func(t *testing.T) {
		t.Parallel()
		provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Request-Id", "req_1")
			switch r.URL.Path {
			case "/v1/models/org/model":
				fmt.Fprint(w, `{"id":"org/model","object":"model","created":1,"owned_by":"org"}`)
			case "/v1/models/none":
				w.WriteHeader(404)
				fmt.Fprint(w, `{"error":{"message":"none","type":"invalid_request_error","code":"model_not_found"}}`)
			default:
				w.WriteHeader(401)
				fmt.Fprint(w, `{"error":{"message":"Incorrect API key: sk-upstream","type":"invalid_request_error"}}`)
			}
		}))
		t.Cleanup(provider.Close)
		app := apptest.Start(t, binary, "API_KEYS=sk-own=me:pro", "UPSTREAM_BASE_URL="+provider.URL+"/v1",
			"UPSTREAM_API_KEY=sk-upstream")
		c := newClient(app, "sk-own", option.WithMaxRetries(0))
		var response *http.Response
		got, err := c.Models.Get(t.Context(), "org/model", option.WithResponseInto(&response))
		require.NoError(t, err)
		require.Equal(t, "org/model", got.ID)
		require.Equal(t, "req_1", response.Header.Get("X-Request-Id"))

		var failure *openai.Error
		_, err = c.Models.Get(t.Context(), "none")
		require.ErrorAs(t, err, &failure)
		require.Equal(t, "404 model_not_found", fmt.Sprint(failure.StatusCode, " ", failure.Code))
		_, err = c.Models.List(t.Context())
		require.ErrorAs(t, err, &failure)
		require.Equal(t, "502 api_error upstream_refused",
			fmt.Sprint(failure.StatusCode, " ", failure.Type, " ", failure.Code))
		require.NotContains(t, failure.RawJSON()+err.Error(), "sk-upstream")
	})

	t.Run("errors", func(t *testing.T) {
		t.Parallel()
		app := apptest.Start(t, binary)
		var failure *openai.Error

		_, err := newClient(app, "sk-wrong").Models.List(t.Context())
		require.ErrorAs(t, err, &failure)
		require.Equal(t, "401 authentication_error invalid_api_key",
			fmt.Sprint(failure.StatusCode, " ", failure.Type, " ", failure.Code))

		_, err = newClient(app, "sk-pro-demo").Chat.Completions.New(t.Context(),
			openai.ChatCompletionNewParams{Model: "any"})
		require.ErrorAs(t, err, &failure)
		require.Equal(t, "400 invalid_request_error messages", fmt.Sprint(failure.StatusCode, " ", failure.Type,
			" ", failure.Param))
	})

	t.Run("rejection", func(t *testing.T) {
		t.Parallel()
		c := newClient(apptest.Start(t, binary), "sk-free-demo", option.WithMaxRetries(0))
		for range 5 {
			_, err := c.Chat.Completions.New(t.Context(), hello())
			require.NoError(t, err)
		}
		_, err := c.Chat.Completions.New(t.Context(), hello())
		var rejected *openai.Error
		require.ErrorAs(t, err, &rejected)
		require.Equal(t, http.StatusTooManyRequests, rejected.StatusCode)
		require.Equal(t, "rate_limit_exceeded", rejected.Code)
		require.Equal(t, "rate_limit_error", rejected.Type)
		require.Regexp(t, `^Rate limit exceeded: 5 requests per minute\. Retry in (59|60) s\.$`, rejected.Message)
		require.Equal(t, "0", rejected.Response.Header.Get("X-RateLimit-Remaining"))
		require.Equal(t, "minute", rejected.Response.Header.Get("X-RateLimit-Window"))

		stream := c.Chat.Completions.NewStreaming(t.Context(), hello())
		require.False(t, stream.Next())
		require.ErrorAs(t, stream.Err(), &rejected)
		require.Equal(t, "rate_limit_exceeded", rejected.Code)
	})

	// The SDK waits as long as a minute's rejection says, and is then admitted: here, two seconds.
	t.Run("retries after the minute", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		c := newClient(apptest.Start(t, binary, "REDIS_URL="+server.URL()), "sk-free-demo")
		seed(t, server.Client(t), 60, 5, 58500*time.Millisecond)
		_, err := c.Chat.Completions.New(t.Context(), hello())
		require.NoError(t, err)
		require.EqualValues(t, 2, c.calls.Load())
	})

	t.Run("retries a stream after the minute", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		c := newClient(apptest.Start(t, binary, "REDIS_URL="+server.URL()), "sk-free-demo")
		seed(t, server.Client(t), 60, 5, 58500*time.Millisecond)
		stream := c.Responses.NewStreaming(t.Context(), responses.ResponseNewParams{
			Model: "any", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Hi")},
		})
		for stream.Next() {
		}
		require.NoError(t, stream.Err())
		require.EqualValues(t, 2, c.calls.Load())
	})

	// A request that is larger than a whole budget is not retried, and the SDK says why. Tokens and slots that
	// are short for a moment are.
	t.Run("more tokens than there are", func(t *testing.T) {
		t.Parallel()
		c := newClient(apptest.Start(t, binary, "TIERS_FILE="+file(t,
			"tiers: {free: {per_minute: 9, per_day: 9, tokens_per_minute: 5}}")), "sk-free-demo")
		_, err := c.Chat.Completions.New(t.Context(), hello())
		var rejected *openai.Error
		require.ErrorAs(t, err, &rejected)
		require.Equal(t, "400 invalid_request_error request_exceeds_budget",
			fmt.Sprint(rejected.StatusCode, " ", rejected.Type, " ", rejected.Code))
		require.EqualValues(t, 1, c.calls.Load())
	})

	// A day's rejection is not retried, however soon the day has room again.
	t.Run("does not retry after the day", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		c := newClient(apptest.Start(t, binary, "REDIS_URL="+server.URL()), "sk-free-demo")
		rdb := server.Client(t)
		seed(t, rdb, 86400, 100, 24*time.Hour-30*time.Second)
		_, err := c.Chat.Completions.New(t.Context(), hello())
		var rejected *openai.Error
		require.ErrorAs(t, err, &rejected)
		require.Equal(t, "daily_limit_exceeded", rejected.Code)
		require.Equal(t, "day", rejected.Response.Header.Get("X-RateLimit-Window"))
		require.EqualValues(t, 1, c.calls.Load())
		require.Zero(t, rdb.Exists(t.Context(), "ratelimit:user_free:60").Val(), "the minute is as it was")
	})
}
