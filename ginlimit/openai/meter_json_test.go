package openai_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
	"github.com/gin-tiers/ratelimit/ginlimit/openai"
	"github.com/gin-tiers/ratelimit/tiers"
)

func spend(input, output int) tiers.Money { return tiers.Money(input + 1000*output) }

const (
	askChat      = `{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":50}` // 5 tokens
	askResponses = `{"model":"m","input":"hi","max_output_tokens":50}`                         // 1
	askVectors   = `{"model":"m","input":["hi","hi"]}`                                         // 2
)

// Q16: the usage of every format, as JSON.
func TestMeterReadsJSON(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		answer        string
		input, output int
	}{
		"chat": {`{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-4o","choices":[{"index":0,"message":` +
			`{"role":"assistant","content":"Hi \"usage\": {\"prompt_tokens\": 99}"}}],"usage":{"prompt_tokens":12,` +
			`"completion_tokens":34,"total_tokens":46,"prompt_tokens_details":{"cached_tokens":5,"audio_tokens":0}}}`,
			12, 34},
		"usage first":  {`{"usage":{"completion_tokens":34,"prompt_tokens":12},"choices":[]}`, 12, 34},
		"white space":  {"{ \"usage\" : {\n\"prompt_tokens\" : 12 ,\r\n \"completion_tokens\":\t34 } }\n", 12, 34},
		"completions":  {`{"choices":[{"text":"Hi"}],"usage":{"prompt_tokens":12,"completion_tokens":34}}`, 12, 34},
		"reasoning":    {`{"usage":{"prompt_tokens":12,"completion_tokens":4,"total_tokens":46}}`, 12, 34},
		"total only":   {`{"usage":{"total_tokens":46}}`, 46, 0},
		"no prompt":    {`{"usage":{"completion_tokens":34,"total_tokens":46}}`, 12, 34},
		"small total":  {`{"usage":{"prompt_tokens":12,"completion_tokens":34,"total_tokens":1}}`, 12, 34},
		"embeddings":   {`{"data":[{"embedding":[0.1]}],"usage":{"prompt_tokens":8,"total_tokens":8}}`, 8, 0},
		"responses":    {`{"output":[],"usage":{"input_tokens":12,"output_tokens":34}}`, 12, 34},
		"images":       {`{"data":[],"usage":{"input_tokens":12,"output_tokens":34,"total_tokens":46}}`, 12, 34},
		"Anthropic":    {`{"type":"message","content":[],"usage":{"input_tokens":12,"output_tokens":34}}`, 12, 34},
		"floats":       {`{"usage":{"prompt_tokens":12.0,"completion_tokens":33.2}}`, 12, 34},
		"null details": {`{"usage":{"input_tokens":12,"output_tokens":34,"input_tokens_details":null}}`, 12, 34},
		"Anthropic's cache": {`{"usage":{"input_tokens":2,"cache_read_input_tokens":7,` +
			`"cache_creation_input_tokens":3,"output_tokens":34}}`, 12, 34},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := through(t, askChat, "application/json", []string{row.answer})
			require.Equal(t, settled(row.input, row.output), got.word)
			require.Equal(t, row.answer, got.Body.String())
			require.Equal(t, askChat, got.forwarded)
			for _, contentType := range []string{"", "application/json; charset=utf-8", "text/plain"} {
				got := through(t, askResponses, contentType, strings.SplitAfter(row.answer, `"`))
				require.Equal(t, settled(row.input, row.output), got.word, contentType)
			}
			got = through(t, "?", "application/json", []string{row.answer})
			require.Equal(t, settled(row.input, row.output), got.word)
		})
	}
}

// Cached input has its own price, whichever way the provider counts it.
func TestMeterPricesCachedInput(t *testing.T) {
	t.Parallel()
	withCache := openai.WithPrices(map[string]openai.Price{
		"gpt-4o":      {Input: 2_500_000, CachedInput: 1_250_000, Output: 10_000_000},
		"gpt-4o-mini": {Input: 150_000, CachedInput: 75_000, Output: 600_000},
		"claude":      {Input: 3_000_000, CachedInput: 300_000, Output: 15_000_000},
		"uncached":    {Input: 2_000_000, Output: 8_000_000},
	})
	for name, row := range map[string]struct {
		request, answer string
		tokens          int
		spend           tiers.Money
	}{
		"chat": {`"gpt-4o"`, `{"model":"gpt-4o-2024-08-06","usage":{"prompt_tokens":1000,"completion_tokens":100,` +
			`"prompt_tokens_details":{"cached_tokens":600}}}`, 1100, 1000 + 750 + 1000},
		"responses": {`"gpt-4o"`, `{"model":"gpt-4o","usage":{"input_tokens":1000,"output_tokens":100,` +
			`"input_tokens_details":{"cached_tokens":600}}}`, 1100, 1000 + 750 + 1000},
		"Anthropic": {`"claude"`, `{"model":"claude-sonnet","usage":{"input_tokens":100,` +
			`"cache_read_input_tokens":600,"cache_creation_input_tokens":300,"output_tokens":100}}`,
			1100, 1200 + 180 + 1500},
		"longer prefix": {`"gpt-4o"`, `{"model":"gpt-4o-mini-2024","usage":{"prompt_tokens":1000}}`, 1000, 150},
		"request's model": {`"gpt-4o-mini"`, `{"model":"deployment-7","usage":{"prompt_tokens":1000}}`,
			1000, 150},
		"no model in the answer": {`"gpt-4o-mini"`, `{"usage":{"prompt_tokens":1000}}`, 1000, 150},
		"the dearest": {`"x"`, `{"model":"y","usage":{"prompt_tokens":1000,"completion_tokens":100}}`,
			1100, 4500},
		"no price for it": {`"uncached"`, `{"usage":{"prompt_tokens":1000,"prompt_tokens_details":` +
			`{"cached_tokens":600}}}`, 1000, 2000},
		"more cached than read": {`"gpt-4o"`, `{"usage":{"prompt_tokens":1000,"prompt_tokens_details":` +
			`{"cached_tokens":6000}}}`, 1000, 1250},
		"rounded up": {`"gpt-4o-mini"`, `{"usage":{"prompt_tokens":1}}`, 1, 1},
	} {
		body := `{"model":` + row.request + `,"messages":[]}`
		got := through(t, body, "application/json", []string{row.answer}, withCache)
		require.Equal(t, word{ginlimit.Usage{Tokens: row.tokens, Spend: row.spend}, true}, got.word, name)
	}
}

// Numbers that cannot be true are clamped, and a sum of 0 is not believed.
func TestMeterClampsUsage(t *testing.T) {
	t.Parallel()
	const most = 100_000_000
	text := `{"choices":[{"message":{"content":"Hello, world!"}}],"usage":` // 4 tokens
	for usage, want := range map[string]word{
		`{"prompt_tokens":-5,"completion_tokens":10}`:                        settled(0, 10),
		`{"prompt_tokens":10,"completion_tokens":-5}`:                        settled(10, 0),
		`{"prompt_tokens":-1,"completion_tokens":-1,"total_tokens":-2}`:      settled(5, 4),
		`{"prompt_tokens":1e30,"completion_tokens":1}`:                       settled(most, 1),
		`{"prompt_tokens":1,"completion_tokens":9223372036854775807}`:        settled(1, most),
		`{"prompt_tokens":1,"completion_tokens":1e999}`:                      settled(1, most),
		`{"prompt_tokens":1,"completion_tokens":1,"total_tokens":1e18}`:      settled(1, most-1),
		`{"prompt_tokens":NaN,"completion_tokens":10}`:                       settled(5, 10),
		`{"prompt_tokens":"NaN","completion_tokens":"10"}`:                   settled(5, 4),
		`{"input_tokens":1e8,"cache_read_input_tokens":1e8}`:                 settled(most, 0),
		`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`:         settled(5, 4),
		`{"prompt_tokens":7,"prompt_tokens_details":{"cached_tokens":-100}}`: settled(7, 0),
		`{"prompt_tokens":7,"prompt_tokens_details":[1]}`:                    settled(7, 0),
		`{}`:      settled(5, 4),
		`null`:    settled(5, 4),
		`[1,2]`:   settled(5, 4),
		`"lots"`:  settled(5, 4),
		`{"a":1}`: settled(5, 4),
	} {
		require.Equal(t, want, through(t, askChat, "application/json", []string{text + usage + "}"}).word, usage)
	}
}

// The log says that numbers were clamped, once a second, and nothing of who asked.
func TestMeterLogsWhatItClamps(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	router := gin.New()
	router.POST("/", openai.Meter(), func(c *gin.Context) {
		c.Data(http.StatusOK, "application/json", []byte(`{"model":"m-secret","usage":{"prompt_tokens":-1}}`))
	})
	synctest.Test(t, func(t *testing.T) {
		for second := range 3 {
			for range 10 {
				router.ServeHTTP(newRecorder(), contextOf("/", askChat).Request)
			}
			require.Equal(t, second+1, strings.Count(log.String(), "\n"))
			time.Sleep(time.Second)
		}
	})
	require.Contains(t, log.String(), "level=WARN msg=\"openai: a provider's usage is not plausible")
	require.NotContains(t, log.String(), "m-secret")
}

// Q24: an answer without usage is charged by what is in it.
func TestMeterCountsJSONWithoutUsage(t *testing.T) {
	t.Parallel()
	const hello = `"Hello, world!"` // 4 tokens
	for name, row := range map[string]struct {
		request, answer string
		want            word
	}{
		"chat": {askChat, `{"choices":[{"message":{"role":"m","content":` + hello + `}}]}`, settled(5, 4)},
		"choices": {askChat, `{"choices":[{"message":{"content":` + hello + `}},{"text":` + hello + `}]}`,
			settled(5, 8)},
		"tool call": {askChat, `{"choices":[{"message":{"tool_calls":[{"function":{"name":` + hello + `}}]}}]}`,
			settled(5, 4)},
		"responses":   {askResponses, `{"output":[{"content":[{"text":` + hello + `}]}]}`, settled(1, 4)},
		"Anthropic":   {askChat, `{"content":[{"type":"text","text":` + hello + `}]}`, settled(5, 4)},
		"embeddings":  {askVectors, `{"data":[{"embedding":[0.1,0.2,0.3,0.4,0.5,0.6,0.7]}]}`, settled(2, 0)},
		"other JSON":  {askChat, `{"reply":` + hello + `}`, settled(5, 7)}, // 25 bytes
		"plain text":  {askChat, `Hello, world!`, settled(5, 4)},
		"long, other": {askChat, strings.Repeat("Hello, world!", 1000), settled(5, 50)}, // what was reserved
		"nothing":     {askChat, ``, settled(5, 0)},
		"cut off": {askChat, `{"choices":[{"message":{"content":` + hello + `}}],"usage":{"prompt_tokens":12,"comp`,
			settled(5, 4)},
		// The request is of no known format, but the answer is a model's.
		"unknown request": {`?`, `{"choices":[{"message":{"content":` + hello + `}}]}`, settled(0, 4)},
		"count_tokens":    {askChat, `{"input_tokens":14}`, word{said: true}},
		"input_tokens":    {askResponses, `{"object":"x","input_tokens":14}`, word{said: true}},
		"nothing known":   {`?`, `{"object":"list","data":[]}`, word{}},
	} {
		require.Equal(t, row.want, through(t, row.request, "application/json", []string{row.answer}).word, name)
	}
}

// Answers that are too long to keep: the usage stands before or behind the vectors.
func TestMeterReadsLongJSON(t *testing.T) {
	t.Parallel()
	vectors := `"data":[{"embedding":[` + strings.Repeat("0.123456789,", 400_000) + `0]}]`
	usage := `"model":"e","usage":{"prompt_tokens":12,"completion_tokens":34}`
	for _, answer := range []string{
		`{"object":"list",` + vectors + `,` + usage + `}`,
		`{"object":"list",` + usage + `,` + vectors + `}`,
		`{"object":"list",` + vectors + `,` + usage + `,"x":{"usage":{"a":1}},"y":["usage"],"usage":7}`,
		`{"tools":[{"usage":{"type":"string"}}],` + usage + `,` + vectors + `,"usage" : {"x":1}, "b64": "` +
			strings.Repeat(`\"usage\":{\"prompt_tokens\":1}`, 100) + `"}`,
	} {
		got := through(t, askVectors, "application/json", []string{answer})
		require.Equal(t, settled(12, 34), got.word)
		require.Equal(t, answer, got.Body.String())
		var parts []string
		for rest := answer; rest != ""; {
			n := min(len(rest), 100_003)
			parts, rest = append(parts, rest[:n]), rest[n:]
		}
		require.Equal(t, settled(12, 34), through(t, askVectors, "application/json", parts).word)
	}
}

// Compressed answers are read from a copy; the client gets the provider's bytes.
func TestMeterReadsCompressedAnswers(t *testing.T) {
	t.Parallel()
	zip := func(text string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = io.WriteString(w, text)
		require.NoError(t, w.Close())
		return b.String()
	}
	send := func(encoding, contentType, body string) answered {
		return ask(t, askChat, func(c *gin.Context) {
			c.Header("Content-Type", contentType)
			c.Header("Content-Encoding", encoding)
			_, _ = c.Writer.WriteString(body)
		})
	}
	asJSON := `{"usage":{"prompt_tokens":12,"completion_tokens":34}}`
	asStream := "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: " + asJSON + "\n\n"
	got := send("gzip", "application/json", zip(asJSON))
	require.Equal(t, settled(12, 34), got.word)
	require.Equal(t, zip(asJSON), got.Body.String())
	require.Equal(t, settled(12, 34), send("GZIP", "text/event-stream", zip(asStream)).word)
	require.Equal(t, settled(12, 34), send("identity", "application/json", asJSON).word)
	cutOff := zip(strings.Repeat("data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n", 1000))
	require.Positive(t, send("gzip", "text/event-stream", cutOff[:len(cutOff)-9]).Tokens)
	require.Equal(t, word{}, send("br", "application/json", "??????").word) // the reservation stands
	require.Equal(t, word{}, send("gzip", "application/json", "??????").word)
}

// The provider is not asked for what the Meter could not read.
func TestMeterAsksForPlainAnswers(t *testing.T) {
	t.Parallel()
	router := gin.New()
	var got []string
	router.Use(openai.Meter())
	router.POST("/", func(c *gin.Context) { got = append(got, c.GetHeader("Accept-Encoding")) })
	for _, body := range []string{askChat, "?"} {
		for _, encoding := range []string{"gzip, br", ""} {
			c := contextOf("/", body)
			if encoding != "" {
				c.Request.Header.Set("Accept-Encoding", encoding)
			}
			router.ServeHTTP(newRecorder(), c.Request)
		}
	}
	require.Equal(t, []string{"identity", "", "gzip, br", ""}, got)
}

// A status that is an error costs nothing, unless the provider says it does.
func TestMeterOfFailures(t *testing.T) {
	t.Parallel()
	for status, body := range map[int]string{
		http.StatusBadRequest:          `{"error":{"message":"Bad request","type":"invalid_request_error"}}`,
		http.StatusTooManyRequests:     `{"error":{"message":"Slow down"}}`,
		http.StatusInternalServerError: "oops",
		http.StatusBadGateway:          "",
		http.StatusFound:               "",
	} {
		got := ask(t, askChat, func(c *gin.Context) { c.String(status, body) })
		require.Equal(t, word{said: true}, got.word, status) // Q11
		require.Equal(t, status, got.Code)
		require.Equal(t, body, got.Body.String())
	}
	got := ask(t, askChat, func(c *gin.Context) {
		c.Data(http.StatusInternalServerError, "application/json",
			[]byte(`{"usage":{"prompt_tokens":12,"completion_tokens":34}}`))
	})
	require.Equal(t, settled(12, 34), got.word)
	// A middleware further out answers the error.
	got = ask(t, askChat, func(c *gin.Context) { _ = c.Error(io.ErrUnexpectedEOF) })
	require.Equal(t, word{said: true}, got.word)
}
