package sdk_test

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/gin-gonic/gin"
	openaisdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/openai"
	"github.com/gin-tiers/ratelimit/tiers"
)

// newGateway is a reverse proxy behind a Meter. What is settled goes to the channel, and what was estimated
// before to the other one.
func newGateway(t *testing.T) (address string, settled, estimated chan ginlimit.Usage) {
	t.Helper()
	gin.SetMode(gin.TestMode)
	target, err := url.Parse(newProvider(t).URL)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
	}
	prices := openai.WithPrices(map[string]openai.Price{
		"gpt-4o":         {Input: 2_000_000, CachedInput: 1_000_000, Output: 10_000_000},
		"text-embedding": {Input: 1_000_000},
		"claude":         {Input: 2_000_000, CachedInput: 1_000_000, Output: 10_000_000},
	})
	estimator := openai.Estimator(prices, openai.WithDefaultOutput(500))
	settled, estimated = make(chan ginlimit.Usage, 10), make(chan ginlimit.Usage, 10)
	router := gin.New()
	caller := ginlimit.TierResolverFunc(func(*gin.Context) (ginlimit.Subject, error) {
		return ginlimit.Subject{UserID: "alice"}, nil
	})
	unlimited := tiers.Limits{PerMinute: tiers.Unlimited, PerDay: tiers.Unlimited}
	table, err := tiers.NewStore(tiers.Free, map[tiers.Tier]tiers.Limits{tiers.Free: unlimited})
	require.NoError(t, err)
	limit := ginlimit.New(ginlimit.NewMemoryLimiter(), caller, ginlimit.WithTiers(table))
	router.Use(limit, func(c *gin.Context) {
		u, err := estimator.Estimate(c)
		if err != nil {
			_ = c.AbortWithError(400, err)
			return
		}
		estimated <- u
		c.Next()
		if u, said, _ := ginlimit.AdmissionFrom(c).Recorded(); said {
			settled <- u
		}
	}, openai.Meter(prices))
	router.POST("/v1/*path", func(c *gin.Context) { proxy.ServeHTTP(c.Writer, c.Request) })
	server := httptest.NewServer(router)
	t.Cleanup(server.Close)
	return server.URL, settled, estimated
}

// next is what was settled: the client may be told before.
func next(t *testing.T, words chan ginlimit.Usage) ginlimit.Usage {
	t.Helper()
	select {
	case u := <-words:
		return u
	case <-time.After(30 * time.Second):
		require.Fail(t, "nothing was said")
		return ginlimit.Usage{}
	}
}

// The sum of 12 tokens of input, 5 of them cached, and 34 of output.
var whole = ginlimit.Usage{Tokens: 46, Spend: 7*2 + 5*1 + 34*10}

// Q16, L3: what OpenAI's SDK is told was used is what is settled, as JSON and as a stream, and it sees the
// usage in a stream only if it has asked for it.
func TestMeterWithOpenAI(t *testing.T) {
	t.Parallel()
	address, settled, estimated := newGateway(t)
	client := openaisdk.NewClient(option.WithBaseURL(address+"/v1"), option.WithAPIKey("sk-x"),
		option.WithMaxRetries(0))
	chat := openaisdk.ChatCompletionNewParams{
		Model:     "gpt-4o",
		Messages:  []openaisdk.ChatCompletionMessageParamUnion{openaisdk.UserMessage("Hello, world!")},
		MaxTokens: openaisdk.Int(100),
	}
	got, err := client.Chat.Completions.New(t.Context(), chat)
	require.NoError(t, err)
	require.Equal(t, "Hello, world!", got.Choices[0].Message.Content)
	require.EqualValues(t, whole.Tokens, got.Usage.TotalTokens)
	require.Equal(t, whole, next(t, settled))
	require.Equal(t, ginlimit.Usage{Tokens: 108, Spend: 8*2 + 100*10}, next(t, estimated))

	for _, asked := range []bool{false, true} {
		if asked {
			chat.StreamOptions.IncludeUsage = openaisdk.Bool(true)
		}
		stream := client.Chat.Completions.NewStreaming(t.Context(), chat)
		all, chunks := openaisdk.ChatCompletionAccumulator{}, 0
		for stream.Next() {
			require.True(t, all.AddChunk(stream.Current()))
			chunks++
		}
		require.NoError(t, stream.Err())
		require.Equal(t, "Hello, world!", all.Choices[0].Message.Content)
		require.Equal(t, whole, next(t, settled))
		if asked {
			require.EqualValues(t, whole.Tokens, all.Usage.TotalTokens)
			require.Equal(t, 4, chunks)
		} else {
			require.Zero(t, all.Usage.TotalTokens)
			require.Equal(t, 3, chunks)
		}
		require.Equal(t, 108, next(t, estimated).Tokens)
	}

	ask := responses.ResponseNewParams{
		Model: "gpt-4o",
		Input: responses.ResponseNewParamsInputUnion{OfString: openaisdk.String("Hello, world!")},
	}
	response, err := client.Responses.New(t.Context(), ask)
	require.NoError(t, err)
	require.EqualValues(t, whole.Tokens, response.Usage.TotalTokens)
	require.Equal(t, whole, next(t, settled))
	require.Equal(t, 504, next(t, estimated).Tokens)

	events := client.Responses.NewStreaming(t.Context(), ask)
	last := ""
	for events.Next() {
		last = events.Current().Type
	}
	require.NoError(t, events.Err())
	require.Equal(t, "response.completed", last)
	require.Equal(t, whole, next(t, settled))
	require.Equal(t, 504, next(t, estimated).Tokens)

	vectors, err := client.Embeddings.New(t.Context(), openaisdk.EmbeddingNewParams{
		Model: "text-embedding-3-small",
		Input: openaisdk.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"Hello, world!"}},
	})
	require.NoError(t, err)
	require.EqualValues(t, 12, vectors.Usage.TotalTokens)
	require.Equal(t, ginlimit.Usage{Tokens: 12, Spend: 12}, next(t, settled))
	require.Equal(t, ginlimit.Usage{Tokens: 4, Spend: 4}, next(t, estimated))
}

// Q22: the same with Anthropic's SDK, whose requests stay as they are. Input beside what was cached is part
// of the sum.
func TestMeterWithAnthropic(t *testing.T) {
	t.Parallel()
	address, settled, estimated := newGateway(t)
	client := anthropic.NewClient(anthropicoption.WithoutEnvironmentDefaults(),
		anthropicoption.WithBaseURL(address), anthropicoption.WithAuthToken("sk-x"),
		anthropicoption.WithMaxRetries(0))
	ask := anthropic.MessageNewParams{
		Model:     "claude-sonnet-4-5",
		MaxTokens: 100,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Hello, world!"))},
	}
	sum := func(u anthropic.Usage) int64 {
		return u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens + u.OutputTokens
	}
	message, err := client.Messages.New(t.Context(), ask)
	require.NoError(t, err)
	require.EqualValues(t, whole.Tokens, sum(message.Usage))
	require.Equal(t, whole, next(t, settled))
	require.Equal(t, ginlimit.Usage{Tokens: 108, Spend: 8*2 + 100*10}, next(t, estimated))

	stream := client.Messages.NewStreaming(t.Context(), ask)
	var all anthropic.Message
	for stream.Next() {
		require.NoError(t, all.Accumulate(stream.Current()))
	}
	require.NoError(t, stream.Err())
	require.Equal(t, "Hello, world!", all.Content[0].Text)
	require.EqualValues(t, whole.Tokens, sum(all.Usage))
	require.Equal(t, whole, next(t, settled))
	require.Equal(t, 108, next(t, estimated).Tokens)
}
