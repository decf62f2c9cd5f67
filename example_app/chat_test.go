package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit"
)

func TestCompletion(t *testing.T) {
	t.Parallel()
	a := start(t, nil)
	var got completion
	res := a.chat(t, proKey, "Hello there", `,"unknown":{"field":[1]}`)
	res.json(t, &got)

	require.Equal(t, 200, res.status)
	require.Regexp(t, `^chatcmpl-[0-9a-f-]{36}$`, got.ID)
	require.Equal(t, "chat.completion", got.Object)
	require.Equal(t, "any", got.Model)
	require.NotZero(t, got.Created)
	require.Equal(t, []choice{{
		Message:      &message{Role: "assistant", Content: "You said: Hello there"},
		FinishReason: new("stop"),
	}}, got.Choices)
	// 3 to open the reply; 3 for the frame, 1 for the role, 2 for the text.
	require.Equal(t, &usage{PromptTokens: 9, CompletionTokens: 5, TotalTokens: 14}, got.Usage)
	require.Equal(t, "59", res.header.Get("X-RateLimit-Remaining"))
}

// chunks reads a stream: its chunks, and that [DONE] ends it.
func chunks(t *testing.T, stream string) []completion {
	t.Helper()
	events := strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n")
	require.Equal(t, "data: [DONE]", events[len(events)-1])
	var all []completion
	for _, event := range events[:len(events)-1] {
		data, found := strings.CutPrefix(event, "data: ")
		require.True(t, found, event)
		var chunk completion
		require.NoError(t, json.Unmarshal([]byte(data), &chunk))
		require.Equal(t, "chat.completion.chunk", chunk.Object)
		all = append(all, chunk)
	}
	return all
}

func TestStream(t *testing.T) {
	t.Parallel()
	a := start(t, nil)
	res := a.chat(t, proKey, "Hello there", `,"stream":true,"stream_options":{"include_usage":true}`)
	require.Equal(t, "text/event-stream", res.header.Get("Content-Type"))
	require.Equal(t, "59", res.header.Get("X-RateLimit-Remaining"))

	got := chunks(t, res.body)
	var words []string
	for _, chunk := range got[1 : len(got)-2] {
		require.Equal(t, got[0].ID, chunk.ID)
		require.Nil(t, chunk.Choices[0].FinishReason)
		words = append(words, chunk.Choices[0].Delta.Content)
	}
	require.Equal(t, "assistant", got[0].Choices[0].Delta.Role)
	require.Equal(t, []string{"You ", "said: ", "Hello ", "there"}, words)
	require.Equal(t, "stop", *got[len(got)-2].Choices[0].FinishReason)
	require.Empty(t, got[len(got)-1].Choices)
	require.Equal(t, newUsage(9, 5), got[len(got)-1].Usage)

	for _, fields := range []string{`,"stream":true`, `,"stream":true,"stream_options":null`} {
		for _, chunk := range chunks(t, a.chat(t, proKey, "Hi", fields).body) {
			require.Nil(t, chunk.Usage)
		}
	}
}

// flushes counts how often a response was flushed, and keeps what went out with the first.
type flushes struct {
	*httptest.ResponseRecorder
	count int
	first string
}

func (f *flushes) Flush() {
	if f.count++; f.count == 1 {
		f.first = f.Header().Get("X-RateLimit-Remaining") + " " + f.Body.String()
	}
}

// Every chunk goes out at once, and the limit headers with the first, before the model says anything.
func TestStreamIsFlushed(t *testing.T) {
	t.Parallel()
	cfg, err := loadConfig(env{}.get)
	require.NoError(t, err)
	body := strings.NewReader(chatBody("Hello there", `,"stream":true`))
	req := httptest.NewRequest("POST", "/v1/chat/completions", body)
	req.Header.Set("Authorization", "Bearer "+proKey)
	got := &flushes{ResponseRecorder: httptest.NewRecorder()}
	newRouter(cfg, ginlimit.NewMemoryLimiter()).ServeHTTP(got, req)
	require.Equal(t, len(chunks(t, got.Body.String())), got.count)
	require.Regexp(t, `^59 data: .*"role":"assistant"`, got.first)
	require.NotContains(t, got.first, "You")
}

// A model does not talk to somebody who has left.
func TestSpeakStops(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	var said []string
	err := model{}.speak(ctx, strings.Repeat("word ", 10_000), func(word string) {
		if said = append(said, word); len(said) == 3 {
			leave()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, len(said), 100)
}

func TestMaxTokens(t *testing.T) {
	t.Parallel()
	a := start(t, nil)
	for fields, want := range map[string]string{
		`,"max_tokens":3`:                             "You said:|length|3",
		`,"max_completion_tokens":4`:                  "You said: Hello|length|4",
		`,"max_tokens":1,"max_completion_tokens":100`: "You said: Hello there|stop|5",
		`,"max_tokens":5`:                             "You said: Hello there|stop|5",
		`,"max_tokens":null`:                          "You said: Hello there|stop|5",
	} {
		var got completion
		a.chat(t, proKey, "Hello there", fields).json(t, &got)
		c := got.Choices[0]
		said := fmt.Sprintf("%s|%s|%d", c.Message.Content, *c.FinishReason, got.Usage.CompletionTokens)
		require.Equal(t, want, said, fields)
	}
}

func TestMessageForms(t *testing.T) {
	t.Parallel()
	a := start(t, nil)
	rows := []struct{ messages, want string }{
		{`[{"role":"user","content":"one"},{"role":"assistant","content":"two"}]`, "You said: one"},
		{`[{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}]`,
			"You said: one two"},
		{`[{"role":"user","content":[{"type":"image_url","image_url":{}},{"type":"text","text":"a"}]}]`,
			"You said: a"},
		{`[{"role":"user","content":[]}]`, "Hello! What would you like to talk about?"},
		{`[{"role":"user","content":null}]`, "Hello! What would you like to talk about?"},
		{`[{"role":"system","content":"Be short"}]`, "Hello! What would you like to talk about?"},
		{`[{"role":"user","content":"\ud800 漢字 \u0000"}]`, "You said: \ufffd 漢字 \u0000"},
	}
	for _, row := range rows {
		var got completion
		a.send(t, "POST", "/v1/chat/completions", proKey, `{"model":"m","messages":`+row.messages+`}`).json(t, &got)
		require.Len(t, got.Choices, 1, row.messages)
		require.EqualValues(t, row.want, got.Choices[0].Message.Content, row.messages)
	}
}

// A request that is refused for what it says has cost one, like any other.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	a := start(t, nil)
	const msgs = `"messages":[{"role":"user","content":"x"}]`
	rows := []struct {
		body        string
		param, code any
	}{
		{``, nil, "invalid_json"},
		{`{`, nil, "invalid_json"},
		{`[]`, nil, "invalid_json"},
		{`{"model":"m",` + msgs + `} x`, nil, "invalid_json"},
		{strings.Repeat("[", 100_000), nil, "invalid_json"},
		{`null`, "model", nil},
		{`{` + msgs + `}`, "model", nil},
		{`{"model":"m"}`, "messages", nil},
		{`{"model":"m","messages":[]}`, "messages", nil},
		{`{"model":"m","messages":"hi"}`, "messages", nil},
		{`{"model":"m","messages":[{"role":"user","content":7}]}`, "messages.content", nil},
		{`{"model":"m","messages":[{"role":"user","content":[7]}]}`, "messages.content", nil},
		{`{"model":"m","n":2,` + msgs + `}`, "n", nil},
		{`{"model":"m","n":0,` + msgs + `}`, "n", nil},
		{`{"model":"m","max_tokens":0,` + msgs + `}`, "max_tokens", nil},
		{`{"model":"m","max_tokens":1e99,` + msgs + `}`, "max_tokens", nil},
		{`{"model":"m","max_completion_tokens":-1,` + msgs + `}`, "max_completion_tokens", nil},
		{`{"model":"m","stream":"yes",` + msgs + `}`, "stream", nil},
	}
	for i, row := range rows {
		got := a.send(t, "POST", "/v1/chat/completions", proKey, row.body)
		got.wantError(t, 400, "invalid_request_error", row.param, row.code)
		require.Equal(t, fmt.Sprint(59-i), got.header.Get("X-RateLimit-Remaining"))
	}
}

// zeros is an endless body.
type zeros struct{ read int }

func (z *zeros) Read(p []byte) (int, error) {
	clear(p)
	z.read += len(p)
	return len(p), nil
}

func TestBodyTooLarge(t *testing.T) {
	t.Parallel()
	a := start(t, nil)
	const size = 1 << 30
	for name, length := range map[string]int64{"announced": size, "not announced": -1} {
		sent := &zeros{}
		req := a.request(t, "POST", "/v1/chat/completions", proKey, io.LimitReader(sent, size))
		req.ContentLength = length
		read(t, a.open(t, req)).wantError(t, 413, "invalid_request_error", nil, "request_too_large")
		require.Less(t, sent.read, size/4, name) // sockets buffer some of it
	}
	body := chatBody("Hi", "")
	largest := body + strings.Repeat(" ", defaultMaxBody-len(body))
	require.Equal(t, 200, a.send(t, "POST", "/v1/chat/completions", proKey, largest).status)
	a.send(t, "POST", "/v1/chat/completions", proKey, largest+" ").
		wantError(t, 413, "invalid_request_error", nil, "request_too_large")
}
