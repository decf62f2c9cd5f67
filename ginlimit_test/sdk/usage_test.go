package sdk_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit_test/apptest"
	"github.com/gin-tiers/ratelimit/tiers"
)

// file writes a file for the app to read.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Every budget there is, and prices of 2, 1 and 10 for a token, in millionths.
const (
	everyBudget = `tiers: {free: {per_minute: 500, per_day: 1000, tokens_per_minute: 100000,
		tokens_per_day: 200000, spend_per_day: 2.50, spend_per_month: 25, concurrent: 3}}`
	onePrice = "{input: 2, cached_input: 1, output: 10}"
	prices   = "gpt-4o: " + onePrice + "\ntext-embedding: " + onePrice + "\nclaude: " + onePrice + "\n"
)

// told is what SDKs were told was used.
type told struct{ calls, input, cached, output int64 }

func (u *told) add(input, cached, output int64) {
	u.calls++
	u.input += input
	u.cached += cached
	u.output += output
}

// want checks that the app says the same, once all is settled.
func (u *told) want(t *testing.T, app *apptest.App) {
	t.Helper()
	tokens := fmt.Sprint(u.input + u.output)
	spend := tiers.Money(2*(u.input-u.cached) + u.cached + 10*u.output).String()
	calls := fmt.Sprint(u.calls)
	want := map[string]string{
		"minute": calls, "day": calls, "tokens-minute": tokens, "tokens-day": tokens, "spend-day": spend,
		"spend-month": spend, "concurrent": "0",
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Equal(c, want, used(t, app, "sk-free"))
	}, 10*time.Second, 20*time.Millisecond)
}

// used is what GET /v1/usage says was used, by budget, as it is written.
func used(t *testing.T, app *apptest.App, key string) map[string]string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, app.URL+"/v1/usage", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	var report struct {
		Budgets []struct {
			Window string
			Used   json.Number
		}
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&report))
	all := map[string]string{}
	for _, b := range report.Budgets {
		all[b.Window] = b.Used.String()
	}
	return all
}

func newAnthropic(app *apptest.App, key anthropicoption.RequestOption,
	opts ...anthropicoption.RequestOption) anthropic.Client {
	return anthropic.NewClient(append([]anthropicoption.RequestOption{
		anthropicoption.WithoutEnvironmentDefaults(), anthropicoption.WithBaseURL(app.URL), key,
	}, opts...)...)
}

func helloClaude() anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model:     "claude-sonnet-4-5",
		MaxTokens: 100,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Hello there"))},
	}
}

// What GET /v1/usage says was used is the sum of what both SDKs were told, as JSON and as streams, by the
// built-in model and by a provider.
func TestUsageIsWhatSDKsAreTold(t *testing.T) {
	t.Parallel()
	binary := apptest.Build(t)
	for name, row := range map[string]struct {
		env  []string
		said string
	}{
		"built-in": {nil, "You said: Hello there"},
		"provider": {[]string{"UPSTREAM_BASE_URL=" + newProvider(t).URL + "/v1"}, "Hello, world!"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := apptest.Start(t, binary, append(row.env, "API_KEYS=sk-free=ip/203.0.113.7:free",
				"TIERS_FILE="+file(t, everyBudget), "PRICES_FILE="+file(t, prices))...)
			sum := &told{}
			askOpenAI(t, app, row.said, sum)
			sum.want(t, app)
			askAnthropic(t, app, row.said, sum)
			sum.want(t, app)
		})
	}
}

func askOpenAI(t *testing.T, app *apptest.App, said string, sum *told) {
	c := newClient(app, "sk-free")
	chat := hello()
	chat.Model = "gpt-4o"
	got, err := c.Chat.Completions.New(t.Context(), chat)
	require.NoError(t, err)
	require.Equal(t, said, got.Choices[0].Message.Content)
	ofChat := func(u openai.CompletionUsage) {
		require.Equal(t, u.TotalTokens, u.PromptTokens+u.CompletionTokens)
		sum.add(u.PromptTokens, u.PromptTokensDetails.CachedTokens, u.CompletionTokens)
	}
	ofChat(got.Usage)

	for _, asked := range []bool{true, false} {
		if chat.StreamOptions.IncludeUsage = openai.Bool(true); !asked {
			chat.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
		}
		stream := c.Chat.Completions.NewStreaming(t.Context(), chat)
		var all openai.ChatCompletionAccumulator
		last := openai.CompletionUsage{}
		for stream.Next() {
			require.True(t, all.AddChunk(stream.Current()))
			last = stream.Current().Usage
		}
		require.NoError(t, stream.Err())
		require.Equal(t, said, all.Choices[0].Message.Content)
		if asked {
			ofChat(last)
		} else { // it is not told, and charged the same
			require.Zero(t, last.TotalTokens)
			ofChat(got.Usage)
		}
	}

	ask := responses.ResponseNewParams{
		Model: "gpt-4o",
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Hello there")},
	}
	ofResponse := func(u responses.ResponseUsage) {
		require.Equal(t, u.TotalTokens, u.InputTokens+u.OutputTokens)
		sum.add(u.InputTokens, u.InputTokensDetails.CachedTokens, u.OutputTokens)
	}
	response, err := c.Responses.New(t.Context(), ask)
	require.NoError(t, err)
	require.Equal(t, said, response.OutputText())
	require.EqualValues(t, "completed", response.Status)
	ofResponse(response.Usage)

	events := c.Responses.NewStreaming(t.Context(), ask)
	text := ""
	var last responses.ResponseStreamEventUnion
	for events.Next() {
		last = events.Current()
		if last.Type == "response.output_text.delta" {
			text += last.Delta
		}
	}
	require.NoError(t, events.Err())
	require.Equal(t, "response.completed", last.Type)
	require.Equal(t, said, text)
	require.Equal(t, said, last.Response.OutputText())
	ofResponse(last.Response.Usage)

	vectors, err := c.Embeddings.New(t.Context(), openai.EmbeddingNewParams{
		Model: "text-embedding-3-small",
		Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"Hello", "there"}},
	})
	require.NoError(t, err)
	require.NotEmpty(t, vectors.Data[0].Embedding)
	sum.add(vectors.Usage.PromptTokens, 0, 0)
}

func askAnthropic(t *testing.T, app *apptest.App, said string, sum *told) {
	client := newAnthropic(app, anthropicoption.WithAPIKey("sk-free"))
	of := func(u anthropic.Usage) {
		sum.add(u.InputTokens+u.CacheReadInputTokens+u.CacheCreationInputTokens, u.CacheReadInputTokens,
			u.OutputTokens)
	}
	message, err := client.Messages.New(t.Context(), helloClaude())
	require.NoError(t, err)
	require.Equal(t, said, message.Content[0].Text)
	require.NotZero(t, message.Usage.OutputTokens)
	of(message.Usage)

	stream := client.Messages.NewStreaming(t.Context(), helloClaude())
	var all anthropic.Message
	for stream.Next() {
		require.NoError(t, all.Accumulate(stream.Current()))
	}
	require.NoError(t, stream.Err())
	require.Equal(t, said, all.Content[0].Text)
	require.EqualValues(t, "end_turn", all.StopReason)
	of(all.Usage)
}
