package openai_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/openai"
	"github.com/gin-tiers/ratelimit/tiers"
)

func init() { gin.SetMode(gin.TestMode) }

// contextOf is a gin.Context of a POST request with that body.
func contextOf(path, body string) *gin.Context {
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	c.Request = httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	return c
}

// estimate estimates a body, and requires that handlers can read the same bytes afterwards.
func estimate(t testing.TB, e ginlimit.Estimator, path, body string) ginlimit.Usage {
	t.Helper()
	c := contextOf(path, body)
	u, err := e.Estimate(c)
	require.NoError(t, err)
	again, err := io.ReadAll(c.Request.Body)
	require.NoError(t, err)
	require.Equal(t, body, string(again))
	require.EqualValues(t, len(body), c.Request.ContentLength)
	require.NoError(t, c.Request.Body.Close())
	return u
}

const million = 1_000_000

// prices make input and output tokens visible apart in a spend: in units of one token, 1 and 1,000.
var prices = openai.WithPrices(map[string]openai.Price{"": {Input: million, Output: 1000 * million}})

// Q16: every format of every endpoint is estimated.
func TestEstimateOfEachFormat(t *testing.T) {
	t.Parallel()
	e := openai.Estimator(prices, openai.WithDefaultOutput(500))
	const hello = `"Hello, world!"`                        // 4 tokens
	const user = `{"role":"user","content":` + hello + `}` // 8 with what the format adds
	image := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` +
		strings.Repeat("iVBO", 10_000) + `"}}`
	for _, row := range []struct {
		name, path, body string
		prompt, output   int
	}{
		{"chat", "/v1/chat/completions", `{"model":"m","messages":[` + user + `],"max_tokens":100}`,
			8, 100},
		{"chat, newer limit", "/", `{"messages":[` + user + `],"max_completion_tokens":70}`, 8, 70},
		{"chat, both limits: the larger", "/",
			`{"messages":[` + user + `],"max_tokens":1,"max_completion_tokens":70}`, 8, 70},
		{"chat, no limit", "/", `{"messages":[` + user + `]}`, 8, 500},
		{"chat, null limit", "/", `{"messages":[` + user + `],"max_tokens":null}`, 8, 500},
		{"chat, choices", "/", `{"messages":[` + user + `],"max_tokens":10,"n":3}`, 8, 30},
		{"chat, parts", "/",
			`{"messages":[{"role":"user","content":[{"type":"text","text":` + hello + `},` +
				image + `]}],"max_tokens":1}`,
			1608, 1},
		{"chat, tool call", "/", `{"messages":[{"role":"assistant","content":null,` +
			`"tool_calls":[{"id":"call_1234567890",` +
			`"type":"function","function":{"name":"f","arguments":` + hello + `}}]}],"max_tokens":1}`, 9, 1},
		{"chat, several messages", "/",
			`{"messages":[{"role":"system","content":` + hello + `},` + user + `],"max_tokens":1}`,
			16, 1},
		{"chat, tools", "/", `{"messages":[],"tools":[` + hello + `],"max_tokens":1}`, 6, 1},
		{"chat, functions", "/", `{"messages":[],"functions":[` + hello + `],"max_tokens":1}`, 6, 1},
		{"responses, text", "/v1/responses",
			`{"model":"gpt-5","input":` + hello + `,"max_output_tokens":40}`, 4, 40},
		{"responses, bare", "/anything", `{"model":"gpt-5","input":` + hello + `}`, 4, 500},
		{"responses, instructions", "/", `{"input":` + hello + `,"instructions":` + hello + `}`, 8, 500},
		{"responses, items", "/",
			`{"input":[{"role":"user","content":[{"type":"input_text","text":` + hello + `},` +
				`{"type":"input_image","image_url":"https://example.com/a.png"}]}],"max_output_tokens":2}`, 1608, 2},
		{"responses, file", "/", `{"input":[{"role":"user","content":[{"type":"input_file","file_data":"` +
			strings.Repeat("A", 640_000) + `"}]}],"max_output_tokens":2}`, 10_004, 2},
		{"responses, stored prompt", "/",
			`{"model":"m","prompt":{"id":"pmpt_1","variables":{"x":` + hello + `}}}`, 4, 500},
		{"completions", "/v1/completions", `{"prompt":` + hello + `,"max_tokens":7}`, 4, 7},
		{"completions, several", "/", `{"prompt":[` + hello + `,` + hello + `],"max_tokens":7,"n":2}`, 8, 28},
		{"completions, best_of", "/", `{"prompt":` + hello + `,"max_tokens":7,"n":1,"best_of":4}`, 4, 28},
		{"completions, tokens", "/", `{"prompt":[1,2,3],"max_tokens":7}`, 3, 7},
		{"embeddings, text", "/v1/embeddings", `{"model":"text-embedding-3-small","input":` + hello + `}`, 4, 0},
		{"embeddings, by field", "/", `{"model":"m","input":` + hello + `,"encoding_format":"float"}`, 4, 0},
		{"embeddings, by path", "/x/embeddings", `{"model":"m","input":` + hello + `}`, 4, 0},
		{"embeddings, several", "/", `{"model":"m","input":[` + hello + `,` + hello + `]}`, 8, 0},
		{"embeddings, tokens", "/", `{"model":"m","input":[11,12,13,14,15]}`, 5, 0},
		{"embeddings, lists of tokens", "/", `{"model":"m","input":[[11,12],[13,14,15]]}`, 5, 0},
		{"Anthropic", "/v1/messages", `{"model":"claude","system":` + hello + `,"max_tokens":9,` +
			`"messages":[` + user + `]}`, 12, 9},
		{"Anthropic, blocks", "/",
			`{"system":[{"type":"text","text":` + hello + `,"cache_control":{"type":"ephemeral"}}],` +
				`"max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":` + hello + `},` +
				`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` +
				strings.Repeat("A", 50_000) + `"}}]}]}`, 1612, 9},
		{"Anthropic, text document", "/", `{"max_tokens":9,"messages":[{"role":"user","content":[{` +
			`"type":"document",` +
			`"source":{"type":"text","data":` + hello + `}}]}]}`, 8, 9},
		{"Anthropic, tool use", "/", `{"max_tokens":9,"messages":[{"role":"assistant","content":[{` +
			`"type":"tool_use",` +
			`"id":"toolu_1234567","name":"f","input":` + hello + `}]}]}`, 10, 9},
		{"no format", "/", `{"model":"m","question":` + hello + `}`, 0, 500},
		{"an array", "/", `[1,2]`, 0, 500},
		{"broken", "/", `{"messages":[{"role":"user"`, 0, 500},
		{"not JSON", "/", `hello`, 0, 500},
		{"empty", "/", ``, 0, 500},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			u := estimate(t, e, row.path, row.body)
			require.Equal(t, row.prompt+row.output, u.Tokens)
			require.EqualValues(t, row.prompt+1000*row.output, u.Spend)
		})
	}
}

// Numbers that are no count of tokens are clamped: none makes an estimate that is negative, zero or absurd.
func TestEstimateOfHostileNumbers(t *testing.T) {
	t.Parallel()
	e := openai.Estimator(openai.WithDefaultOutput(500), openai.WithMaxOutput(10_000))
	const prompt = 6 // of a message "hi"
	for numbers, output := range map[string]int{
		`"max_tokens":-1`:                               500,
		`"max_tokens":-1e308`:                           500,
		`"max_tokens":0`:                                500,
		`"max_tokens":-0.0`:                             500,
		`"max_tokens":0.5`:                              1,
		`"max_tokens":10.1`:                             11,
		`"max_tokens":1e3`:                              1000,
		`"max_tokens":1e18`:                             10_000,
		`"max_tokens":1e999`:                            10_000,
		`"max_tokens":18446744073709551615`:             10_000,
		`"max_tokens":"100"`:                            500,
		`"max_tokens":[100]`:                            500,
		`"max_tokens":true`:                             500,
		`"max_tokens":10,"n":-5`:                        10,
		`"max_tokens":10,"n":0`:                         10,
		`"max_tokens":10,"n":1.5`:                       20,
		`"max_tokens":10,"n":1e999`:                     1280,
		`"max_tokens":10,"n":9223372036854775807`:       1280,
		`"max_tokens":1e18,"n":1e18`:                    10_000,
		`"max_tokens":20,"max_tokens":10`:               20,
		`"max_tokens":20,"MAX_TOKENS":1,"Max_Tokens":1`: 20,
		`"n":3`: 1500,
	} {
		body := `{"messages":[{"role":"user","content":"hi"}],` + numbers + `}`
		require.Equal(t, prompt-1+output, estimate(t, e, "/", body).Tokens, numbers)
	}
}

// A default above the cap is the cap.
func TestEstimateIsCapped(t *testing.T) {
	t.Parallel()
	require.Equal(t, 100, estimate(t, openai.Estimator(openai.WithMaxOutput(100)), "/", "?").Tokens)
	require.Equal(t, 131_072+5, estimate(t, openai.Estimator(), "/",
		`{"messages":[{"role":"user","content":"hi"}],"max_tokens":1e9}`).Tokens)
}

// A limiter that knows the budgets bounds the output by them, never the prompt.
func TestEstimateWithin(t *testing.T) {
	t.Parallel()
	e, ok := openai.Estimator(prices).(interface {
		EstimateWithin(c *gin.Context, most ginlimit.Usage) (ginlimit.Usage, error)
	})
	require.True(t, ok)
	for _, row := range []struct {
		most   ginlimit.Usage
		output int
	}{ // of a prompt of 5 and a limit of 50
		{ginlimit.Usage{}, 50},
		{ginlimit.Usage{Tokens: 1000, Spend: spend(5, 1000)}, 50},
		{ginlimit.Usage{Tokens: 55}, 50},
		{ginlimit.Usage{Tokens: 54}, 49},
		{ginlimit.Usage{Tokens: 6}, 1},
		{ginlimit.Usage{Tokens: 5}, 0},
		{ginlimit.Usage{Tokens: 1}, 0},
		{ginlimit.Usage{Spend: spend(5, 20)}, 20},
		{ginlimit.Usage{Spend: spend(4, 20)}, 19},
		{ginlimit.Usage{Tokens: 12, Spend: spend(5, 20)}, 7},
	} {
		u, err := e.EstimateWithin(contextOf("/", askChat), row.most)
		require.NoError(t, err)
		require.Equal(t, ginlimit.Usage{Tokens: 5 + row.output, Spend: spend(5, row.output)}, u, "%+v", row.most)
	}
	undeclared := `{"messages":[{"role":"user","content":"hi"}]}` // a prompt of 5
	for most, want := range map[int]int{0: 5 + 1024, 9000: 5 + 1024, 300: 100, 100: 34, 1: 5} {
		u, err := e.EstimateWithin(contextOf("/", undeclared), ginlimit.Usage{Tokens: most})
		require.NoError(t, err)
		require.Equal(t, want, u.Tokens, most)
	}
	u, err := e.EstimateWithin(contextOf("/embeddings", askVectors), ginlimit.Usage{Tokens: 1})
	require.NoError(t, err)
	require.Equal(t, 2, u.Tokens)
}

// A prompt costs a bounded time, whatever it consists of, and a long one is projected from a sample.
func TestEstimateOfLongPrompts(t *testing.T) {
	t.Parallel()
	e := openai.Estimator()
	short := func(text string) int { // tokens of 32 KiB
		return estimate(t, e, "/embeddings", `{"input":"`+text[:32<<10]+`"}`).Tokens
	}
	for _, pattern := range []string{"a", " ", ` \n`, "The quick brown fox. ", "漢字", "🙂", "4711 "} {
		text := strings.Repeat(pattern, (4<<20)/len(pattern)+1)[:4<<20/len(pattern)*len(pattern)]
		whole := strings.Repeat(pattern, (32<<10)/len(pattern)+1)
		began := time.Now()
		got := estimate(t, e, "/embeddings", `{"input":"`+text+`"}`).Tokens
		require.Less(t, time.Since(began), 10*time.Second, pattern) // 0.1 s; all of it would take 4 s and more
		if pattern == "漢字" || pattern == "🙂" || pattern == ` \n` {
			continue // 32 KiB may end within a character
		}
		require.InEpsilon(t, short(whole)*128, got, 0.05, pattern)
	}
	// Light text in front does not hide dense text behind.
	dense := `{"input":["` + strings.Repeat("a", 1<<20) + `","` + strings.Repeat("漢!", 1<<20) + `"]}`
	require.Greater(t, estimate(t, e, "/embeddings", dense).Tokens, 1<<20)
	// Many small texts are not all looked at either.
	many := `{"input":["` + strings.Repeat(`a","`, 1<<20) + `"]}`
	require.InEpsilon(t, 1<<20, estimate(t, e, "/embeddings", many).Tokens, 0.01)
}

// Deep nesting costs neither stack nor time.
func TestEstimateOfDeepNesting(t *testing.T) {
	t.Parallel()
	e := openai.Estimator(openai.WithDefaultOutput(1))
	nested := `{"messages":[` + strings.Repeat(`{"content":`, 9000) + `"x"` + strings.Repeat(`}`, 9000) + `]}`
	require.Greater(t, estimate(t, e, "/", nested).Tokens, 9000) // below some depth all is text
	for _, depth := range []int{10, 100, 9_000, 1_000_000} {
		body := `{"messages":` + strings.Repeat(`[`, depth) + strings.Repeat(`]`, depth) + `}`
		require.Positive(t, estimate(t, e, "/", body).Tokens)
		body = `{"messages":[` + strings.Repeat(`{"content":`, depth) + `"x"` + strings.Repeat(`}`, depth) + `]}`
		require.Positive(t, estimate(t, e, "/", body).Tokens)
	}
}

// A body above the bound gets the default, and is still there as a whole, with or without a declared length.
func TestEstimateOfLargeBody(t *testing.T) {
	t.Parallel()
	e := openai.Estimator(openai.WithMaxBody(1000), openai.WithDefaultOutput(77))
	for size, want := range map[int]int{1000: 5 + 20, 1001: 77, 100_000: 77} {
		body := `{"messages":[{"role":"user","content":"hi"}],"max_tokens":20}`
		body += strings.Repeat(" ", size-len(body))
		require.Equal(t, want, estimate(t, e, "/", body).Tokens)

		c := contextOf("/", "")
		c.Request.Body, c.Request.ContentLength = io.NopCloser(strings.NewReader(body)), -1
		u, err := e.Estimate(c)
		require.NoError(t, err)
		require.Equal(t, want, u.Tokens)
		again, err := io.ReadAll(c.Request.Body)
		require.NoError(t, err)
		require.Equal(t, body, string(again))
		require.EqualValues(t, -1, c.Request.ContentLength)
	}
}

// Only a body that cannot be read is an error, and handlers meet the same one.
func TestEstimateOfUnreadableBody(t *testing.T) {
	t.Parallel()
	c := contextOf("/", strings.Repeat("x", 100))
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, 10)
	_, err := openai.Estimator().Estimate(c)
	tooLarge, ok := errors.AsType[*http.MaxBytesError](err)
	require.True(t, ok)
	require.EqualValues(t, 10, tooLarge.Limit)
	read, err := io.ReadAll(c.Request.Body)
	require.Len(t, read, 10)
	require.ErrorAs(t, err, &tooLarge)

	c = contextOf("/", "")
	c.Request.Body = io.NopCloser(io.MultiReader(strings.NewReader("{"), brokenReader{}))
	_, err = openai.Estimator().Estimate(c)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorContains(t, err, "openai: read the request body")
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// An upload is not read into memory, and what has no body and asks for nothing takes nothing.
func TestEstimateWithoutJSON(t *testing.T) {
	t.Parallel()
	e := openai.Estimator(openai.WithDefaultOutput(77))
	for _, contentType := range []string{"multipart/form-data; boundary=x", "audio/wav",
		"application/octet-stream"} {
		c := contextOf("/v1/audio/transcriptions", askChat)
		c.Request.Header.Set("Content-Type", contentType)
		before := c.Request.Body
		u, err := e.Estimate(c)
		require.NoError(t, err)
		require.Equal(t, 77, u.Tokens)
		require.Equal(t, before, c.Request.Body)
	}

	for method, want := range map[string]int{http.MethodGet: 0, http.MethodHead: 0, http.MethodPost: 77} {
		c, _ := gin.CreateTestContext(httptest.NewRecorder())
		c.Request, _ = http.NewRequest(method, "/v1/models", nil)
		u, err := e.Estimate(c)
		require.NoError(t, err)
		require.Equal(t, ginlimit.Usage{Tokens: want}, u)
	}
}

// Two limiters in a row, or one that an internal rewrite runs again, meet the same body.
func TestEstimateTwice(t *testing.T) {
	t.Parallel()
	e := openai.Estimator()
	body := `{"messages":[{"role":"user","content":"hi"}],"max_tokens":20}`
	c := contextOf("/", body)
	for range 2 {
		u, err := e.Estimate(c)
		require.NoError(t, err)
		require.Equal(t, 25, u.Tokens)
	}
	again, err := io.ReadAll(c.Request.Body)
	require.NoError(t, err)
	require.Equal(t, body, string(again))
	u, err := e.Estimate(c) // the body is gone, what it said is not
	require.NoError(t, err)
	require.Equal(t, 25, u.Tokens)
}

func TestSpendOfEstimate(t *testing.T) {
	t.Parallel()
	e := openai.Estimator(openai.WithPrices(map[string]openai.Price{
		"gpt-4o":      {Input: 2_500_000, Output: 10_000_000},
		"gpt-4o-mini": {Input: 150_000, Output: 600_000},
		"claude-opus": {Input: 15_000_000, Output: 75_000_000},
	}))
	for model, want := range map[string]tiers.Money{
		"gpt-4o":                 1013, // 5 × 2.5 + 100 × 10 = 1012.5
		"gpt-4o-2024-08-06":      1013,
		"gpt-4o-mini-2024-07-18": 61, // 0.75 + 60
		"claude-opus-4":          7575,
		"nobody-knows":           7575,
		"":                       7575,
	} {
		body := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hi"}],"max_tokens":100}`, model)
		require.Equal(t, want, estimate(t, e, "/", body).Spend, model)
	}
	require.Zero(t, estimate(t, openai.Estimator(), "/", `{"messages":[]}`).Spend)
}

func TestOptionsThatPanic(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]func(){
		"openai: WithDefaultOutput: tokens: 0 is less than 1": func() { openai.WithDefaultOutput(0) },
		"openai: WithMaxOutput: tokens: -5 is less than 1":    func() { openai.WithMaxOutput(-5) },
		"openai: WithMaxBody: bytes: 0 is less than 1":        func() { openai.WithMaxBody(0) },
		"openai: an option is nil":                            func() { openai.Estimator(nil) },
		`openai: WithPrices: a price of model "m" is negative`: func() {
			openai.WithPrices(map[string]openai.Price{"m": {Output: -1}})
		},
	} {
		require.PanicsWithValue(t, want, f)
	}
}
