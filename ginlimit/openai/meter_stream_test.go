package openai_test

import (
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit/openai"
)

const (
	askStream = `{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,` +
		`"stream_options":{"include_usage":true}}`
	askStreamOnly = `{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true}`
	askClaude     = `{"system":"","messages":[{"role":"user","content":"hi"}],"max_tokens":9,"stream":true}`
)

// The last chunk of a stream of chat completions, if the usage was asked for.
const usageChunk = `data: {"id":"c","model":"gpt-4o","choices":[],"usage":` +
	`{"prompt_tokens":12,"completion_tokens":34,"total_tokens":46}}` + "\n\n"

func chatStream(end string) string {
	return `data: {"id":"c","choices":[{"delta":{"role":"assistant","content":""}}],"usage":null}` + "\n\n" +
		`data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hello, 漢字"}}],"usage":null}` + "\n\n" +
		`data: {"id":"c","choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}` + "\n\n" +
		end + "data: [DONE]\n\n"
}

const responsesStream = `event: response.created
data: {"type":"response.created","response":{"id":"r","status":"in_progress","model":"gpt-4o","usage":null}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"i","delta":"Hello, 漢字","obfuscation":"xyzxyzxyz"}

event: response.output_text.done
data: {"type":"response.output_text.done","item_id":"i","text":"Hello, 漢字"}

event: response.ENDED
data: {"type":"response.ENDED","response":{"model":"gpt-4o","output":[{"content":[{"text":"Hello, 漢字"}]}],` +
	`"usage":{"input_tokens":12,"input_tokens_details":{"cached_tokens":0},"output_tokens":34}}}

`

// Anthropic reports the input in the first event and the output, cumulatively, in the last one or several.
const claudeStream = `event: message_start
data: {"type":"message_start","message":{"id":"m","model":"claude","content":[],"usage":{"input_tokens":2,` +
	`"cache_creation_input_tokens":3,"cache_read_input_tokens":7,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello, 漢字"}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":20}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":34}}

event: message_stop
data: {"type":"message_stop"}

`

// streams are those of all formats, with the request that each answers. All use 12 and 34 tokens.
func streams() map[string]struct{ request, stream string } {
	crlf := strings.NewReplacer("\n", "\r\n")
	cr := strings.NewReplacer("\n", "\r")
	comments := strings.NewReplacer("data: ", ": a comment\nid: 7\nretry: 10\ndata:", "\n\n", "\n\n\n: ping\n\n")
	lines := strings.NewReplacer(`,"choices"`, "\ndata: ,\"choices\"")
	return map[string]struct{ request, stream string }{
		"chat":                 {askStream, chatStream(usageChunk)},
		"chat, CRLF":           {askStream, crlf.Replace(chatStream(usageChunk))},
		"chat, CR":             {askStream, cr.Replace(chatStream(usageChunk))},
		"chat, comments":       {askStream, comments.Replace(chatStream(usageChunk))},
		"chat, several lines":  {askStream, lines.Replace(chatStream(usageChunk))},
		"chat, byte order":     {askStream, "\uFEFF" + chatStream(usageChunk)},
		"usage first":          {askStream, "\uFEFF" + usageChunk + chatStream("")},
		"chat, no blank line":  {askStream, strings.TrimRight(chatStream("")+usageChunk, "\n")},
		"chat, in last choice": {askStream, strings.Replace(chatStream(usageChunk), `[]`, `[{"delta":{}}]`, 1)},
		"chat, cumulative": {askStream, chatStream(
			strings.NewReplacer("34", "9", "46", "21").Replace(usageChunk) + usageChunk)},
		"completions": {strings.Replace(askStream, "messages", "prompt", 1),
			`data: {"choices":[{"text":"Hello, 漢字"}]}` + "\n\n" + usageChunk},
		"responses":             {askResponses, strings.ReplaceAll(responsesStream, "ENDED", "completed")},
		"responses, incomplete": {askResponses, strings.ReplaceAll(responsesStream, "ENDED", "incomplete")},
		"responses, failed":     {askResponses, strings.ReplaceAll(responsesStream, "ENDED", "failed")},
		"responses, more text than reported": {askResponses, strings.NewReplacer("ENDED", "completed",
			`"delta":"`, `"delta":"`+strings.Repeat("word ", 100)).Replace(responsesStream)},
		"Anthropic": {askClaude, claudeStream}, // Q22
		"Anthropic, zeros later": {askClaude, strings.ReplaceAll(claudeStream, `{"output_tokens":34}`,
			`{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":34}`)},
		"Anthropic, CRLF": {askClaude, crlf.Replace(claudeStream)},
		"Anthropic, all at the end": {askClaude, strings.NewReplacer(`"input_tokens":2`, `"input_tokens":0`,
			`{"output_tokens":34}`, `{"input_tokens":2,"output_tokens":34}`).Replace(claudeStream)},
	}
}

// L3, Q16, Q22: streams of every format are settled by their usage, and pass unchanged, wherever they are
// split.
func TestMeterReadsStreams(t *testing.T) {
	t.Parallel()
	for name, row := range streams() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at := range len(row.stream) {
				got := through(t, row.request, "text/event-stream", []string{row.stream[:at], row.stream[at:]})
				require.Equal(t, settled(12, 34), got.word, "split at %d", at)
				require.Equal(t, row.stream, got.Body.String(), "split at %d", at)
				require.Equal(t, row.request, got.forwarded)
			}
			for size := range 8 { // even byte by byte
				got := through(t, row.request, "text/event-stream; charset=utf-8", portions(row.stream, size+1))
				require.Equal(t, settled(12, 34), got.word, "portions of %d", size+1)
				require.Equal(t, row.stream, got.Body.String())
			}
		})
	}
}

// until is what stands before the first end.
func until(text, end string) string { return text[:strings.Index(text, end)] }

func portions(text string, size int) []string {
	var parts []string
	for ; len(text) > size; text = text[size:] {
		parts = append(parts, text[:size])
	}
	return append(parts, text)
}

// The usage is asked for on the client's behalf, and the chunk that was not asked for is taken out, wherever
// the stream is split.
func TestMeterAsksForUsage(t *testing.T) {
	t.Parallel()
	for name, newline := range map[string]string{"LF": "\n", "CRLF": "\r\n", "CR": "\r"} {
		for tail, end := range map[string]string{"done": "data: [DONE]\n\n", "none": "", "half": "data: [D"} {
			t.Run(name+", "+tail, func(t *testing.T) {
				t.Parallel()
				in := strings.NewReplacer("\n", newline)
				before := in.Replace(": hello\n\n" + chatStream("")[:len(chatStream(""))-len("data: [DONE]\n\n")])
				stream := before + in.Replace(usageChunk) + in.Replace(end)
				want := before + in.Replace(end)
				for at := range len(stream) {
					parts := []string{stream[:at], stream[at:]}
					got := through(t, askStreamOnly, "text/event-stream", parts)
					require.Equal(t, settled(12, 34), got.word, "split at %d", at)
					require.Equal(t, want, got.Body.String(), "split at %d", at)
				}
				for size := range 8 {
					got := through(t, askStreamOnly, "text/event-stream", portions(stream, size+1))
					require.Equal(t, want, got.Body.String(), "portions of %d", size+1)
				}
				last := strings.TrimRight(before+in.Replace(usageChunk), "\r\n") // without a blank line
				require.Equal(t, before, through(t, askStreamOnly, "text/event-stream", []string{last}).Body.String())
			})
		}
	}
}

// Only what asks is changed in the request; all other bytes stay.
func TestMeterChangesRequest(t *testing.T) {
	t.Parallel()
	const ask = `{"include_usage":true}`
	for body, want := range map[string]string{
		` {"messages" : [],"stream":true, "x":1e2 } `: ` {"messages" : [],"stream":true, "x":1e2 ,` +
			`"stream_options":` + ask + `} `,
		`{"prompt":"","stream":true}`: `{"prompt":"","stream":true,"stream_options":` + ask + `}`,
		`{"messages":[],"stream_options":null,"stream":true}`: `{"messages":[],"stream_options":` + ask +
			`,"stream":true}`,
		`{"messages":[],"stream_options":{},"stream":true}`: `{"messages":[],"stream_options":` + ask +
			`,"stream":true}`,
		`{"messages":[],"stream_options":{"a":[1]},"stream":true}`: `{"messages":[],"stream_options":` +
			`{"a":[1],"include_usage":true},"stream":true}`,
		`{"stream_options":{"include_usage":false},"messages":[],"stream":true}`: `{"stream_options":` + ask +
			`,"messages":[],"stream":true}`,
		`{"stream_options":{"include_usage" : null },"messages":[],"stream":true}`: `{"stream_options":` +
			`{"include_usage" : true },"messages":[],"stream":true}`,
		`{"stream_options":` + ask + `,"stream_options":{},"messages":[],"stream":true}`: `{"stream_options":` +
			ask + `,"stream_options":` + ask + `,"messages":[],"stream":true}`,
		// As they are:
		askStream:                         askStream,
		askClaude:                         askClaude,
		askChat:                           askChat,
		`{"messages":[],"stream":false}`:  `{"messages":[],"stream":false}`,
		`{"messages":[],"stream":"true"}`: `{"messages":[],"stream":"true"}`,
		`{"input":"hi","stream":true}`:    `{"input":"hi","stream":true}`,
		`{"messages":[],"stream":true`:    `{"messages":[],"stream":true`,
		`{"messages":[],"stream":true,"stream_options":7}`: `{"messages":[],"stream":true,"stream_options":7}`,
		``: ``,
	} {
		require.Equal(t, want, through(t, body, "text/event-stream", nil).forwarded, body)
		require.Equal(t, body, through(t, body, "text/event-stream", nil, openai.WithoutStreamOptions()).forwarded)
	}
	router, forwarded := gin.New(), ""
	router.POST("/v1/messages", openai.Meter(), func(c *gin.Context) { forwarded = readAll(t, c.Request.Body) })
	router.ServeHTTP(newRecorder(), contextOf("/v1/messages", askStreamOnly).Request)
	require.Equal(t, askStreamOnly, forwarded) // Anthropic refuses fields that it does not know
}

// A chunk is only taken out of a stream, and only if nothing else is in it.
func TestMeterKeepsWhatIsNotUsageOnly(t *testing.T) {
	t.Parallel()
	for _, stream := range []string{
		strings.Replace(usageChunk, `[]`, `[{"delta":{}}]`, 1),
		"data: {\"choices\":[],\"prompt_filter_results\":[]}\n\n" + chatStream(""),
		"data: {\"choices\":[],\"usage\":null}\n\n",
		"data: {\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":34}}\n\n",
		"data: {\"error\":{\"message\":\"overloaded\"}}\n\n",
		"\n\n\n", ": ping\n\n: ping\n\n", "event: x\n\n", "data\n\n", "data:\n\n", "rubbish", "",
		"data: " + strings.Repeat("x", 300_000) + "\n\n" + chatStream(""),
	} {
		for _, size := range []int{1000, len(stream)} {
			got := through(t, askStreamOnly, "text/event-stream", portions(stream, size))
			require.Equal(t, stream, got.Body.String())
		}
	}
	const answer = `{"choices":[],"usage":{"prompt_tokens":12}}`
	got := through(t, askStreamOnly, "text/event-stream", []string{answer})
	require.Equal(t, answer, got.Body.String())
	require.Equal(t, settled(12, 0), got.word)
}

// An event that is too long to be the usage is not held back until it ends.
func TestMeterHoldsLittleBack(t *testing.T) {
	t.Parallel()
	router, w := gin.New(), newRecorder()
	router.POST("/", openai.Meter(), func(c *gin.Context) {
		c.Header("Content-Type", "text/event-stream")
		_, _ = c.Writer.WriteString("data: ")
		for range 300 {
			_, _ = c.Writer.WriteString(strings.Repeat("x", 1000))
		}
		require.Greater(t, w.Body.Len(), 200_000)
		_, _ = c.Writer.WriteString("\n\n" + usageChunk)
	})
	router.ServeHTTP(w, contextOf("/", askStreamOnly).Request)
	require.Equal(t, "data: "+strings.Repeat("x", 300_000)+"\n\n", w.Body.String())
}

// Q24, L1: a stream without usage, or one that was cut off, is charged by what was streamed.
func TestMeterCountsStreamsWithoutUsage(t *testing.T) {
	t.Parallel()
	event := func(json string) string { return "data: " + json + "\n\n" }
	for name, row := range map[string]struct {
		request, stream string
		want            word
	}{
		"chat":      {askStream, chatStream(""), settled(5, 5)},
		"nothing":   {askStream, "", settled(5, 0)},
		"no events": {askStream, "rubbish", settled(5, 0)},
		"tool calls": {askStream, event(`{"choices":[{"delta":{"tool_calls":[{"id":"call_1234",`+
			`"function":{"name":"f","arguments":""}}]}}]}`) +
			event(`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"Hello, world!"}}]}}]}`),
			settled(5, 5)},
		"reasoning": {askStream, event(`{"choices":[{"delta":{"reasoning_content":"Hello, world!"}}]}`),
			settled(5, 4)},
		"responses, cut off": {askResponses, until(responsesStream, "event: response.output_text.done"),
			settled(1, 5)},
		"Anthropic, cut off early": {askClaude, until(claudeStream, "event: content_block_delta"), settled(12, 1)},
		"Anthropic, cut off":       {askClaude, until(claudeStream, "event: message_delta"), settled(12, 5)},
		"Anthropic, tool": {askClaude, event(`{"type":"content_block_delta","delta":{"type":"input_json_delta",` +
			`"partial_json":"Hello, world!"}}`), settled(5, 4)},
		"unknown request": {"?", chatStream(""), settled(0, 5)},
	} {
		got := through(t, row.request, "text/event-stream", portions(row.stream, 100))
		require.Equal(t, row.want, got.word, name)
		require.Equal(t, row.stream, got.Body.String(), name)
	}
	// A long one is projected from its first 64 KiB.
	const words = 20_000 // of 6 tokens each
	long := strings.Repeat(event(`{"choices":[{"delta":{"content":"The quick brown fox. "}}]}`), words)
	require.InEpsilon(t, 6*words, through(t, askStream, "text/event-stream", []string{long}).Tokens, 0.2)
}

// Events that are too long to keep are searched for their usage.
func TestMeterReadsLongEvents(t *testing.T) {
	t.Parallel()
	image := `"output":[{"type":"image_generation_call","result":"` + strings.Repeat("iVBO", 500_000) + `"}]`
	stream := strings.Replace(responsesStream, `"output":[`, image+`,"x":[`, 1)
	got := through(t, askResponses, "text/event-stream", portions(stream, 30_011))
	require.Equal(t, settled(12, 34), got.word)
	require.Equal(t, stream, got.Body.String())
}

// Without the right type a stream is one if the request asked for one.
func TestMeterReadsStreamsOfAnotherType(t *testing.T) {
	t.Parallel()
	for _, contentType := range []string{"", "text/plain", "application/octet-stream"} {
		got := through(t, askStreamOnly, contentType, []string{chatStream(usageChunk)})
		require.Equal(t, settled(12, 34), got.word)
		require.Equal(t, chatStream(usageChunk), got.Body.String())
	}
}
