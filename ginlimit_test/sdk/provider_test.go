package sdk_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// newProvider stands for the providers of both SDKs: it answers each endpoint as theirs does, always with an
// input of 12 tokens, 5 of them cached, and an output of 34. As OpenAI's, it reports the usage of a stream
// of chat completions only if it is asked; as Anthropic's, it refuses fields that it does not know.
func newProvider(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	handle := func(path string, answer func(body map[string]any) (asJSON string, events []string)) {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			var body map[string]any
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				http.Error(w, "not JSON", http.StatusBadRequest)
				return
			}
			asJSON, events := answer(body)
			if body["stream"] != true {
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprint(w, asJSON)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			for _, event := range events {
				_, _ = fmt.Fprint(w, event, "\n\n")
				w.(http.Flusher).Flush()
			}
		})
	}
	const model = `"id":"x","created":1,"model":"gpt-4o-2024-08-06"`
	const chatUsage = `"usage":{"prompt_tokens":12,"completion_tokens":34,"total_tokens":46,` +
		`"prompt_tokens_details":{"cached_tokens":5}}`
	handle("/v1/chat/completions", func(body map[string]any) (string, []string) {
		chunk := func(rest string) string {
			return `data: {"object":"chat.completion.chunk",` + model + `,` + rest + `}`
		}
		events := []string{
			chunk(`"choices":[{"index":0,"delta":{"role":"assistant","content":"Hello"},"finish_reason":null}]`),
			chunk(`"choices":[{"index":0,"delta":{"content":", world!"},"finish_reason":null}]`),
			chunk(`"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]`),
		}
		if options, _ := body["stream_options"].(map[string]any); options["include_usage"] == true {
			events = append(events, chunk(`"choices":[],`+chatUsage))
		}
		return `{"object":"chat.completion",` + model + `,` + chatUsage + `,"choices":[{"index":0,` +
				`"message":{"role":"assistant","content":"Hello, world!"},"finish_reason":"stop"}]}`,
			append(events, "data: [DONE]")
	})

	const usage = `"usage":{"input_tokens":12,"input_tokens_details":{"cached_tokens":5},"output_tokens":34,` +
		`"output_tokens_details":{"reasoning_tokens":0},"total_tokens":46}`
	handle("/v1/responses", func(map[string]any) (string, []string) {
		response := `{"object":"response",` + model + `,"status":"completed","output":[{"type":"message",` +
			`"id":"m","role":"assistant","status":"completed","content":[{"type":"output_text",` +
			`"text":"Hello, world!"}]}],` +
			usage + `}`
		return response, []string{
			event(`{"type":"response.created","response":{"id":"x","usage":null}}`),
			event(`{"type":"response.output_text.delta","delta":"Hello, world!"}`),
			event(`{"type":"response.completed","response":` + response + `}`),
		}
	})

	handle("/v1/embeddings", func(map[string]any) (string, []string) {
		return `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.25,0.5]}],` +
			`"model":"text-embedding-3-small","usage":{"prompt_tokens":12,"total_tokens":12}}`, nil
	})

	handle("/v1/messages", func(body map[string]any) (string, []string) {
		if _, foreign := body["stream_options"]; foreign {
			return `{"type":"error"}`, []string{"event: error\ndata: {\"type\":\"error\"}"}
		}
		message := func(content, output string) string {
			return `{"id":"m","type":"message","role":"assistant","model":"claude-sonnet-4-5",` +
				`"content":[` + content + `],` +
				`"stop_reason":null,"usage":{"input_tokens":4,"cache_read_input_tokens":5,` +
				`"cache_creation_input_tokens":3,"output_tokens":` + output + `}}`
		}
		return message(`{"type":"text","text":"Hello, world!"}`, "34"), []string{
			event(`{"type":"message_start","message":` + message("", "1") + `}`),
			event(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`),
			event(`{"type":"ping"}`),
			event(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello, world!"}}`),
			event(`{"type":"content_block_stop","index":0}`),
			event(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":34}}`),
			event(`{"type":"message_stop"}`),
		}
	})

	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	require.NotEmpty(t, server.URL)
	return server
}

// event is one whose name is the type in its data.
func event(data string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(data, `{"type":"`), `"`)
	return "event: " + name + "\ndata: " + data
}
