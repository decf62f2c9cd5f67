package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// FuzzOtherBodies sends any body to the model's other routes: it is answered with a JSON object, with events
// that hold one each, or with what is wrong with it.
func FuzzOtherBodies(f *testing.F) {
	paths := []string{"messages", "responses", "completions", "embeddings"}
	for _, body := range []string{
		"", "null", "[]", "{}", `{"model":"m"}`,
		`{"model":"m","max_tokens":3,"messages":[{"role":"user","content":"Hello there"}],"stream":true}`,
		`{"model":"m","max_tokens":3,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`,
		`{"model":"m","input":"Hello there","stream":true,"max_output_tokens":2}`,
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"a"}]}]}`,
		`{"model":"m","prompt":"Hello there","stream":true,"stream_options":{"include_usage":true}}`,
		`{"model":"m","prompt":["a"]}`, `{"model":"m","prompt":[1]}`,
		`{"model":"m","input":["a","b"],"dimensions":2,"encoding_format":"base64"}`,
		`{"model":"m","input":[[1],[2,3]],"dimensions":1}`, `{"model":"m","input":[1,2]}`,
		`{"model":"m","input":"` + "\xff\x80" + strings.Repeat("\x80", 2000) + `","max_output_tokens":1}`,
		`{"model":null,"model":"m","input":{},"input":"x"}`, `{"model":"m","input":"\ud800"}`,
	} {
		for i := range paths {
			f.Add(i, []byte(body))
		}
	}
	router := fuzzed(f)
	f.Fuzz(func(t *testing.T, path int, body []byte) {
		path = (path%len(paths) + len(paths)) % len(paths)
		w := httptest.NewRecorder()
		synctest.Test(t, func(t *testing.T) {
			req := httptest.NewRequest(http.MethodPost, "/v1/"+paths[path], strings.NewReader(string(body)))
			req.Header.Set("Authorization", "Bearer sk-enterprise-demo")
			router.ServeHTTP(w, req)
		})
		require.NotEmpty(t, w.Header().Get("X-RateLimit-Remaining"), "whatever it is, it is counted")
		if w.Code != http.StatusOK {
			require.Equal(t, http.StatusBadRequest, w.Code, w.Body)
			wantErrorObject(t, w)
			return
		}
		if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
			require.True(t, json.Valid(w.Body.Bytes()))
			require.Contains(t, w.Body.String(), `"usage":{"`)
			return
		}
		for event := range strings.SplitSeq(strings.TrimSuffix(w.Body.String(), "\n\n"), "\n\n") {
			_, data, found := strings.Cut("\n"+event, "\ndata: ")
			require.True(t, found, event)
			require.True(t, data == "[DONE]" || json.Valid([]byte(data)), event)
		}
	})
}
