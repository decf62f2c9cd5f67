package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"github.com/gin-tiers/ratelimit/ginlimit/openai"
)

// Whatever a client sends, an estimate is a number of tokens, and the body is still there.
func FuzzEstimator(f *testing.F) {
	for _, body := range []string{
		askChat, askResponses, askVectors, askStream, askStreamOnly, askClaude, "", "?", "{}", "[]",
		`{"prompt":[[1,2],[3]],"n":1e9}`,
		`{"messages":[{"content":[{"type":"image_url","image_url":"data:;base64,"}]}]}`,
		`{"messages":{"a":1},"tools":{"type":"document","source":{"type":"text","data":"\ud800"}}}`,
		`{"input":{"type":"base64"},"max_output_tokens":-1e400}`,
	} {
		f.Add(body)
	}
	e := openai.Estimator(prices, openai.WithMaxBody(10_000))
	f.Fuzz(func(t *testing.T, body string) {
		for range 2 {
			u := estimate(t, e, "/", body)
			require.GreaterOrEqual(t, u.Tokens, 0)
			require.LessOrEqual(t, u.Tokens, 300_000_000)
			require.GreaterOrEqual(t, u.Spend, spend(u.Tokens, 0))
		}
	})
}

// Whatever a provider sends in whatever portions, the client gets the same bytes, and what is settled does
// not depend on the portions.
func FuzzMeter(f *testing.F) {
	for _, row := range streams() {
		f.Add(row.request, "text/event-stream", row.stream, uint16(7))
		f.Add(askStreamOnly, "text/event-stream", row.stream, uint16(1))
	}
	f.Add(askChat, "application/json", `{"usage":{"prompt_tokens":1e99,"completion_tokens":-1}}`, uint16(3))
	f.Add(askChat, "", `{"choices":[{"message":{"content":"Hi","tool_calls":[{}]}}],"usage":{`, uint16(3))
	f.Add("?", "text/plain", "data: {\"delta\":\"\xff\"}\r\rdata", uint16(2))
	meter := openai.Meter(prices)
	f.Fuzz(func(t *testing.T, request, contentType, answer string, size uint16) {
		send := func(parts []string) (string, word) {
			var got word
			router, w := gin.New(), newRecorder()
			router.Use(limited(), witness(func(w word) { got = w }), meter)
			router.POST("/", func(c *gin.Context) {
				c.Writer.Header().Set("Content-Type", contentType)
				for _, part := range parts {
					n, err := c.Writer.WriteString(part)
					require.NoError(t, err)
					require.Equal(t, len(part), n)
				}
			})
			router.ServeHTTP(w, contextOf("/", request).Request)
			return w.Body.String(), got
		}
		body, settled := send([]string{answer})
		if !strings.Contains(answer, "usage") && !strings.Contains(answer, `\`) {
			require.Equal(t, answer, body) // nothing to take out
		}
		require.LessOrEqual(t, len(body), len(answer))
		require.GreaterOrEqual(t, settled.Tokens, 0)
		require.LessOrEqual(t, settled.Tokens, 300_000_000)
		again, same := send(portions(answer, int(size%100)+1))
		require.Equal(t, body, again)
		require.Equal(t, settled, same)
	})
}

// The body that asks for the usage is the client's own but for that.
func FuzzAskForUsage(f *testing.F) {
	for _, body := range []string{askStream, askStreamOnly, askChat, askClaude,
		` {"prompt":"}","stream":true}` + "\n",
		`{"messages":[],"stream":true,"stream_options":{ "x":{} }}`,
		`{"messages":[],"stream":true,"stream_options":{"include_usage":{}}}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		forwarded := through(t, body, "text/event-stream", nil).forwarded
		if forwarded == body {
			return
		}
		var before, after map[string]any
		require.NoError(t, json.Unmarshal([]byte(body), &before))
		require.NoError(t, json.Unmarshal([]byte(forwarded), &after))
		options := after["stream_options"].(map[string]any)
		require.Equal(t, true, options["include_usage"])
		own, _ := before["stream_options"].(map[string]any)
		delete(options, "include_usage")
		delete(own, "include_usage")
		if len(own) == 0 {
			require.Empty(t, options)
		} else {
			require.Equal(t, own, options)
		}
		delete(before, "stream_options")
		delete(after, "stream_options")
		require.Equal(t, before, after)
	})
}
